#!/usr/bin/env python3
"""Writes the lists of keys of docs/reference/json.md from the lists of facts in the sources (allocator/base/json_rows.h says what a row is).

A list is a macro NAME_FACTS(X). In the page its keys follow the line `<!--NAME_FACTS-->`; several lists that are written into one object share such a
line.

usage: json_reference.py [--check]   --check: writes nothing; 1 when the page is not what would be written, or lacks a list"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/json.md"
FOLDERS = ("recordings", "replay", "cli")
TYPES = {"U64": "integer", "I64": "integer", "BOOL": "boolean", "TEXT": "string", "DOUBLE": "number", "MS": "number", "OBJECT": "object",
         "MAP": "object", "ARRAY": "array", "NAME": "string", "NUMBER": "number"}
UNITS = {"_bytes": "bytes", "_ms": "ms", "_us": "µs", "_seconds": "s"}
KEYS = re.compile(r"^(<!--((?:\w+_FACTS ?)+)-->\n)(?:- .*\n)*", re.M)


def arguments(text):
    """Returns the arguments of a macro call, and the text after it. `text` starts just after the opening parenthesis."""
    found, start, depth, i = [], 0, 0, 0
    while True:
        if text[i] == '"':
            i = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, i).end()
            continue
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}" and depth:
            depth -= 1
        elif text[i] == ")" or text[i] == "," and not depth:
            found.append(text[start:i].strip())
            start = i + 1
            if text[i] == ")":
                return found, text[i + 1:]
        i += 1


def string(text):
    """Returns the characters of adjacent string literals."""
    pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    return re.sub(r"\\(.)", r"\1", "".join(pieces))


def read_list(body):
    rows = []
    while "X(" in body:
        row, body = arguments(body.partition("X(")[2])
        kind, key = row[0], string(row[1]) if row[1].startswith('"') else row[1]
        rows.append((kind, key, row[-2], string(row[-1])))
    return rows


def read_lists():
    lists = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.[ch]")):
        text = re.sub(r"\s*\\\n\s*", " ", path.read_text(encoding="utf-8"))
        for name, body in re.findall(r"^#define (\w+_FACTS)\(X\)(.*)$", text, re.M):
            if name in lists:
                sys.exit(f"{path.relative_to(ROOT)}: a second list {name}")
            lists[name] = read_list(body)
    return lists


def line(kind, key, absent, sentence):
    """Returns the line of a key. Lines without a type are integers, and the keys of an object follow: the page says so at its beginning."""
    unit = next((unit for suffix, unit in UNITS.items() if key.endswith(suffix) and kind in ("U64", "I64", "MS", "DOUBLE")), TYPES[kind])
    suffix = " or `null`" if absent.startswith("NULL") else ", optional" if absent.startswith("OMIT") else ""
    shown = "" if not suffix and unit in ("integer", "bytes") else f" ({unit}{suffix})"
    return f"- `{key}`{shown}: {re.sub(r' [(]see below[)](?=[.;]|$)', '', sentence)}\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__.partition("usage: ")[2])
    lists, shown, text = read_lists(), set(), PAGE.read_text(encoding="utf-8")
    for _, names in KEYS.findall(text):
        shown.update(names.split())
    wrong = [f"no list {name}" for name in sorted(shown - lists.keys())] + [f"no place for {name}" for name in sorted(lists.keys() - shown)]
    if wrong:
        sys.exit(f"{PAGE.relative_to(ROOT)}: {'; '.join(wrong)}")
    made = KEYS.sub(lambda found: found[1] + "".join(line(*row) for name in found[2].split() for row in lists[name]), text)
    if sys.argv[1:] and made != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what the lists of facts say: run tools/json_reference.py")
    if not sys.argv[1:]:
        PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
