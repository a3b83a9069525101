#!/usr/bin/env python3
"""Tests tools/skipped.py, which lists the tests that had nothing to run, and why. Usage: test_skipped.py ROOT"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
LOG = """      Start  1: unit.text
 1/4 Test  #1: unit.text ................   Passed    0.02 sec
 2/4 Test #22: golden.shared.random .....***Skipped   0.01 sec
 3/4 Test #23: golden.shared.ring .......***Skipped   0.01 sec
 4/4 Test  #3: abi.cuda .................***Skipped   0.01 sec

{failed} tests failed out of 4
"""
SECTION = """{number}/4 Testing: {name}
{number}/4 Test: {name}
Command: "sh" "x"
Output:
----------------------------------------------------------
{output}
<end of output>
Test time =   0.01 sec
Test Passed.
"""
OUTPUTS = {"unit.text": "no word is too long", "golden.shared.random": "no traces here (/a/shared/data): skipped", "golden.shared.ring": "ring: no traces here (/b/data): skipped",
           "abi.cuda": "...\n-----\nskipped: no headers of CUDA"}


class Skipped(unittest.TestCase):
    def printed(self, log, outputs):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "test.log").write_text(log)
            (folder / "LastTest.log").write_text("".join(SECTION.format(number=i, name=test, output=text) for i, (test, text) in enumerate(outputs.items(), 1)))
            return subprocess.run([sys.executable, ROOT / "tools/skipped.py", folder / "test.log", folder / "LastTest.log"], capture_output=True, text=True, check=True).stdout

    def test_reasons_and_the_sum(self):
        self.assertEqual(self.printed(LOG.format(failed=0), OUTPUTS).splitlines(), [
            "    2  no traces here: golden.shared.random, golden.shared.ring", "    1  no headers of CUDA: abi.cuda",
            "3 of 4 tests had nothing to run: 2 no traces here; 1 no headers of CUDA"])

    def test_what_unittest_says(self):
        self.assertIn("1 PyTorch is not there\n", self.printed(LOG.format(failed=0), {**OUTPUTS, "abi.cuda": "test_x ... skipped 'PyTorch is not there'\n---\nRan 1 test\n\nOK (skipped=1)"}))

    def test_nothing_is_said_where_all_ran(self):
        self.assertEqual(self.printed(LOG.format(failed=0).replace("***Skipped", "   Passed"), OUTPUTS), "")

    def test_one_that_says_nothing_is_counted(self):
        self.assertIn("1 it does not say why", self.printed(LOG.format(failed=1), {**OUTPUTS, "abi.cuda": ""}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
