#!/usr/bin/env python3
"""`vram sim` loads its stand-ins before the libraries that a program brings: by RPATH, by absolute path, and under the names that wheels
use.

Usage: test_front.py VRAM BRINGER BROUGHT AUDITOR NEEDS
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

VRAM, BRINGER, BROUGHT, AUDITOR, NEEDS = sys.argv[1:6]
BUILD = os.path.realpath(os.path.join(os.path.dirname(VRAM), ".."))
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("VRAM_", "LD_"))}
RUNTIME = os.path.join(BUILD, "simcudart", "libcudart.so.13")
DRIVER = os.path.join(BUILD, "simcuda", "libcuda.so.1")


class Front(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def bring(self, name):
        path = os.path.join(self.folder, name)
        shutil.copyfile(BROUGHT, path)
        return path

    def run_sim(self, *arguments, before=(), **variables):
        done = subprocess.run([VRAM, "sim", "--", *before, BRINGER, *arguments], capture_output=True, text=True,
                              env={**ENVIRONMENT, **variables}, check=False)
        return [line.rsplit(": ", 1) for line in done.stdout.splitlines()], done.stderr

    def test_a_library_of_the_rpath_is_replaced(self):
        plain = subprocess.run([BRINGER], capture_output=True, text=True, env=ENVIRONMENT, check=True)
        self.assertTrue(plain.stdout.startswith("linked, brought: "), plain.stdout)
        self.assertEqual(self.run_sim(), ([["linked, ours", os.path.realpath(RUNTIME)]], ""))

    def test_names_and_paths_of_all_kinds(self):
        link = os.path.join(self.folder, "libcudart.so")
        os.symlink(self.bring("libcudart.so.13.9.1"), link)
        for path, expected in (
            (self.bring("libcudart.so.13"), RUNTIME),
            (self.bring("libcudart-faf08d9a.so.13"), RUNTIME),
            (self.bring("libcudart.faf08d9a.so.13"), RUNTIME),
            (self.bring("libcudart-45da57e3.so.13.4.127"), RUNTIME),
            (self.bring("libcudart-faf08d9a.so.12"), RUNTIME[:-2] + "12"),
            (self.bring("libcudart-d0da41ae.so.11.8.89"), RUNTIME[:-2] + "11.0"),
            (link, RUNTIME),
            (self.bring("libcuda.so.1"), DRIVER),
            (self.bring("libcuda.so"), DRIVER),
            (self.bring("libcuda-01234567.so.1"), DRIVER),
            ("libcuda.so.1", DRIVER),
            ("libcuda.so", DRIVER),
        ):
            rows, said = self.run_sim(path)
            self.assertEqual((rows[1], said), ([path, os.path.realpath(expected)], ""), path)

    def test_versions_are_found_under_a_name_that_a_wheel_gave(self):
        rows, said = self.run_sim(NEEDS)
        self.assertEqual((rows[1:], said), ([[NEEDS, os.path.realpath(NEEDS)]], ""))
        program = f"import ctypes; print(ctypes.CDLL({NEEDS!r}).cuInit(0))"  # the first process that needs a runtime
        done = subprocess.run([VRAM, "sim", "--", sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT, check=False)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("0\n", "", 0))

    def test_what_has_no_standin_is_left_alone(self):
        for name in ("libother.so.1", "libcudart_more.so.13", "mylibcuda.so.1", "libcuda.so.map", "libcudadebugger.so.1"):
            path = self.bring(name)
            rows, said = self.run_sim(path)
            self.assertEqual((rows[1], said), ([path, os.path.realpath(path)], ""))

    def test_a_runtime_without_standin_is_named(self):
        path = self.bring("libcudart.so.10.2")
        _, said = self.run_sim(path)
        self.assertEqual(said.count("\n"), 1)
        self.assertIn(f"vram sim: {path} was loaded and does not use the simulated driver; vram has stand-ins for libcudart ", said)
        self.assertIn("13", said)

    def test_children_namespaces_and_other_auditors(self):
        path = self.bring("libcudart.so.13")
        ours = os.path.realpath(RUNTIME)
        self.assertEqual(self.run_sim(path, before=("sh", "-c", 'exec "$@"', "sh"))[0][1][1], ours)
        self.assertEqual(self.run_sim("dlmopen", "libcudart.so.13")[0][1][1], ours)
        self.assertIn(f"vram sim: {path} was loaded", self.run_sim("dlmopen", path)[1])
        rows, said = self.run_sim(path, LD_AUDIT=AUDITOR)
        self.assertEqual((rows[1][1], said), (ours, "audited\n" * 2))  # audits vram itself too
        rows, said = self.run_sim(path, LD_PRELOAD="libm.so.6")
        self.assertEqual((rows[1][1], said), (ours, ""))

    def test_with_vram_run_on_top(self):
        rows, _ = self.run_sim(before=(VRAM, "run", "--output", os.path.join(self.folder, "out.vram"), "--"))
        self.assertEqual(rows, [["linked, ours", os.path.realpath(RUNTIME)]])

    def test_nested(self):
        rows, said = self.run_sim(before=(VRAM, "sim", "--"))
        self.assertEqual((rows, said), ([["linked, ours", os.path.realpath(RUNTIME)]], ""))


unittest.main(argv=[sys.argv[0]])
