#!/usr/bin/env python3
"""Checks that a name in the products means one thing.

Usage: check_names.py [ROOT]

Tags of structs, enums and unions, and base names of files (x.h, x.c and x.def of one folder are one name) must occur once in the products
(tools/rooms.py). A header's guard is VR_, its room and its path there in capitals (VRAM_ and its name for a public header), so it occurs
once too. The room os is exempt, because its posix/ and wasm/ implement the same headers. Identifiers of the products, cli/ and adapters/
must use the terms of the field: no name may contain a word of VAGUE. Prints every offence as FILE:LINE and exits 1 if there is one.
"""
import re
import sys
from pathlib import Path

import rooms

# Words that mean nothing, and better ones.
VAGUE = {
    "lot": "what it is",
    "seen": "explored, cached, indexed",
    "hunt": "search",
    "notion": "kind, measure",
    "tell": "notify, write, append",
    "told": "notified, listener",
    "said": "printed, complete",
    "unsaid": "clear",
    "given": "required, block size",
    "chosen": "selection",
    "speech": "text",
}
FOLDERS_OF_WORDS = ("allocator", "recordings", "simulator", "replay", "cli", "adapters")

COMMENT_OR_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*", re.MULTILINE)
TAG = re.compile(r"\b(?:struct|enum|union)\s+(?:\w+\s*\(\([^;{}]*\)\)\s*)?(\w+)\s*\{")
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1\n", re.MULTILINE)
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")
SUFFIXES = (".c", ".h", ".def", ".cpp", ".S")


def code_of(path):
    """Returns a file's text with comments, strings and #include lines blanked. Line numbers stay."""
    text = path.read_text(encoding="utf-8")
    return re.sub(INCLUDE, "", COMMENT_OR_TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text))


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def sources(root, folder):
    return sorted(path for path in (root / folder).rglob("*") if path.suffix in SUFFIXES)


def repeated(kind, places):
    """Returns a line for every name with more than one place, at each place but the first."""
    for name, where in places.items():
        for place in where[1:]:
            yield f"{place}: {kind} {name} also stands at {where[0]}"


def tag_problems(root, paths):
    places = {}
    for path in paths:
        code = code_of(path)
        for match in TAG.finditer(code):
            places.setdefault(match.group(1), []).append(f"{path.relative_to(root)}:{line_of(code, match.start())}")
    return repeated("tag", places)


def file_problems(root, paths):
    places = {}
    for path in paths:
        # x.c and x.h of one folder are one name.
        places.setdefault(path.stem, {}).setdefault(path.parent, f"{path.relative_to(root)}:1")
    return repeated("file name", {stem: list(folders.values()) for stem, folders in places.items()})


def guard_problems(root, paths):
    for path in paths:
        if path.suffix != ".h":
            continue
        source = path.relative_to(root)
        wanted = ("VRAM_" + source.name if rooms.is_public(source) else f"VR_{rooms.room_of(source)}_{rooms.below_room(source)}").upper()
        wanted = re.sub(r"\W", "_", wanted)
        match = GUARD.search(path.read_text(encoding="utf-8"))
        if match is None:
            yield f"{source}:1: no guard; {wanted} is expected"
        elif match.group(1) != wanted:
            yield f"{source}:{line_of(match.string, match.start())}: guard {match.group(1)}, expected {wanted}"


def word_problems(root):
    for path in (path for folder in FOLDERS_OF_WORDS for path in sources(root, folder) if not rooms.is_public(path.relative_to(root))):
        code, known = code_of(path), set()
        named = [(1, path.stem)] + [(line_of(code, match.start()), match.group()) for match in IDENTIFIER.finditer(code)]
        for line, name in named:
            vague = sorted(set(name.lower().split("_")) & VAGUE.keys())
            if vague and name not in known:
                known.add(name)
                yield f"{path.relative_to(root)}:{line}: {name}: '{vague[0]}' says little; {VAGUE[vague[0]]}"


def check(root):
    """Returns every offence as 'FILE:LINE: what', and the number of files read."""
    inside = [path for path in rooms.sources(root, SUFFIXES) if rooms.room_of(path.relative_to(root)) != "os"]
    headers = inside + rooms.headers(root)
    problems = [*file_problems(root, inside), *tag_problems(root, inside), *guard_problems(root, headers), *word_problems(root)]
    return problems, len(headers)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems, files = check(root)
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} names that should be others")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
