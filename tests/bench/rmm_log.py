#!/usr/bin/env python3
"""Prints an RMM log of N rows (default a million): random sizes, about as many frees as allocations. For figures in docs/benchmarks.md."""
import random
import sys

random.seed(1)
print("Thread,Time,Action,Pointer,Size,Stream")
live, time_us, next_address = [], 0, 0x7F0000000000
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1000000):
    time_us += random.randrange(40)
    seconds, fraction = divmod(time_us, 1000000)
    if live and random.random() < 0.5:
        address, size = live.pop(random.randrange(len(live)))
        action = "free"
    else:
        size = random.randrange(1, 1 << 20)
        next_address += (size + 511) // 512 * 512
        address, action = next_address, "allocate"
        live.append((address, size))
    print(f"1,{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06},{action},{address:#x},{size},0x0")
