#!/usr/bin/env python3
"""Keeps the outputs in the README true.

Usage: readme.py VRAM [--write]

Runs the command (`$ vram ...`) of every ```console block of README.md with the program VRAM, in the root of the project, and
compares what it prints with the block; with --write, puts it into the block. Exits 1 when something differs.
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```console\n\$ (vram [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def output_of(program, command):
    words = [program, *shlex.split(command)[1:]]
    result = subprocess.run(words, cwd=README.parent, capture_output=True, text=True, timeout=120)
    if result.returncode not in (0, 1):
        sys.exit(f"{command}: exit code {result.returncode}: {result.stderr}")
    return result.stdout


def main():
    program, write = str(Path(sys.argv[1]).resolve()), "--write" in sys.argv[2:]
    text = README.read_text(encoding="utf-8")
    stale = []

    def renew(match):
        printed = output_of(program, match.group(1))
        if printed != match.group(2):
            stale.append(match.group(1))
        return f"```console\n$ {match.group(1)}\n{printed}```"

    renewed, blocks = BLOCK.subn(renew, text)
    if write:
        README.write_text(renewed, encoding="utf-8")
        return 0
    for command in stale:
        print(f"README.md shows another output of `{command}`; `tools/readme.py build/release/cli/vram --write` renews it")
    return 1 if stale or blocks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
