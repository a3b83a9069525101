"""Shared by the programs of `make check-real`: a row is a function; `python3 FILE ROW` runs it and prints "ok" at the end.

The programs are ordinary ones without knowledge of a simulator. They check sizes, shapes, counts, order, PyTorch's figures of its
memory, and small values."""
import json
import os
import sys
import time

_rows = {}
# After the last backward pass, PyTorch's own thread releases Python objects. If it takes Python's lock while the interpreter ends, Python ends the
# thread (until Python 3.14), and C++ answers that with std::terminate(). PyTorch 2.15 ended so in 3 runs of 10 on a busy machine.
AUTOGRAD_SECONDS = 0.5


def row(function):
    _rows[function.__name__] = function
    return function


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in _rows:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(_rows)}")
    _rows[sys.argv[1]](*sys.argv[2:])
    say_ok()


def say_ok():
    """Called at the end of every program."""
    print("ok", flush=True)
    if "torch" in sys.modules:
        time.sleep(AUTOGRAD_SECONDS)


def answer(name, value):
    """Records what a PyTorch function returned: --compare requires equal answers with either allocator (same_memory.py)."""
    if os.environ.get("VRAM_REAL_MEMORY"):
        with open(os.path.join(os.environ["VRAM_REAL_MEMORY"], "answers"), "a") as file:
            file.write(json.dumps([name, value]) + "\n")


def peak_is(torch, low_bytes, high_bytes=None, device=None):
    """Checks that PyTorch's peak lies between the bounds. A program whose work never reached the device has no peak."""
    peak = torch.cuda.max_memory_allocated(device)
    assert low_bytes <= peak and (high_bytes is None or peak <= high_bytes), f"peak of {peak} bytes, wanted {low_bytes} to {high_bytes}"
    assert torch.cuda.max_memory_reserved(device) >= peak
