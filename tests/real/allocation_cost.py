#!/usr/bin/env python3
"""Measures the cost of an allocation and its free in PyTorch, with its own allocator and with vram's, alternating in one process, on the
simulated device. Three ways are measured, each with the tensor's free: PyTorch's allocator class (allocate() and the deleter),
at::empty() of C++, and torch.empty() of Python.

usage: allocation_cost.py PYTHON [--count]      PYTHON: one that has PyTorch; VRAM_BUILD: the build (default build/release)
--count: instructions by callgrind, instead of nanoseconds"""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROUNDS, PAIRS, SIZES = 60, 4000, (1000, 100_000, 3_000_000, 30_000_000)
COUNTED, COUNTED_SIZE = 200, 1000
WAYS = ("class", "empty", "python")
NAMES = {"class": "the class", "empty": "at::empty()", "python": "torch.empty()"}


# --- in the Python that has PyTorch -------------------------------------------------------------------------------------------------------
def loops_of(library, torch):
    """Returns {way: (a function of count and size, the same function as a pointer for cost_counted)}."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int64)

    def in_python(count, size):
        empty, device, kind = torch.empty, torch.device("cuda"), torch.uint8
        for _ in range(count):
            empty(size, dtype=kind, device=device)

    loops = {"python": (in_python, kind(in_python))}
    for way in ("class", "empty"):
        function = getattr(library, f"cost_{way}")
        function.argtypes = [ctypes.c_int, ctypes.c_int64]
        loops[way] = (function, ctypes.cast(function, kind))
    return loops


def install(path, native, facts):
    import torch

    library = ctypes.CDLL(path)
    if library.cost_install(native.encode(), *[each.encode() for each in facts[:2]], int(facts[2])) != 0:
        sys.exit("vram could not be put in its place")
    torch.empty(1, device="cuda")  # PyTorch's one-time initialization
    return library, loops_of(library, torch)


def measure(library, loops):
    for way in WAYS:
        run = loops[way][0]
        for size in SIZES:
            rounds = [[], []]
            for turn in range(2 * ROUNDS):
                library.cost_use(turn % 2)
                run(50, size)
                begun = time.perf_counter()
                run(PAIRS, size)
                rounds[turn % 2].append((time.perf_counter() - begun) / PAIRS * 1e9)
            own, ours = (f"{min(each):7.0f} ({sorted(each)[ROUNDS // 2]:.0f})" for each in rounds)
            print(f"{NAMES[way]:14} {size:9} bytes: PyTorch {own} ns, vram {ours} ns: least (median) of {ROUNDS} rounds", flush=True)


def count(library, loops):
    for way in WAYS:
        for number, whose in enumerate(("own", "vram")):
            library.cost_use(number)
            loops[way][0](50, COUNTED_SIZE)
            counted = getattr(library, f"counted_{way}_{whose}")
            counted.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int64]
            counted(ctypes.cast(loops[way][1], ctypes.c_void_p), COUNTED, COUNTED_SIZE)


# --- outside ------------------------------------------------------------------------------------------------------------------------------
def instructions(command, variables, work):
    """Returns {name of a counted function: instructions of all its pairs}."""
    out = f"{work}/callgrind.out"
    valgrind = ["valgrind", "--tool=callgrind", *[f"--toggle-collect=counted_{way}_{whose}" for way in WAYS for whose in ("own", "vram")], f"--callgrind-out-file={out}"]
    sim, program = command[:command.index("--") + 1], command[command.index("--") + 1:]
    subprocess.run([*sim, *valgrind, *program, "count"], env=variables, check=True, capture_output=True)
    told = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", out], capture_output=True, text=True, check=True).stdout
    return {name: int(number.replace(",", "")) for number, name in re.findall(r"^\s*([\d,]+) .*:(counted_\w+) \[", told, re.MULTILINE)}


def main():
    import torch_program as program

    sys.path.insert(0, str(program.ADAPTER))
    facts = program.facts_of(sys.argv[1])
    variables = {**program.variables_of(facts), "PYTHONPATH": str(program.ADAPTER)}
    find = "import torch, vram_torch_native as n; print(n.library_for(torch)[0])"
    native = subprocess.run([*program.SIM, sys.argv[1], "-c", find], env=variables, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as work:
        library = f"{work}/allocation_cost.so"
        program.compile_program(facts, program.HERE / "allocation_cost.cpp", library, ["-O2", "-shared", "-fPIC"])
        inside = [*program.SIM, sys.argv[1], __file__, "--inside", library, native, *facts[:3]]
        if "--count" not in sys.argv:
            return subprocess.run(inside, env=variables, check=True)
        counts = instructions(inside, variables, work)
        for way in WAYS:
            own, ours = (counts[f"counted_{way}_{whose}"] / COUNTED for whose in ("own", "vram"))
            print(f"{NAMES[way]:14} {COUNTED_SIZE:9} bytes: PyTorch {own:.0f}, vram {ours:.0f} instructions a pair", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        library, loops = install(*sys.argv[2:4], sys.argv[4:7])
        (count if sys.argv[7:] == ["count"] else measure)(library, loops)
    elif len(sys.argv) < 2:
        sys.exit(__doc__.partition("usage: ")[2].splitlines()[0])
    else:
        main()
