#!/usr/bin/env python3
"""The simulated libcuda exports every name that any version had; functions that are not simulated say so.

Usage: test_surface.py LIBCUDA WANTS
"""
import os
import re
import subprocess
import sys
import unittest

LIBCUDA, WANTS = sys.argv[1:3]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import api_facts  # noqa: E402

# Functions that vram's own libraries and modules use (results.c, reads.c, checking.c and check_stacks.c of simulator/standins/libcuda).
OWN = ["vram_sim_kernel_code", "vram_sim_stack_take", "vram_sim_stack_text",
       *(f"vram_sim_results_{name}" for name in ("answer", "begin", "captured", "end", "forget", "look", "lose", "pass", "put", "shield")),
       *(f"vram_sim_check_{name}" for name in ("block", "block_end", "call", "disagreement", "error_restore", "error_take", "hide", "moves", "return"))]
NAMES = api_facts.read_committed(os.path.join(ROOT, "simulator", "standins", "facts", "cuda.def"))


def exported():
    """Returns {name: letter of nm}: W is a stub, T is simulated."""
    done = subprocess.run(["nm", "-D", "--defined-only", LIBCUDA], capture_output=True, text=True, check=True)
    return {line.split()[2]: line.split()[1] for line in done.stdout.splitlines()}


def wants(*names, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VRAM_")}
    done = subprocess.run([WANTS, LIBCUDA, *names], capture_output=True, text=True, env={**environment, **variables}, check=False)
    return done.stdout.splitlines()


class Surface(unittest.TestCase):
    def test_every_name_is_exported_and_nothing_else(self):
        self.assertEqual(sorted(exported()), sorted([*NAMES, *OWN]))

    def test_a_name_that_is_simulated_has_its_per_thread_twin(self):
        letters = exported()
        twins = [name for name in NAMES if re.search(r"_pt[sd][sz]$", name) and letters[name[:-5]] == "T"]
        self.assertEqual([name for name in twins if letters[name] != "T"], [])
        self.assertGreater(len(twins), 20)

    def test_the_rows_of_what_is_simulated_are_as_in_the_facts(self):
        tables = {"allocator/driver/calls.def": 1, "simulator/sim/program_calls.def": 1, "simulator/standins/libcuda/companions.def": 0,
                  "simulator/standins/libcuda/per_thread.def": 0}
        read = 0
        for path, skipped in tables.items():
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                for row in re.findall(r"^X\(((?:\w+,\s+){2,3}\d+),", file.read(), re.MULTILINE):
                    base, name, version = re.split(r",\s+", row)[skipped:skipped + 3]
                    self.assertEqual((base, version), (NAMES[name].group(2), NAMES[name].group(3)), f"{path}: {name}")
                    read += 1
        self.assertGreater(read, 200)

    def test_what_is_not_simulated_answers_not_supported(self):
        letters = exported()
        some = sorted(name for name in NAMES if letters[name] == "W")[:40]
        self.assertEqual(wants(*some), [f"{name} 801" for name in some])

    def test_the_version_is_the_newest_or_as_told(self):
        newest = max(int(row.group(4)) for row in NAMES.values())
        self.assertEqual(wants("version", "cuInit", "version"), [f"version 0 {newest}", "cuInit 0", f"version 0 {newest}"])
        told = wants("version", "cuInit", "version", VRAM_SIM="driver=12080")
        self.assertEqual(told, ["version 0 12080", "cuInit 0", "version 0 12080"])

    def test_the_tables_of_nvidia_are_refused(self):
        self.assertEqual(wants("cuGetExportTable"), ["cuGetExportTable 801"])

    def test_the_call_that_is_asked_for_fails_once(self):
        calls = ["cuInit", "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxGetDevice", "cuCtxGetDevice"]
        usual = [0, 1, 1, 1, 1]
        for nth in range(0, 7):
            expected = [999 if i + 1 == nth else usual[i] for i in range(len(calls))]
            if nth == 1:
                expected = [999, 3, 3, 3, 3]
            got = wants(*calls, VRAM_SIM_FAIL=f"{nth}:999" if nth else "")
            self.assertEqual(got, [f"{name} {result}" for name, result in zip(calls, expected)], nth)
        self.assertEqual(wants("cuInit", VRAM_SIM_FAIL="1"), ["cuInit 2"])
        done = subprocess.run([WANTS, LIBCUDA, *calls], capture_output=True, text=True, env={**os.environ, "VRAM_SIM_FAIL": "3:700"}, check=False)
        self.assertEqual(done.stderr, "vram sim: VRAM_SIM_FAIL: cuCtxGetDevice fails with 700\n")


unittest.main(argv=[sys.argv[0]])
