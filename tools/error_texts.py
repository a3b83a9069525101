#!/usr/bin/env python3
"""Asks shared CUDA runtimes for the names and texts of all errors, and writes them as a table: standins/facts/cudart_errors.def.

    tools/error_texts.py MAJOR=LIBCUDART...           e.g. 11=libcudart.so.11.0 12=libcudart.so.12 13=libcudart.so.13
    tools/error_texts.py --check MAJOR=LIBCUDART...   compares instead: exits 1 where the table says otherwise

These two functions need neither a driver nor a device. A row: E(number, name, text, the oldest of the versions that knows it). Texts are the newest's.
"""
import ctypes
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "standins" / "facts" / "cudart_errors.def"
HEAD = (
    "// Made by tools/error_texts.py out of shared CUDA runtimes; not edited by hand.\n"
    "// E(number, name, text, oldest major version of the runtime that knows it), sorted by number. No include guard.\n"
)
UNKNOWN = "unrecognized error code"


def errors_of(path):
    library = ctypes.CDLL(path)
    library.cudaGetErrorName.restype = library.cudaGetErrorString.restype = ctypes.c_char_p
    known = {}
    for number in range(11000):
        name = library.cudaGetErrorName(number).decode()
        if name != UNKNOWN:
            known[number] = (name, library.cudaGetErrorString(number).decode())
    return known


def table(arguments):
    rows = {}
    for major, path in sorted((int(text.split("=")[0]), text.split("=", 1)[1]) for text in arguments):
        for number, (name, text) in errors_of(path).items():
            rows[number] = (name, text, rows[number][2] if number in rows else major)
    lines = []
    for number, (name, text, since) in sorted(rows.items()):
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        line = f'E({number}, {name}, "{quoted}", {since})'
        lines.append(line if len(line) <= 140 else f'E({number}, {name},\n  "{quoted}", {since})')
    return HEAD + "\n".join(lines) + "\n"


def main(arguments):
    check = arguments[:1] == ["--check"]
    if not arguments[check:]:
        sys.exit(__doc__)
    made = table(arguments[check:])
    if not check:
        TABLE.write_text(made, encoding="utf-8")
    elif made != TABLE.read_text(encoding="utf-8"):
        sys.exit(f"{TABLE.name} is not what these libraries say")


main(sys.argv[1:])
