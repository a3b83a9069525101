#!/usr/bin/env python3
"""Tests the site: no page has a dead link, every page is reachable, and each command and header has a page; with MkDocs, also the built site.

Usage: test_site.py VRAM [ENVIRONMENT] (with the folder of an environment with MkDocs, also builds the site; exits 77 if the environment lacks it)"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VRAM = Path(sys.argv[1]).resolve()
SITE = ROOT / "tools/site"
sys.path.insert(0, str(SITE))
import links  # noqa: E402: the module is in the tree under test
import source_pages  # noqa: E402


def build(python, out, *options):
    return subprocess.run([python, SITE / "build.py", VRAM, out, *options], capture_output=True, text=True, timeout=600, check=False)


class Links(unittest.TestCase):
    def found(self, look, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return look(Path(folder).resolve())

    def test_dead_links_of_pages_are_found(self):
        good = {"README.md": "# A\n\n[b](docs/b.md#two-words), `[c](c.md)`\n", "docs/b.md": "# B\n\n## Two words\n\n[a](../README.md)\n"}
        self.assertEqual(self.found(links.in_markdown, good), ([], []))
        for page, text, dead in (("README.md", "[c](c.md)", ["README.md: c.md"]), ("docs/b.md", "# B\n[a](../README.md)\n", ["README.md: docs/b.md#two-words"])):
            self.assertEqual(self.found(links.in_markdown, {**good, page: text})[0], dead)

    def test_pages_that_nothing_leads_to_are_found(self):
        self.assertEqual(self.found(links.in_markdown, {"README.md": "# A\n", "alone.md": "# B\n[self](alone.md)\n"})[1], ["alone.md"])

    def test_dead_links_of_a_site_are_found(self):
        good = {"index.html": '<a href="b.html#x">b</a><script src="s.js"></script>', "b.html": '<p id="x"><a href="./">a</a>', "s.js": ""}
        self.assertEqual(self.found(links.in_html, good), ([], [], []))
        for page, text, found in (("b.html", "<p>", (["index.html: b.html#x"], [], [])),
                                  ("b.html", '<p id="x"><img src="p.png">', (["b.html: p.png"], [], [])),
                                  ("b.html", '<p id="x"><script src="https://example.org/s.js">', ([], ["b.html: https://example.org/s.js"], [])),
                                  ("c.html", "<p>", ([], [], ["c.html"]))):
            self.assertEqual(self.found(links.in_html, {**good, page: text}), found)

    def test_what_belongs_to_an_item_is_indented_by_four(self):
        text = "- an item\n  goes on\n\n  ```c\n  int i;\n  ```\n\nnot this\n\n    code\n"
        self.assertEqual(source_pages.for_python_markdown(text), "- an item\n    goes on\n\n    ```c\n    int i;\n    ```\n\nnot this\n\n    code\n")


class Pages(unittest.TestCase):
    def test_pages_are_made_and_reached(self):
        with tempfile.TemporaryDirectory() as folder:
            result = build(sys.executable, folder, "--pages")
            self.assertEqual((result.stdout, result.returncode), ("", 0), result.stderr)
            pages = Path(folder) / "pages"
            self.assertGreater(len(list((pages / "commands").glob("*.md"))), 15)
            self.assertIn("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", (pages / "commands/report.md").read_text(encoding="utf-8"))
            self.assertIn("### vram_malloc()", (pages / "api/allocator.h.md").read_text(encoding="utf-8"))
            self.assertGreater((pages / "live/viewer.html").stat().st_size, 500_000)


class Site(unittest.TestCase):
    def test_the_site_has_no_dead_link(self):
        with tempfile.TemporaryDirectory() as folder:
            result = build(Path(sys.argv[2]) / "bin/python", folder)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertGreater(len(list((Path(folder) / "html").rglob("*.html"))), 100)


if __name__ == "__main__":
    if len(sys.argv) > 2 and not (Path(sys.argv[2]) / "bin/mkdocs").exists():
        print("skipped: no MkDocs (`make site` installs it)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *(["Site"] if len(sys.argv) > 2 else ["Links", "Pages"])])
