#!/usr/bin/env python3
"""Writes a snapshot whose addresses would all fall into one slot of an unseeded hash table, or the same snapshot with ordinary addresses.

usage: make_hostile.py OUT.pickle COUNT [hostile|ordinary]      a segment and a block at each of COUNT addresses, allocated and freed

vr_mix64() can be inverted (tests/support/random.h does so too). For each number whose lower half is 0, its inverse is an address that
hashes to it. One in 512 of these is a multiple of 512, as a reader demands.
"""
import pickle
import sys

MASK = (1 << 64) - 1
BLOCK = 512
SIZE = 2 << 20


def unmix64(mixed):
    mixed ^= mixed >> 31 ^ mixed >> 62
    mixed = mixed * 0x319642B2D24D8EC3 & MASK
    mixed ^= mixed >> 27 ^ mixed >> 54
    mixed = mixed * 0x96DE1B173F119089 & MASK
    return mixed ^ mixed >> 30 ^ mixed >> 60


def addresses(count, numbers):
    """Returns the first `count` valid segment addresses among the inverses of `numbers`; no two segments overlap."""
    found, taken = [], set()
    for number in numbers:
        address = unmix64(number)
        if address % BLOCK != 0 or not SIZE <= address < 1 << 63:
            continue
        place = address // SIZE
        if not taken.isdisjoint((place - 1, place, place + 1)):
            continue
        taken.add(place)
        found.append(address)
        if len(found) == count:
            return found
    raise AssertionError("too few numbers")


def hostile(count):
    return addresses(count, (number << 32 for number in range(1, 1 << 32)))


def ordinary(count):
    """Returns ordinary addresses, as long as the hostile ones in text and in a pickle, and as far apart."""
    return addresses(count, (number * 0x9E3779B97F4A7C15 & MASK for number in range(1, 1 << 32)))


def snapshot(places):
    frames = [{"filename": "/home/me/train.py", "line": line, "name": "step"} for line in range(1, 8)]
    events = []

    def add(action, address):
        events.append({"action": action, "addr": address, "size": SIZE, "stream": 0, "time_us": len(events), "frames": [frames[len(events) % 7]]})

    for address in places:
        add("segment_alloc", address)
        add("alloc", address)
    for address in places:
        add("free_requested", address)
        add("free_completed", address)
    for address in places:
        add("segment_free", address)
    return {"segments": [], "device_traces": [events], "allocator_settings": {}, "external_annotations": []}


def write(path, count, kind):
    with open(path, "wb") as file:
        pickle.dump(snapshot({"hostile": hostile, "ordinary": ordinary}[kind](count)), file, protocol=4)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "hostile")
