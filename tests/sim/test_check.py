#!/usr/bin/env python3
"""Tests `vram check` as a command: exit codes, text, JSON, SARIF and suppressions. Usage: test_check.py VRAM"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

VRAM = sys.argv.pop(1)
RACE = str(Path(__file__).with_name("check_race.py"))
FIRST, SECOND = (number for number, line in enumerate(Path(RACE).read_text().splitlines(), 1) if line.startswith("cuda.cuMemset"))


def check(*options, program=(), **variables):
    return subprocess.run([VRAM, "check", *options, "--", sys.executable, RACE, *program], capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, **variables})


class Check(unittest.TestCase):
    def test_a_mistake(self):
        done = check()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "the program's output\n")
        for text in (" race\n", f"check_race.py:{FIRST}\n", f"check_race.py:{SECOND}\n", "cudaStreamWaitEvent", "1 mistake found"):
            self.assertIn(text, done.stderr)
        self.assertLessEqual(max(len(line) for line in done.stderr.splitlines() if " at /" not in line), 80)

    def test_no_mistake(self):
        done = check(program=["wait"])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "the program's output\n", "vram check: no mistakes found\n"))

    def test_may(self):
        self.assertEqual(check(program=["hold"]).returncode, 0)
        done = check("--may", program=["hold"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(" race (perhaps)\n", done.stderr)

    def test_never_written(self):
        self.assertNotIn("never-written", check(program=["unwritten"]).stderr)
        done = check("--never-written", program=["unwritten"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(" never-written\n", done.stderr)
        self.assertIn("2 mistakes found", done.stderr)

    def test_a_failed_program(self):
        done = check(VRAM_TEST_EXIT="7")
        self.assertEqual(done.returncode, 7)
        self.assertIn("1 mistake found", done.stderr)

    def test_json(self):
        done = check("--json")
        self.assertEqual((done.returncode, done.stderr), (1, "the program's output\n"))
        answer = json.loads(done.stdout)
        self.assertEqual((len(answer["findings"]), answer["suppressed"], answer["complete"]), (1, 0, True))
        finding = answer["findings"][0]
        self.assertEqual((finding["earlier_launch"], finding["later_launch"]), (None, None))
        self.assertEqual((finding["kind"], finding["may"], finding["size_bytes"], finding["freed"]), ("race", False, 4096, None))
        for role, line in ("earlier", FIRST), ("later", SECOND):
            self.assertEqual((finding[role]["work"], finding[role]["effect"], finding[role]["default_stream"]), ("a memset", "write", False))
            self.assertIn(line, [frame["line"] for frame in finding[role]["stack"] if frame["file"] == RACE])
        self.assertNotEqual(finding["earlier"]["stream"], finding["later"]["stream"])
        self.assertEqual(finding["block_bytes"], 4096)

    def test_work_whose_memory_is_not_known(self):
        """cuBLAS's lists of matrices are in device memory, so the answer names the calls, each once."""
        program = ("import ctypes; blas = ctypes.CDLL('libcublas.so.13'); handle = ctypes.c_void_p(); assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0\n"
                   "for call in [blas.cublasSgemmBatched] * 2 + [blas.cublasDgemmBatched]: assert call(handle) == 0")
        text = subprocess.run([VRAM, "check", "--", sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertEqual(" ".join(text.stderr.split()), "vram check: no mistakes found vram check: not checked, because its memory is not known: "
                                                        "cublasSgemmBatched, cublasDgemmBatched")
        answer = subprocess.run([VRAM, "check", "--json", "--", sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(json.loads(answer.stdout)["unseen"], ["cublasSgemmBatched", "cublasDgemmBatched"])

    def test_sarif_and_suppressions(self):
        with tempfile.TemporaryDirectory() as folder:
            sarif, rules = Path(folder, "out.sarif"), Path(folder, "rules")
            check("--sarif", str(sarif))
            result, = json.loads(sarif.read_text())["runs"][0]["results"]
            self.assertEqual((result["ruleId"], result["level"]), ("race", "error"))
            self.assertEqual(result["locations"][0]["physicalLocation"]["region"]["startLine"], SECOND)
            self.assertEqual(result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], FIRST)
            for text, code in (f"# known\n\nrace *check_race.py:{SECOND}\n", 0), ("* *check_race.py*\n", 0), ("race *other.py*\n", 1), \
                              ("freed-in-use *check_race.py*\n", 1), ("race\n", 3):
                rules.write_text(text)
                self.assertEqual(check("--suppress", str(rules)).returncode, code, text)

    def test_bad_options_end_before_the_program_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            rules, absent = Path(folder, "rules"), str(Path(folder, "absent/file"))
            rules.write_text("race *a*\nraec *b*\n")
            for options, code, said in ((("--suppress", absent), 3, "No such file"), (("--suppress", folder), 3, "Is a directory"),
                                        (("--suppress", str(rules)), 3, f"{rules}: line 2: there is no kind 'raec'"),
                                        (("--sarif", absent), 2, "No such file"), (("--sarif", folder), 2, "Is a directory"),
                                        (("--json", "--sarif", "-"), 2, "--json and --sarif - cannot be used together")):
                done = check(*options)
                self.assertEqual((done.returncode, done.stdout), (code, ""), options)
                self.assertIn(said, done.stderr.splitlines()[0])
                self.assertNotIn("the program's output", done.stderr)

    def test_nothing_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            check(TMPDIR=folder)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
