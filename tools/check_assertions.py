#!/usr/bin/env python3
"""Checks the statements of docs/internals/assertions.md about the assertions in the shipped build.

Usage: check_assertions.py [ROOT]

The rooms with assertions must be those in the page's table. Other folders of the products may have none: the command, the adapters and the
stand-ins only handle input. An assertion may change nothing, so that a build without assertions behaves the same: no assignment, and no
increment or decrement. Prints each offence as FILE:LINE and exits 1 if there is one.
"""
import re
import sys
from pathlib import Path

import rooms

WITHOUT = ("cli", "adapters", "simulator/standins", "viewer/engine", *map(str, rooms.HEADERS))
ASSERTION = re.compile(r"(?<!_)\bassert\s*\((.*)")
# An "=" that is not a comparison; text in quotes does not count.
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
