#!/usr/bin/env python3
"""Runs the first program of docs/guides/verify.md as the page says: what the page shows has to be printed, line by line, with others in between
because the page shortens the stacks. Usage: check_page.py VRAM LIBVRAM LIBCUDART"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VRAM, LIBVRAM, LIBCUDART = sys.argv[1:]


def without_own_lines(line):
    """Leaves out where the library was built and the line numbers of its source, which change with each edit."""
    return re.sub(r"\S*(allocator/\S+\.c):\d+", r"\1", line)


def main():
    page = (ROOT / "docs/guides/verify.md").read_text(encoding="utf-8")
    program = re.search(r"^```c\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    shown = re.search(r"^    \$ (\S+=\S+) vram sim -- \./train\n((?:    .*\n)+)", page, re.MULTILINE)
    setting, lines = shown[1].split("=", 1), [without_own_lines(line.strip()) for line in shown[2].splitlines() if line.strip() != "..."]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.c").write_text(program, encoding="utf-8")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-g", "-O0", *(f"-I{path}" for path in sorted(ROOT.glob("*/include"))), "train.c", "-o", "train",
                        LIBVRAM, LIBCUDART, f"-Wl,-rpath,{Path(LIBVRAM).parent}"], check=True, cwd=folder)
        result = subprocess.run([VRAM, "sim", "--", "./train"], capture_output=True, text=True, check=False, cwd=folder, timeout=60,
                                env={**os.environ, setting[0]: setting[1]})
    printed = [without_own_lines(line.strip().replace(folder + "/", "")) for line in result.stderr.splitlines()]
    for line in lines:
        if line not in printed:
            sys.exit(f"the page shows what is not printed here:\n{line}\n\n{result.stderr}")
        printed = printed[printed.index(line) + 1:]
    print("ok")


if __name__ == "__main__":
    main()
