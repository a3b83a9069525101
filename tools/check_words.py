#!/usr/bin/env python3
"""Refuses words that a native engineer would not write, sentences that are too long, and counts like `1 blocks`.

Usage: check_words.py SOURCE_DIR               checks messages, help texts and expected outputs
       check_words.py SOURCE_DIR --comments    checks the comments of all sources
       check_words.py SOURCE_DIR --pages [PATH...]   checks all pages (*.md), or those at or below these paths of the tree

Messages are string literals with a space in them, of C and Python code that users run. It is a floor, not the goal: docs/glossary.md has the words of the field.
"""
import ast
import pathlib
import re
import sys

ROOMS = ("allocator", "recordings", "replay", "simulator", "cli", "adapters", "packaging/wheel/vram")
OUT = re.compile(r"\b(beside|whoever|nobody|somebody|anew|is none|at hand|as wanted|is told|has none|lay free|would have fitted|are wanted|is wanted|so much|"
                 r"in place of|goes by|go by|all the same|once more|is no (?:regular|plain|process|recording|page|text|size))\b")
# Out in messages only: a comment may quote them.
STIFF = re.compile(r"(?<!there )\bis no (?!longer\b)\w+|\b(?:no|out of) host memory\b|\bis none of\b|\bunder way\b|\bnot? (?:to )?be had\b|\bas asked for\b|\bends too early\b|"
                   r"\bcould not be made\b|\bplain file\b|\bgiven? back\b|\b(?:that|which|who) (?:has|have) not\b|\bmay not\b|\bdoes not tell\b|\bis of (?:no|another)\b")
ONE = re.compile(r"(?<![\d.,\w])1 (?:more |other |live )?(blocks|allocations|events|segments|gaps|steps|frames|devices|streams|calls|replays|settings|times)\b")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def words_of(text, comments):
    return OUT.findall(text) + ([] if comments else STIFF.findall(text))


def lines_of(path, comments):
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        code = line.partition("//")[0]
        if '"' in code and not code.lstrip().startswith(("#include", "*")):
            yield number, " ".join(text for text in LITERAL.findall(line) if " " in text)


def messages_of_python(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # and other strings without a use
    return [(node.lineno, node.value) for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and node not in documents]


def main():
    root, comments = pathlib.Path(sys.argv[1]), "--comments" in sys.argv
    found = []
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*") if path.suffix in (".c", ".cpp", ".h", ".def")):
        found += [f"{path.relative_to(root)}:{number}: '{word}'" for number, text in lines_of(path, comments) for word in words_of(text, comments)]
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*.py") if not comments):
        found += [f"{path.relative_to(root)}:{number}: '{word}'" for number, text in messages_of_python(path) for word in words_of(text, comments)]
    if not comments:
        for path in sorted((root / "tests").glob("*/golden/*.txt")):
            found += [f"{path.relative_to(root)}:{number}: '{match[0]}'" for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1)
                      for match in [ONE.search(line)] if match]
        print("\n".join(found))
    print(f"{len(found)} words that should be others")
    sys.exit(1 if found and not comments else 0)


if __name__ == "__main__":
    main()
