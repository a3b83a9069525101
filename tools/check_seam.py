#!/usr/bin/env python3
"""Checks that paged memory and sleep stay behind the interface of sources (allocator/core/source/source_ops.h).

Usage: check_seam.py [ROOT]

At most LIMIT lines of the allocator outside allocator/core/source and allocator/core/sleep may name them. A line names them if "paged" or
"sleep" is part of an identifier or a word of a comment. Not counted are the public headers, the options' room, the operating system's room
(where threads sleep), text in quotation marks, and names that the public headers and the options' table define (PUBLIC). Prints the lines,
and exits 1 if there are more than LIMIT.
"""
import re
import sys
from pathlib import Path

LIMIT = 10
NAMING = re.compile(r"paged|asleep|sleep", re.IGNORECASE)
PUBLIC = re.compile(r"VRAM_ASLEEP|asleep_bytes|options\.(?:paged|sleepable)|#include \"vram/sleep\.h\"")
TEXT = re.compile(r"\"(?:\\.|[^\"\\])*\"")
OUTSIDE = ("include", "config", "os", "core/source", "core/sleep")


def naming_lines(root):
    allocator = root / "allocator"
    for file in sorted((*allocator.rglob("*.c"), *allocator.rglob("*.h"))):
        if any(file.is_relative_to(allocator / folder) for folder in OUTSIDE):
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            named = PUBLIC.sub("", line)
            if NAMING.search(named if named.startswith("#include") else TEXT.sub("", named)):
                yield f"{file.relative_to(root)}:{number}: {line.strip()}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    lines = list(naming_lines(root))
    print("\n".join(lines))
    print(f"{len(lines)} lines name paged memory or sleep outside of their folders, at most {LIMIT} may")
    return 1 if len(lines) > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
