#!/usr/bin/env python3
"""Refuses words in messages and help texts that a native engineer would not write, and counts like "1 blocks" in the expected outputs.

Usage: check_words.py SOURCE_DIR [--comments]   --comments: counts the same words in comments, without failing

Messages are string literals with a space in them, of the rooms that print. It is a floor, not the goal: docs/glossary.md has the words of the field.
"""
import pathlib
import re
import sys

ROOMS = ("recordings/present", "recordings/analyze", "cli", "replay")
OUT = re.compile(r"\b(beside|whoever|nobody|somebody|anew|is none|at hand|as wanted|is told|has none|lay free|would have fitted|are wanted|is wanted|so much|"
                 r"in place of|goes by|go by|all the same|once more|is no (?:regular|plain|process|recording|page|text|size))\b")
ONE = re.compile(r"(?<![\d.,\w])1 (?:more |other |live )?(blocks|allocations|events|segments|gaps|steps|frames|devices|streams|calls|replays|settings|times)\b")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def lines_of(path, comments):
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        code, _, comment = line.partition("//")
        if comments:
            yield number, comment
        elif '"' in code and not code.lstrip().startswith(("#include", "*")):
            yield number, " ".join(text for text in LITERAL.findall(line) if " " in text)


def main():
    root, comments = pathlib.Path(sys.argv[1]), "--comments" in sys.argv
    found = []
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*") if path.suffix in (".c", ".h", ".def")):
        found += [f"{path.relative_to(root)}:{number}: '{word}'" for number, text in lines_of(path, comments) for word in OUT.findall(text)]
    if not comments:
        for path in sorted((root / "tests").glob("*/golden/*.txt")):
            found += [f"{path.relative_to(root)}:{number}: '{match[0]}'" for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1)
                      for match in [ONE.search(line)] if match]
        print("\n".join(found))
    print(f"{len(found)} words that should be others")
    sys.exit(1 if found and not comments else 0)


if __name__ == "__main__":
    main()
