#!/usr/bin/env python3
"""Tests `vram fit --route`: the experts that adapters/fit/vram_values_route.py chooses by shares, the files of shares, and the answer. What a
program then needs is tested with PyTorch (tests/real/programs/folded_moe.py).

usage: test_route.py VRAM ADAPTERS
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

VRAM, ADAPTERS = sys.argv[1:3]
del sys.argv[1:3]
sys.path.insert(0, ADAPTERS)
import vram_values_route as route  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith(("VRAM_", "PYTHON"))}
PROGRAM = """
import os, sys, torch
torch.empty(4 << 20)
import _vram_shared
print("ROUTE", os.environ.get("VRAM_FIT_ROUTE"))
if len(sys.argv) > 1:
    _vram_shared.part("vram_values_route").SEEN[8, 2] = 3
"""


def fit(*options, words=()):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([VRAM, "fit", *options, "--", sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False,
                              env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake"), "TMPDIR": folder})


class Choices(unittest.TestCase):
    def shares(self, text, experts, chosen):
        route.ROUTE = text
        return route.shares(experts, chosen)

    def test_balanced(self):
        self.assertEqual(route.counts(self.shares("balanced", 8, 2), 512, 2), [128] * 8)
        self.assertEqual(sorted(route.counts(self.shares("balanced", 8, 2), 5, 2)), [1] * 6 + [2] * 2)

    def test_worst(self):
        self.assertEqual(route.counts(self.shares("worst", 8, 2), 512, 2), [512, 512, 0, 0, 0, 0, 0, 0])

    def test_a_file(self):
        self.assertEqual(route.counts(self.shares("1:1,2:3", 4, 1), 100, 1), [0, 25, 75, 0])
        self.assertEqual(route.counts(self.shares("1:1,2:3", 4, 2), 100, 2), [0, 100, 100, 0])
        self.assertEqual(route.counts(self.shares("2:1", 4, 2), 100, 2), [100, 0, 100, 0])  # nothing else has a share
        self.assertIsNone(self.shares("4:1", 4, 2))

    def test_any_shares(self):
        source = random.Random(8)
        for _ in range(300):
            experts = source.randrange(2, 40)
            chosen, tokens = source.randrange(1, experts), source.randrange(1, 300)
            given = [source.choice((0.0, source.random(), source.random() ** 9)) for _ in range(experts)]
            found = route.counts(given, tokens, chosen)
            self.assertEqual(sum(found), tokens * chosen)
            self.assertTrue(all(0 <= count <= tokens for count in found), (given, tokens, chosen, found))
            if sum(given) and max(given) * tokens * chosen / sum(given) <= tokens:  # no expert would get too many
                for share, count in zip(given, found):
                    self.assertLess(abs(count - share * tokens * chosen / sum(given)), 2 + experts / 2)


class Files(unittest.TestCase):
    def settled(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "shares.txt"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            return fit("--route", str(path))

    def test_a_file_becomes_shares(self):
        result = self.settled("# expert, share\n3 0.75\n\n  5\t.25  # the last\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("ROUTE 3:0.75,5:0.25\n", result.stderr)

    def test_bad_files(self):
        for text, why in (("", "has no expert with a share"), ("3 0\n", "has no expert with a share"), ("3\n", "line 1: the share is not"), ("3:1\n", "line 1: it is not 'EXPERT SHARE'"),
                          ("0 1\nx 1\n", "line 2: the expert is not a number from 0 to 1023"), ("1024 1\n", "the expert is not a number from 0 to 1023"),
                          ("0 -1\n", "the share is not a number from 0 on"), ("0 nan\n", "the share"), ("0 1e999\n", "the share"), ("0 1 2\n", "it is not"),
                          ("0 1\n0 2\n", "line 2: the expert occurs twice"), ("0 " + "1" * 500 + "\n", "it is too long"), (b"\x00\xff 1\n", "has no expert"),
                          ("-1 1\n", "the expert is not"), ("0 1e308\n1 1e308\n", "has no expert with a share")):
            with self.subTest(text=text[:20]):
                result = self.settled(text)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertEqual(result.stderr.count("\n"), 2, result.stderr)  # and the line that names --help
                self.assertIn(why, result.stderr)

    def test_no_file(self):
        result = fit("--route", "even")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--route takes balanced, worst or a file of shares: even: No such file", result.stderr)

    def test_without_computed_values(self):
        for option in (("--values", "none"), ("--compute", "0")):
            result = fit("--route", "worst", *option)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--route needs computed values", result.stderr)


class Answer(unittest.TestCase):
    def test_without_the_option(self):
        result = fit("--json")
        self.assertIsNone(json.loads(result.stdout)["route"])
        self.assertIn("ROUTE None\n", result.stderr)

    def test_what_was_chosen(self):
        result = fit("--json", "--route", "worst", words=("routed",))
        self.assertEqual(json.loads(result.stdout)["route"], {"by": "worst", "calls": 3, "experts": 8, "per_token": 2})
        self.assertIn("  Routing        worst: 2 of 8 experts for each token, chosen 3 times (--route)\n", fit("--route", "worst", words=("routed",)).stdout)

    def test_no_router(self):
        result = fit("--route", "balanced")
        self.assertIn("  Routing        no choice of experts was found, so --route had no effect:", result.stdout)


if __name__ == "__main__":
    unittest.main()
