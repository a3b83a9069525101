#!/usr/bin/env python3
"""Tests what tools/setup.sh installs, which tool it asks, and what it prints if it cannot. Usage: test_setup.py ROOT

It runs with programs that replace Debian's: dpkg-query reads a list of packages, and apt-get logs its arguments.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
BUILD = {"make", "gcc", "libc6-dev", "binutils", "cmake", "ninja-build", "libzstd-dev", "zlib1g-dev", "liblzma-dev", "libsqlite3-dev", "libcjson-dev", "libdw1"}
PROGRAMS = {
    "dpkg-query": 'for name; do :; done; grep -qx "$name" "$FOLDER/installed" && printf installed',
    "id": 'echo "$USER_NUMBER"',
    "sudo": 'echo sudo >> "$FOLDER/asked"; exec "$@"',
    "apt-get": 'echo "$@" >> "$FOLDER/asked"; exit "$APT_CODE"',
    "npm": 'echo npm >> "$FOLDER/asked"',
    "wasm-ld": ":",
    "node": ":",
    "cc": ":",
    "cmake": ":",
}


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "tools").mkdir()
        (self.folder / "viewer" / "web").mkdir(parents=True)
        (self.folder / "viewer" / "web" / "package-lock.json").write_text("{}")
        (self.folder / "bin").mkdir()
        for name in ("bash", "sh", "env", "grep", "dirname"):
            (self.folder / "bin" / name).symlink_to(shutil.which(name))
        shutil.copy(ROOT / "tools" / "setup.sh", self.folder / "tools")

    def run_setup(self, *words, installed=(), programs=("cc", "cmake"), user=1000, apt_code=0):
        """Returns the exit code, the requests to apt-get and others, and all output."""
        (self.folder / "installed").write_text("".join(f"{name}\n" for name in installed))
        for name in ("dpkg-query", "id", "apt-get", *programs):
            program = self.folder / "bin" / name
            program.write_text(f"#!/bin/sh\n{PROGRAMS[name]}\n")
            program.chmod(0o755)
        environment = {"PATH": str(self.folder / "bin"), "FOLDER": str(self.folder), "USER_NUMBER": str(user), "APT_CODE": str(apt_code)}
        result = subprocess.run(["bash", self.folder / "tools" / "setup.sh", *words], env=environment, capture_output=True, text=True, check=False)
        asked = self.folder / "asked"
        return result.returncode, asked.read_text() if asked.exists() else "", result.stdout + result.stderr

    def packages(self, asked):
        line = next(line for line in asked.splitlines() if line.startswith("install") or " install " in line)
        return set(line.split("--no-install-recommends ")[1].split())

    def test_the_build_needs_no_more_than_it_builds(self):
        code, asked, said = self.run_setup(user=0)
        self.assertEqual((code, self.packages(asked)), (0, BUILD), said)
        self.assertIn("make viewer", said)

    def test_only_what_is_missing_is_installed(self):
        code, asked, _ = self.run_setup("build", installed=BUILD - {"libcjson-dev"}, user=0)
        self.assertEqual((code, self.packages(asked)), (0, {"libcjson-dev"}))

    def test_nothing_is_asked_for_where_all_is_there(self):
        code, asked, _ = self.run_setup("build", installed=BUILD)
        self.assertEqual((code, asked), (0, ""))

    def test_the_tests_bring_the_rest(self):
        code, asked, _ = self.run_setup("test", user=0)
        self.assertEqual(code, 0)
        self.assertLess(BUILD | {"chromium", "fish", "libcmocka-dev", "wasi-libc", "nodejs"}, self.packages(asked))

    def test_the_page_needs_no_browser(self):
        wanted = self.packages(self.run_setup("viewer", user=0)[1])
        self.assertEqual(wanted & {"chromium", "firefox-esr", "fish", "zsh", "libcmocka-dev"}, set())
        self.assertLess({"clang", "lld", "wasi-libc", "nodejs", "npm"}, wanted)

    def test_without_root_what_is_missing_is_named_and_left_out(self):
        code, asked, said = self.run_setup("build", installed=BUILD - {"libsqlite3-dev", "ninja-build"})
        self.assertEqual((code, asked), (0, ""), said)
        self.assertIn("apt-get install ninja-build libsqlite3-dev", said)
        self.assertIn("left out", said)

    def test_without_root_the_tests_go_on_without_a_browser(self):
        code, asked, said = self.run_setup("test", programs=("cc", "cmake"))
        self.assertEqual((code, asked), (0, ""), said)
        self.assertIn("chromium", said)

    def test_without_a_compiler_there_is_nothing_to_build_with(self):
        for programs in (("cmake",), ("cc",)):
            for name in ("cc", "cmake"):
                (self.folder / "bin" / name).unlink(missing_ok=True)
            code, _, said = self.run_setup("build", programs=programs)
            self.assertEqual(code, 1, said)
            self.assertIn("A C compiler and CMake are needed", said)

    def test_sudo_that_refuses_is_no_reason_to_stop(self):
        code, asked, said = self.run_setup("build", programs=("cc", "cmake", "sudo"), apt_code=1)
        self.assertEqual(code, 0, said)
        self.assertIn("sudo", asked)
        self.assertIn("left out", said)

    def test_what_it_does_not_know_is_refused(self):
        self.assertEqual(self.run_setup("all")[0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
