#!/usr/bin/env python3
"""Checks what docs/internals/assertions.md says of the assertions that are on in what is shipped.

Usage: check_assertions.py [ROOT]

Rooms of the products that have assertions are those that the page names in its table, and no other folder of the product has one: the
command, the adapters and the stand-ins meet nothing but input. An assertion changes nothing, so that a build without them does the same: no
assignment, and no step of a counter. Prints each offence as FILE:LINE and exits 1 when there is one.
"""
import re
import sys
from pathlib import Path

import rooms

WITHOUT = ("cli", "adapters", "simulator/standins", "viewer/engine", *map(str, rooms.HEADERS))
ASSERTION = re.compile(r"(?<!_)\bassert\s*\((.*)")
# "=" that compares nothing; text in quotes is none of it.
CHANGES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")


SUFFIXES = (".c", ".h", ".cpp", ".hpp")


def below(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and "node_modules" not in path.parts)


def assertions(paths):
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = ASSERTION.search(line.split("//")[0])
            if found and not line.lstrip().startswith("#"):
                yield path, number, found.group(1)


def offences(root):
    page = root / "docs/internals/assertions.md"
    if not page.is_file():
        return ["docs/internals/assertions.md:1: no such page"]
    named = {room for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|") for room in re.findall(r"`(?:allocator/|recordings/|simulator/|(?=replay))(\w+)`", line)}
    found, asserting = [], set()
    for path, number, condition in assertions(rooms.sources(root, SUFFIXES)):
        asserting.add(rooms.room_of(path.relative_to(root)))
        if CHANGES.search(re.sub(r'"[^"]*"', "", condition)):
            found.append(f"{path.relative_to(root)}:{number}: an assertion changes something")
    found += [f"docs/internals/assertions.md:1: {room} has assertions and is in no row of the page" for room in sorted(asserting - named)]
    found += [f"docs/internals/assertions.md:1: {room} has no assertion" for room in sorted(named - asserting)]
    found += [f"{path.relative_to(root)}:{number}: an assertion where only input is met" for folder in WITHOUT for path, number, _ in assertions(below(root / folder))]
    return found


def main():
    found = offences(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found) if found else "assertions are where the page says")
    return len(found) != 0


if __name__ == "__main__":
    sys.exit(main())
