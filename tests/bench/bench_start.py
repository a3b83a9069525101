#!/usr/bin/env python3
"""Measures starting PyTorch under `vram sim` against the same interpreter without it: `import torch`, and with a first tensor on the device.
usage: bench_start.py PYTHON [TIMES]   PYTHON: of an environment with PyTorch and NVIDIA's wheels (which plain PyTorch needs to start)
Starts each in turn; prints the minimum CPU time and wall time, and the ratio. Exit code 1 above 1.2."""
import os
import pathlib
import subprocess
import sys
import time

VRAM = pathlib.Path(os.environ.get("VRAM_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build/release")) / "cli/vram"
MOST = 1.2
IMPORT, TENSOR = "import torch", "import torch; torch.zeros(1, device='cuda')"


def start(command):
    """Returns the command's seconds of CPU time and wall time."""
    before, begun = os.times(), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, time.monotonic() - begun


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.partition("usage: ")[2].splitlines()[0])
    python, times = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    simulated = [VRAM, "sim", "--"]
    starts = {"plain": [python, "-c", IMPORT], "vram sim": [*simulated, python, "-c", IMPORT], "vram sim, a tensor": [*simulated, python, "-c", TENSOR]}
    for command in starts.values():
        start(command)  # load files into memory
    taken = {name: [] for name in starts}
    for _ in range(times):
        for name, command in starts.items():
            taken[name].append(start(command))
    least = {name: tuple(min(column) for column in zip(*rows)) for name, rows in taken.items()}
    for name, (processor, clock) in least.items():
        print(f"{name:20} {processor:6.2f} s of the processor  {clock:6.2f} s  {processor / least['plain'][0]:5.2f} times  {clock / least['plain'][1]:5.2f} times")
    sys.exit(0 if least["vram sim"][0] <= MOST * least["plain"][0] else 1)


if __name__ == "__main__":
    main()
