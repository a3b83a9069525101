#!/usr/bin/env python3
"""Checks that the tests call every public function that takes a pointer with NULL.

Usage: test_nulls.py ROOT
"""
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
FUNCTION = re.compile(r"VRAM_API[^;{]*?\b(vram_\w+)\s*\(([^;]*)\);")
UNCHECKED = {"vram_malloc", "vram_free"}  # every instruction counts in these
OPTIONAL = {"error", "user"}


def pointers_of(parameters):
    """Returns the names of the pointer parameters, except those that every function may leave out."""
    names = [re.split(r"[\s*]+", parameter.strip())[-1] for parameter in parameters.split(",") if "*" in parameter]
    return [name for name in names if name not in OPTIONAL]


def functions_with_pointers():
    for header in sorted(ROOT.glob("*/include/vram/*.h")):
        text = re.sub(r"//[^\n]*", "", header.read_text(encoding="utf-8"))
        yield from (name for name, parameters in FUNCTION.findall(text) if pointers_of(parameters))


class Nulls(unittest.TestCase):
    def test_every_function_meets_null(self):
        tests = "".join((ROOT / "tests/unit" / name).read_text(encoding="utf-8") for name in ("test_nulls.c", "test_misuse.c"))
        called = set(re.findall(r"\b(vram_\w+)\((?:[^;]*?[ (])?NULL\b", tests))
        functions = set(functions_with_pointers())
        self.assertGreater(len(functions), 200)
        self.assertEqual(sorted(functions - called - UNCHECKED), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
