#!/usr/bin/env python3
"""The documents name what is there: every option, every command, every make target, and no file that does not exist.

Usage: test_documents.py ROOT
"""
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv[1])


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


class Documents(unittest.TestCase):
    def test_every_option_is_described(self):
        rows = text("src/config/options.def")
        keys = re.findall(r"^VR_OPTION(?:_ALIAS)?\((\w+),", rows, re.MULTILINE)
        self.assertGreater(len(keys), 20)
        page = text("docs/options.md")
        self.assertEqual([key for key in keys if f"`{key}`" not in page], [])

    def test_every_command_is_described(self):
        commands = re.findall(r"^COMMAND\((\w+),", text("cli/commands.def"), re.MULTILINE)
        self.assertGreater(len(commands), 0)
        manual = text("docs/man/vram.1")
        for command in commands:
            self.assertIn(f".B {command}\n", manual)
            self.assertIn(f"vram {command}", text("README.md"))

    def test_every_make_target_is_described_and_there(self):
        makefile = text("Makefile")
        described = set(re.findall(r"^#   make (\w[\w-]*) ", makefile, re.MULTILINE))
        targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE)) - {"all", "setup", "clean"}
        self.assertEqual(described, targets)

    def test_scripts_of_the_makefile_exist(self):
        scripts = set(re.findall(r"tools/[\w.-]+", text("Makefile")))
        self.assertGreater(len(scripts), 3)
        self.assertEqual([name for name in sorted(scripts) if not (ROOT / name).exists()], [])

    def test_paths_in_documents_exist(self):
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
        missing = []
        for page in pages:
            body = page.read_text(encoding="utf-8")
            links = [(page.parent, name) for name in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", body)]
            quoted = [(ROOT, name) for name in re.findall(
                r"`((?:src|include|tests|tools|docs|cli|bench|fuzz|examples|cmake)/[\w./-]+)`", body)]
            missing += [f"{page.relative_to(ROOT)}: {name}" for base, name in links + quoted if not (base / name).exists()]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
