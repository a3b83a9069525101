#!/usr/bin/env python3
"""Checks from the #include lines which rooms depend on which.

Usage: check_floors.py [ROOT]

A room of a product (tools/rooms.py) may include itself, the rooms listed for it, and the public headers. Rooms above the library (cli,
adapters, examples) see only public headers and their own folder. A stand-in may include itself and the rooms listed for it. Of the
products, only allocator/os/posix includes headers of the operating system. Prints every include that breaks a rule as FILE:LINE, and exits
1 if there is one.
"""
import re
import sys
from pathlib import Path

import rooms

BELOW = {
    "base": "",
    "os": "base",
    "model": "base",
    "config": "base os model",
    "history": "base os model",
    "driver": "base os",
    # Stream-ordering errors, from events: it knows neither CUDA nor the simulator.
    "check": "base",
    "sim": "base os driver check",
    # The core does not fill a model. It sends records, and its listeners (history, replay) write them into one.
    "core": "base os config history driver",
    "host": "base os config history driver",
    # Graphs use the core's pools and captures, so they are one floor above it, like replay.
    "graph": "base os config driver core",
    "library": "base os config driver core",
    # Answers what a program asks an allocator: counters, one address, all blocks. The core does not call it.
    "inspect": "base os config history driver core",
    # The sanitizer of verify:True, which vram_create() attaches to the core's seam (core/verifier.h).
    "verify": "base os config history driver core",
    # Records and shows a running allocator: the core's listener, and its state as a model. One floor above the core.
    "live": "base os model config history driver core host",
    "snapshot": "base os model config history",
    # Uses only JSON's scanner of the readers, because a device's other users are recorded as a setting.
    "analyze": "base os model config snapshot",
    "explore": "base os model config analyze replay present",
    "export": "base os model config analyze",
    "replay": "base os model config history driver sim core host live snapshot analyze",
    # Facts of recordings and replays as text and JSON.
    "present": "base model config analyze replay",
    # vram_create() with the recording that the environment asks for: histories, and pages with their cures. It is above the rooms that it combines.
    "entry": "base os model config history driver core host verify live replay",
}
# Libraries that foreign programs load instead of NVIDIA's. One is built on the simulated device, or uses another one at run time (libcudart
# uses libcuda), but never uses the library as a whole.
STANDINS = {
    "standins/common": "",
    "standins/front": "",
    "standins/libcuda": "base os driver check sim standins/common standins/facts",
    "standins/libnvidia-ml": "base driver sim standins/common standins/facts",
    "standins/libcudart": "base standins/common standins/facts",
    "standins/cublas": "standins/common",
    "standins/cudnn": "standins/common",
    "standins/cufft": "standins/common",
    "standins/curand": "standins/common",
    "standins/cusolver": "standins/common",
    "standins/cusparse": "standins/common",
    "standins/nccl": "standins/common",
    "standins/hip": "driver sim standins/common",
    "standins/cupti": "standins/common",
    "standins/cusparselt": "standins/common",
    "standins/cufile": "standins/common",
    "standins/nvshmem": "standins/common",
    "standins/nvtx": "standins/common",
    "standins/nvenc": "standins/common",
}
PUBLIC_ONLY = ("cli", "adapters", "examples", "viewer")
# The page's engine and the command of WebAssembly are compiled from the rooms themselves, and give their hash tables random bits. The
# command prints JSON with the library's own writer. `vram sim --missing` reads the stand-ins' counts, and makes the file by which processes
# find each other; the doctor says which driver they are.
BESIDES = {("viewer", "allocator/base/hash.h"), ("cli", "allocator/base/hash.h"), ("cli", "allocator/base/json.h"), ("cli", "allocator/base/json_rows.h"), ("cli", "allocator/base/text.h"), ("cli", "simulator/standins/common/missing.h"), ("cli", "simulator/standins/common/rank_calls.h"), ("cli", "simulator/standins/common/reads.h"), ("cli", "simulator/standins/common/session.h"),
           ("cli", "simulator/standins/common/read_values.h"), ("cli", "simulator/standins/common/own_runtime.h"),
           ("cli", "simulator/standins/facts/cuda.def"),
           ("cli", "simulator/standins/common/check_lines.h"),
           ("cli", "simulator/check/check.h")}  # the kinds that `vram check --suppress` takes

C_HEADERS = set(
    """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool stddef
    stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype""".split()
) | {"regex"}  # defined by POSIX, and in the C library of WebAssembly: recordings/analyze/text_search.c
# The headers of the C library that the products may use. Threads, clocks and signals go through os.h.
NOT_IN_ROOMS = {"threads", "time", "signal", "setjmp", "locale"}
SYSTEM_FOLDERS = ("allocator/os/posix/",)

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def resolve(root, source, name):
    """Returns the included file relative to root, found like the compiler finds it; None if it does not exist."""
    for folder in (source.parent, *rooms.ROOTS, *rooms.HEADERS):
        candidate = root / folder / name
        if candidate.is_file():
            return candidate.resolve().relative_to(root)
    return None


def quoted_problem(root, source, name):
    target = resolve(root, source, name)
    if target is None:
        return "no such file"
    here, there = rooms.room_of(source), rooms.room_of(target)
    if here == "include" and target.suffix == ".hpp" and source.suffix != ".hpp":
        return "a header of C++ in one of C"
    if here == there or (there == "include" and here != "include"):
        return None
    if here == "include":
        return "a public header may include public headers only"
    if here in PUBLIC_ONLY and (here, target.as_posix()) in BESIDES:
        return None
    if here in PUBLIC_ONLY:
        return f"{here} may include public headers only, not {there}"
    below = STANDINS if here.startswith("standins/") else BELOW
    if here not in below:
        return f"{here} is no room that this script knows"
    if there not in below[here].split():
        return f"{here} may not look at {there}"
    return None


def angle_problem(source, name):
    text = source.as_posix()
    if rooms.is_standin(source) or source.parts[0] not in rooms.PRODUCTS or text.startswith(SYSTEM_FOLDERS) or source.suffix == ".hpp":
        return None  # an adapter for a C++ library includes that library's headers
    stem = name[:-2] if name.endswith(".h") else name
    if stem not in C_HEADERS:
        return "headers of the operating system belong into allocator/os/posix"
    if stem in NOT_IN_ROOMS:
        return "this part of the C library is reached through os/os.h"
    return None


def check(root):
    """Returns every broken rule as 'FILE:LINE: include NAME: reason', and the number of files read."""
    problems, files = [], 0
    folders = [root / name for name in (*rooms.PRODUCTS, *PUBLIC_ONLY)]
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".c", ".h", ".def", ".cpp", ".hpp")):
            files += 1
            source = path.relative_to(root)
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                quote, name = match.groups()
                problem = quoted_problem(root, source, name) if quote == '"' else angle_problem(source, name)
                if problem:
                    problems.append(f"{source}:{number}: include {name}: {problem}")
    return problems, files


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems, files = check(root)
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} includes that look up or sideways")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
