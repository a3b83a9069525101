#!/usr/bin/env python3
"""Checks that every command keeps to the width of its terminal: on pseudo-terminals of 60, 80 and 120 columns, no printed line is wider.

Usage: check_width.py VRAM FOLDER...   (folders of recordings)

Two kinds of lines may be wider: lines with text to paste (a setting, a command: PASTED), and lines with a word that cannot be broken (a path,
a frame) and is at least as wide as the terminal less 24 columns.
"""
import concurrent.futures
import fcntl
import os
import pathlib
import re
import struct
import subprocess
import sys
import termios
import unicodedata

WIDTHS = (60, 80, 120)
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COMMANDS = "fit report view replay convert export run tune symbolize sim doctor flame diff leaks forecast top attach mcp".split()
MOST_BYTES = 400_000  # most bytes of a recording, because `tune` replays it many times
MOST_FILES = 30  # most files of a folder; the smallest are taken
FIT = pathlib.Path(__file__).resolve().parent.parent / "fit"
# A model that fits on some cards, with steps that repeat; the same one that fails; and one whose activations are too large for some cards.
TRAIN = """
import sys, torch
class Model(torch.nn.Module):
    def forward(self): return torch.empty(int(sys.argv[1]) << 30)
model, optimizer = Model(), torch.Optimizer()
weights = torch.empty(64 << 20)
def step():
    loss = model()
    gradients = torch.autograd._engine_run_backward(64 << 20)
    torch.free(loss)
    return gradients
for i in range(8):
    gradients = step()
    optimizer.step()
    [torch.free(one) for one in gradients]
    if i == int(sys.argv[2]): raise RuntimeError("the program does not know what to do with a batch of this size: it is neither a power of two nor 1")
"""
# Text to paste is not broken: a setting, an example's command line, a usage line, a word without spaces that fills the line by itself.
PASTED = re.compile(r"PYTORCH_\w+=|^\s*(\w+=\S+ )*(vram|ssh|claude|unset) |^Usage|^\s*\S+$")


def columns_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def printed(arguments, columns):
    """Returns the command's output on a terminal of this many columns."""
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(FIT / "fake")}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL, env=environment)
    os.close(writer)
    pieces = []
    while True:
        try:
            piece = os.read(reader, 65536)
        except OSError:
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(reader)
    process.wait(timeout=120)
    return ESCAPE.sub("", b"".join(pieces).decode(errors="replace")).replace("\r", "")


def invocations(vram, files):
    for command in COMMANDS:
        yield [vram, command, "--help"]
    yield [vram, "--help"]
    yield [vram, "doctor"]
    yield [vram, "doctor", "--sim"]
    for options, gigabytes, failing in (("--card=t4,rtx4090,h100", 4, 9), ("--card=t4,rtx4090", 30, 9), ("--all", 30, 9), ("--memory=22GiB", 30, 9), ("--card=h100", 4, 2)):
        yield [vram, "fit", "-q", options, "--", sys.executable, "-c", TRAIN, str(gigabytes), str(failing)]
    for path in files:
        yield [vram, "report", "--no-cure", path]
        yield [vram, "leaks", path]
        if os.path.getsize(path) < MOST_BYTES:
            yield [vram, "tune", path]
    for before, after in zip(files, files[1:]):
        yield [vram, "diff", before, after]


def wide_lines(job):
    arguments, columns = job
    text = printed(arguments, columns)
    name = " ".join(arguments[1:4] if "-c" in arguments else arguments[1:])
    if not text.strip():
        return [f"{name} at {columns} columns: nothing was printed"] if "--help" in arguments or "fit" in arguments else []
    return [f"{name} at {columns} columns: {columns_of(line)}: {line}" for line in text.split("\n")
            if columns_of(line) > columns and not PASTED.search(line) and max(map(columns_of, line.split())) < columns - 24]


def main():
    vram, *folders = sys.argv[1:]
    files = sorted(str(path) for folder in folders for path in pathlib.Path(folder).rglob("*") if path.suffix in (".pickle", ".json", ".html", ".gz", ".vram")
                   and "facts" not in path.parts)
    files = sorted(sorted(files, key=os.path.getsize)[:MOST_FILES])
    jobs = [(arguments, columns) for arguments in invocations(vram, files) for columns in WIDTHS]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wide = [line for lines in pool.map(wide_lines, jobs) for line in lines]
    print("\n".join(wide[:200]))
    print(f"{len(jobs)} outputs of {len(files)} recordings at {WIDTHS}, {len(wide)} lines too wide")
    sys.exit(1 if wide else 0)


if __name__ == "__main__":
    main()
