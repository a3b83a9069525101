#!/usr/bin/env python3
"""Tests that the shipped files are hardened, as readelf and nm see them in the ELF files, whatever flags were given.

Usage: check_hardening.py READELF FILE|FOLDER...

Each FILE (a program or a shared library) needs: relocations that are read-only before it runs (GNU_RELRO with BIND_NOW), a stack that is
not executable, the stack protector's failure function, and, with --fortified, a fortified function of the C library. A program must be
position-independent.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys


def readelf(tool, *arguments):
    return subprocess.run([tool, "--wide", *arguments], check=True, capture_output=True, text=True).stdout


def problems_of(tool, path, fortified):
    segments, dynamic = readelf(tool, "--program-headers", path), readelf(tool, "--dynamic", path)
    symbols = readelf(tool, "--dyn-syms", path)
    undefined = set(re.findall(r" UND (\w+)", symbols))
    if "GNU_RELRO" not in segments:
        yield "its relocations stay writable (no GNU_RELRO)"
    if not re.search(r"BIND_NOW|\bNOW\b", dynamic):
        yield "its symbols are bound late, so that their table stays writable (no BIND_NOW)"
    stack = re.search(r"GNU_STACK.*", segments)
    if stack is None or re.search(r"\bRWE\b", stack.group(0)):
        yield "its stack is executable"
    if not re.search(r"^\s*Type:\s+DYN", readelf(tool, "--file-header", path), re.M):
        yield "it is not position-independent"
    if "__stack_chk_fail" not in undefined:
        yield "it has no stack protector"
    # A copy into a buffer of unknown size has no checked form, so memcpy alone proves nothing.
    copies = undefined & {"strcpy", "strncpy", "strcat", "strncat", "sprintf", "vsprintf", "read", "fgets", "fread", "recv"}
    checked = any(re.fullmatch(r"__\w+_chk", name) and name != "__stack_chk_fail" for name in undefined)
    if fortified and copies and not checked:
        yield "it calls no checked string function (_FORTIFY_SOURCE)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fortified", action="store_true")
    parser.add_argument("readelf")
    parser.add_argument("files", nargs="+", help="files, or folders of shared libraries")
    arguments = parser.parse_args()
    failed = 0
    files = [str(path) for name in arguments.files for path in (sorted(pathlib.Path(name).glob("*.so*")) if os.path.isdir(name) else [name])]
    files = [path for path in files if not path.endswith(".map")]
    for path in files:
        for problem in problems_of(arguments.readelf, path, arguments.fortified):
            print(f"{path}: {problem}")
            failed += 1
    print(f"{len(files)} files, {failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
