#!/usr/bin/env python3
"""Checks that comments and pages cite only existing pages and sections.

Usage: check_citations.py [ROOT]

A citation is a page's name, and at most one of its sections: `allocator.md §best-fit`, `formats/recording.md`. A page is named by its path
from the root, by the end of that path, or from the page that cites it; a section by the anchor of its heading, or by the heading. Numbers
of sections of other documents ("some-paper 3.1.6", "§7.5") are refused, because the tree itself must contain its foundations. Prints each
dead citation as FILE:LINE and exits 1 if there is one.
"""
import re
import sys
from pathlib import Path

FOLDERS = ("allocator", "recordings", "simulator", "replay", "cli", "adapters", "tests", "viewer/engine", "viewer/web", "tools", "examples", "packaging/cmake", "docs")
SUFFIXES = {".c", ".h", ".def", ".cpp", ".S", ".py", ".sh", ".ts", ".mjs", ".html", ".cmake", ".txt", ".md", ".1"}
# These contain examples of dead citations, or names of pages that are made only for the site.
EXEMPT = {"tools/check_citations.py", "tests/house/test_checkers.py", "tests/house/test_site.py", "tools/site/build.py", "tools/site/command_pages.py",
          "tools/site/header_pages.py", "tools/site/navigation.py"}
SKIPPED = {"node_modules", "build", "dist"}
INSTALLED = "share/doc/vram/"  # contains the pages by their paths from the root

# A page's name (not within a web address or a pattern), and the section that follows it.
PAGE = re.compile(r"(?<![\w*{}/:.-])((?:\.\./)*(?:[\w-]+/)*[\w-]+\.md)\b(?:[\"'`)\]]*,? §([\w-]+))?")
SECTION = re.compile(r"§")
ELSEWHERE = re.compile(r"\b[a-z]+(?:-[a-z]+)+,? (?:section )?\d+\.\d+(?:\.\d+)*\b|\b(?:allocator-behaviou?r|exact-replay)\b(?= (?:§|\d))")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors_of(page):
    """Returns the anchors that GitHub and GitLab give the headings of a page."""
    headings = HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def files_of(root):
    inside = [path for folder in FOLDERS for path in (root / folder).rglob("*")]
    for path in sorted(inside + list(root.glob("*.md")) + [root / "Makefile", root / "CMakeLists.txt"]):
        source = path.relative_to(root)
        if path.is_file() and (path.suffix in SUFFIXES or path.name == "Makefile"):
            if not SKIPPED & set(source.parts) and source.as_posix() not in EXEMPT:
                yield path


class Pages:
    def __init__(self, root):
        self.root = root
        self.pages = sorted(root.glob("*.md")) + [page for folder in ("docs", "tests") for page in sorted((root / folder).rglob("*.md"))]
        self.anchors = {}

    def find(self, source, name):
        """Finds the page that a file cites by this name, or returns None. Searches from its own folder, from the root, and by the end of
        a path in docs/ or tests/."""
        name = name.removeprefix(INSTALLED)
        for candidate in (source.parent / name, self.root / name):
            if candidate.is_file():
                return candidate.resolve()
        found = [page for page in self.pages if page.as_posix().endswith("/" + name)]
        return found[0] if len(found) == 1 else None

    def has_section(self, page, name):
        if page not in self.anchors:
            self.anchors[page] = anchors_of(page)
        return name in self.anchors[page]


def problems_in(pages, path):
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        sections = 0
        for match in PAGE.finditer(line):
            name, section = match.groups()
            page = pages.find(path, name)
            sections += section is not None
            if page is None:
                yield number, f"there is no page {name}"
            elif section is not None and not pages.has_section(page, section):
                yield number, f"{name} has no section §{section}"
        if len(SECTION.findall(line)) > sections:
            yield number, "a section of which page?"
        for match in ELSEWHERE.finditer(line):
            yield number, f"'{match.group()}' is not in the tree"


def check(root):
    """Returns every dead citation as 'FILE:LINE: what', and the number of files read."""
    pages, problems, files = Pages(root), [], 0
    for path in files_of(root):
        files += 1
        problems += [f"{path.relative_to(root)}:{number}: {problem}" for number, problem in problems_in(pages, path)]
    return problems, files


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems, files = check(root)
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} dead citations")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
