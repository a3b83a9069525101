#!/usr/bin/env python3
"""Keeps the outputs in the README and in the guides about reports current.

Usage: readme.py VRAM [--write]

Runs the command (`$ vram ...`) of every ```console block of PAGES with the program VRAM, in the root of the project, and compares its
output with the block; with --write, replaces the block. Exits 1 if an output differs.
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", *(f"docs/guides/{name}.md" for name in ("out-of-memory", "profile", "ranks", "tune")))  # each has such a block
BLOCK = re.compile(r"^```console\n\$ (vram [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def output_of(program, command):
    words = [program, *shlex.split(command)[1:]]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if result.returncode not in (0, 1):
        sys.exit(f"{command}: exit code {result.returncode}: {result.stderr}")
    return result.stdout


def renewed(program, text):
    """Returns a page's text with today's outputs, its commands, and those with other outputs now."""
    commands, stale = [], []

    def renew(match):
        command, printed = match.group(1), output_of(program, match.group(1))
        commands.append(command)
        if printed != match.group(2):
            stale.append(command)
        return f"```console\n$ {command}\n{printed}```"

    return BLOCK.sub(renew, text), commands, stale


def main():
    program, write = str(Path(sys.argv[1]).resolve()), "--write" in sys.argv[2:]
    failed = False
    for name in PAGES:
        page = ROOT / name
        text, commands, stale = renewed(program, page.read_text(encoding="utf-8"))
        if write:
            page.write_text(text, encoding="utf-8")
            continue
        failed = failed or bool(stale) or not commands
        for command in stale:
            print(f"{name} shows another output of `{command}`; `tools/readme.py build/release/cli/vram --write` renews it")
        if not commands:
            print(f"{name} shows no command")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
