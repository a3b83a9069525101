#!/usr/bin/env python3
"""Overwrites the files that `vram sim` shares with a program with random bytes, then runs a program on the simulator. Exits with 7.

Usage: scribble.py SEED TINY"""
import os
import random
import subprocess
import sys

random.seed(int(sys.argv[1]))
NUMBERS = [0, 1, 2, 255, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1]

for variable in ("VRAM_SIM_MISSING", "VRAM_SIM_READS", "VRAM_SIM_SESSION"):
    path = os.environ[variable]
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for _ in range(random.randrange(2000)):
            at = random.choice((8, 16, 24, random.randrange(0, size, 8)))
            file.seek(at)
            word = random.choice((random.choice(NUMBERS).to_bytes(8, "little"), random.randbytes(random.randrange(1, 300))))
            file.write(word[: size - at])
        if random.randrange(3) == 0 and variable != "VRAM_SIM_SESSION":
            file.seek(0)
            file.write(random.randbytes(size))
        if random.randrange(4) == 0:
            file.truncate(random.choice((0, 8, 4096, size - 8, size + 4096)))
result = subprocess.run([sys.argv[2]], check=False, stdout=subprocess.DEVNULL)
sys.exit(7 if result.returncode >= 0 else 1)
