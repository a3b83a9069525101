#!/usr/bin/env python3
"""Checks tests/coverage.md: every row has a test that exists, or a reason.

Usage: check_coverage.py [ROOT]

The last cell of a row names tests, as `file:function` (a file of tests/ without its ending, and a function that it defines and runs) or as
ctest's name (`golden.own`); or it begins with a dash and gives the reason for having no test. The page must also name every option, every
counter, and every field of the options of a history and of a snapshot. Each program of PyTorch that it names (`torch/graphs`) must be a row
of tests/real/rows.toml. Prints each problem as LINE: TEXT, and exits 1 if there is one.
"""
import re
import sys
from pathlib import Path

PAGE = "tests/coverage.md"
REASON_LETTERS = 15  # a shorter text is not a reason
LISTS = (  # (file, part of it, names in that part)
    ("allocator/config/options.def", r"(?s)(.*)", r"^VR_OPTION(?:_ALIAS)?\((\w+),"),
    ("allocator/include/vram/stats.h", r"(?s)#define VRAM_STAT_FAMILIES(.*?)\nstruct vram_stats", r"^\s+X\((\w+),"),
    ("allocator/include/vram/history.h", r"(?s)struct vram_history_options \{(.*?)\};", r"^    [^/]*?(\w+);"),
    ("allocator/include/vram/snapshot.h", r"(?s)struct vram_snapshot_options \{(.*?)\};", r"^    [^/]*?(\w+);"),
)


def functions_of(path):
    """Returns the test functions that the file defines and runs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return set(re.findall(r"^\s*def (test_\w+)\(", text, re.MULTILINE))
    defined = set(re.findall(r"^(?:static )?void (\w+)\(void \*\*", text, re.MULTILINE))
    return defined & set(re.findall(r"cmocka_unit_test\w*\((\w+)", text))


def test_functions(root):
    found = {}
    for path in sorted((root / "tests").rglob("test_*")):
        if path.suffix in (".c", ".cpp", ".py"):
            found.setdefault(path.stem, set()).update(functions_of(path))
    return found


def ctest_names(root):
    """Returns the tests that add_test() and its two relatives make in CMakeLists.txt files, with the loops around them: over lists, and
    over the files of two folders."""
    names = {f"unit.{path.stem}" for path in (root / "tests" / "unit").glob("test_*.c")}
    names |= {f"viewer.{path.name.removesuffix('.test.mjs')}" for path in (root / "viewer/web/tests").glob("*.test.mjs")}
    for path in [*(root / "tests").rglob("CMakeLists.txt"), *(root / "examples").glob("CMakeLists.txt")]:
        text = path.read_text(encoding="utf-8")
        loops = {name: items.split() for name, items in re.findall(r"foreach\((\w+) IN ITEMS ([^)]*)\)", text)}
        for name in re.findall(r"(?:add_test\(NAME |add_(?:recordings|random)_test\()([^\s)]+)", text):
            variable = re.search(r"\$\{(\w+)\}", name)
            items = loops.get(variable.group(1), []) if variable else [""]
            names.update(name.replace(variable.group(0), item) if variable else name for item in items)
    return names


def rows(text):
    """Returns (line number, cells) of every table row that is not a header."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        is_header = number < len(lines) and re.match(r"\|[-:| ]+\|$", lines[number])
        if line.startswith("|") and not is_header and not re.match(r"\|[-:| ]+\|$", line):
            yield number, [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def programs_of(root):
    """Returns the names of the rows that `make check-real` runs with the newest PyTorch."""
    path = root / "tests/real/rows.toml"
    groups = re.findall(r"environments = \[([^\]]*)\](.*?)(?=\n\[\[rows|\Z)", path.read_text(encoding="utf-8") if path.exists() else "", re.DOTALL)
    return {name for given, rest in groups if '"torch"' in given for name in re.findall(r'"(\w+)"', re.sub(r"(?s)^.*?names = ", "", rest))}


def row_problem(cells, functions, ctests, programs):
    last = cells[-1]
    for name in re.findall(r"\btorch/([a-z]\w+)(?!\.)\b", last):
        if name not in programs:
            return f"no program of make check-real is torch/{name}"
    names = re.findall(r"`([a-z_0-9]+:[a-z_0-9]+|[a-z]+\.[a-z_0-9.]+)`", last)
    for name in names:
        file, colon, function = name.partition(":")
        if colon and function not in functions.get(file, ()):
            return f"there is no test {name}"
        if not colon and name not in ctests:
            return f"ctest knows no {name}"
    if not names and not (last.startswith(("-", "\u2013", "\u2014")) and len(last) > REASON_LETTERS):
        return f"neither a test nor a reason in '{last}'"
    return None


def check(root):
    """Returns every problem as 'LINE: TEXT', and the number of rows."""
    text = (root / PAGE).read_text(encoding="utf-8")
    functions, ctests, programs = test_functions(root), ctest_names(root), programs_of(root)
    problems, count = [], 0
    for number, cells in rows(text):
        count += 1
        problem = row_problem(cells, functions, ctests, programs)
        if problem:
            problems.append(f"{PAGE}:{number}: {problem}")
    for file, part, names in LISTS:
        found = re.search(part, (root / file).read_text(encoding="utf-8"))
        found = re.findall(names, found.group(1), re.MULTILINE) if found else []
        if not found:
            problems.append(f"{file}: nothing found to look for")
        problems += [f"{PAGE}: {name} of {file} is not in it" for name in found if f"`{name}`" not in text]
    return problems, count


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems, count = check(root)
    for problem in problems:
        print(problem)
    print(f"{count} rows, {len(problems)} problems")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
