#!/usr/bin/env python3
"""Tests `vram top` and `vram attach` on a program that is being recorded; its recording can be paused and copied.

Usage: test_attach.py VRAM WORKER FOLDER
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

VRAM, WORKER, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("VRAM_")}
MIB = 1 << 20


def vram(*arguments):
    return subprocess.run([VRAM, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT, check=False)


class Program:
    """A worker under `vram run` on the simulated driver."""

    def __init__(self, name):
        self.recording = FOLDER / name
        self.recording.unlink(missing_ok=True)
        command = [VRAM, "sim", "--", VRAM, "run", "-o", self.recording, "--", WORKER]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)
        assert self.process.stdout.readline() == "ready\n"
        self.tell("a 1")
        self.pid = self.find()

    def find(self):
        # Other tests may be recording at the same time, so ask the system, not `vram top`.
        for folder in pathlib.Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and str(self.recording).replace("\n", "\\012") in (folder / "maps").read_text():
                    return int(folder.name)
            except OSError:
                pass
        raise AssertionError("the program is not recorded")

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.write("q\n")
        self.process.stdin.close()
        code = self.process.wait(20)
        self.process.stdout.close()
        return code


class Attach(unittest.TestCase):
    def setUp(self):
        self.program = Program(f"{self._testMethodName}.vram")

    def tearDown(self):
        if self.program.process.poll() is None:
            self.program.end()

    def top(self, *arguments):
        return json.loads(vram("top", "--json", *arguments, self.program.pid).stdout)

    def test_top_counts_what_is_alive(self):
        for size in (3, 5):
            self.program.tell(f"a {size}")
        self.program.tell("f")
        device = self.top()["devices"][0]
        self.assertEqual((device["live_bytes"], device["live_count"], device["peak_bytes"]), (4 * MIB, 2, 9 * MIB))
        for by in ("library", "kind", "site", "stream", "pool"):
            groups = self.top("--by", by)["groups"]
            self.assertEqual(sum(group["live_bytes"] for group in groups), 4 * MIB, by)
            self.assertEqual(sum(group["made"] for group in groups), 3, by)
        self.assertEqual(self.top("--by", "kind")["groups"][0]["label"], "device")
        self.assertEqual(self.top("--by", "library")["groups"][0]["label"], os.path.basename(WORKER))

    def test_call_sites_have_names(self):
        labels = [group["label"] for group in self.top("--by", "site")["groups"]]
        self.assertEqual(len(labels), 1)
        self.assertRegex(labels[0], r"^(worker\.c:\d+|\S*worker) (take|main)$")

    def test_export_says_nothing_of_what_it_cannot_know(self):
        """A whole program has no reserved bytes; reporting 0 would be wrong."""
        text = vram("export", self.program.recording).stdout
        self.assertRegex(text, r'\nvram_requested_bytes\{[^}]*device="0"\} 1048576\n')
        self.assertRegex(text, r"\nvram_up\{[^}]*\} 1\n")
        self.assertNotIn("\nvram_reserved_bytes", text)

    def test_a_program_that_was_killed_is_not_up(self):
        """A killed program closes nothing; its memory stays in its recording. An export that waits for programs ends."""
        up = lambda: re.search(r"\nvram_up\{[^}]*\} (\d)\n", vram("export", self.program.recording).stdout).group(1)
        path = FOLDER / "killed.prom"
        writer = subprocess.Popen([VRAM, "export", self.program.recording, "--interval", "50ms", "-o", path], env=ENVIRONMENT)
        self.assertEqual(up(), "1")
        os.kill(self.program.pid, signal.SIGKILL)
        self.program.process.wait(20)
        self.assertEqual(up(), "0")
        self.assertEqual(writer.wait(20), 0)
        self.assertRegex(path.read_text(), r"\nvram_up\{[^}]*\} 0\n")
        self.assertRegex(path.read_text(), r'\nvram_requested_bytes\{[^}]*device="0"\} 1048576\n')
        self.assertIn(", ended", vram("top", "--once", self.program.recording).stdout)

    def test_top_once_is_for_people(self):
        text = vram("top", "--once", self.program.pid).stdout
        self.assertIn("1.0 MiB live, 1 block, peak 1.0 MiB", text)
        self.assertNotIn("\x1b", text)

    def test_a_pause_leaves_out_what_is_born_in_it(self):
        self.assertEqual(vram("attach", self.program.pid, "stop").returncode, 0)
        self.program.tell("a 16")  # allocated and freed during the pause
        self.program.tell("f")
        self.program.tell("f")  # allocated before it
        self.program.tell("a 2")  # allocated in it, freed after it
        self.assertIn("paused, 2 allocations left out", vram("attach", self.program.pid).stdout)
        self.assertEqual(vram("attach", self.program.pid, "start").returncode, 0)
        self.program.tell("f")
        self.program.tell("a 4")
        self.assertIn("state      recording, 2", vram("attach", self.program.pid, "status").stdout)
        self.assertEqual(self.program.end(), 0)
        report = json.loads(vram("report", "--json", self.program.recording).stdout)["devices"]["0"]
        self.assertEqual(report["events_by_action"]["alloc"], 2)
        self.assertEqual(report["allocated"]["peak_bytes"], 4 * MIB)
        self.assertTrue(report["allocated"]["consistent"])
        whole = json.loads(vram("convert", "--to", "json", self.program.recording, "-o", "-").stdout)
        self.assertEqual([mark["stage"] for mark in whole["external_annotations"] if mark["name"] == "recording paused"], ["START", "END"])

    def test_a_copy_is_a_whole_recording(self):
        self.program.tell("a 7")
        copy = FOLDER / "copy.vram"
        copy.unlink(missing_ok=True)
        result = vram("attach", self.program.pid, "dump", "-o", copy)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.program.tell("a 9")
        report = json.loads(vram("report", "--json", copy).stdout)["devices"]["0"]
        self.assertEqual(report["allocated"]["end_bytes"], 8 * MIB)

    def test_recordings_of_any_name(self):
        for name in ("no suffix", "two\nlines.vram", "two\nlines.rec"):
            program = Program(name)
            status = vram("attach", program.pid)
            self.assertIn("events     1", status.stdout, status.stderr)
            self.assertEqual(vram("attach", program.pid, "stop").returncode, 0)
            self.assertIn("1.0 MiB live", vram("top", "--once", program.pid).stdout)
            self.assertEqual(program.end(), 0)

    def test_a_program_that_is_stopped_or_killed(self):
        pid = self.program.pid
        os.kill(pid, signal.SIGSTOP)
        self.assertIn("state      recording", vram("attach", pid).stdout)
        self.assertIn("1.0 MiB live", vram("top", "--once", pid).stdout)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.program.process.wait(20), 128 + 9)
        self.program.process.stdin.close()
        self.program.process.stdout.close()
        for command in ("attach", "top"):
            result = vram(command, pid)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (3, 1), result.stderr)
        self.assertIn("1.0 MiB live", vram("top", "--once", self.program.recording).stdout)

    def test_mistakes_are_one_line(self):
        for arguments, code in (
            (("attach",), 2),
            (("attach", "x"), 2),
            (("attach", os.getpid()), 3),
            (("attach", self.program.pid, "dance"), 2),
            (("attach", self.program.pid, "dump"), 2),
            (("top", "999999999"), 3),
            (("top", "/no/such/file.vram"), 3),
        ):
            result = vram(*arguments)
            self.assertEqual(result.returncode, code, (arguments, result.stderr))
            self.assertTrue(result.stderr.startswith("vram"), result.stderr)

    def test_the_screen_follows_and_answers_keys(self):
        child, terminal = pty.fork()
        if child == 0:
            os.execve(VRAM, [VRAM, "top", str(self.program.pid)], {**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "100", "LINES": "24"})
        try:
            self.assertIn("1.0 MiB live", self.read_until(terminal, "1.0 MiB live"))
            self.program.tell("a 31")
            self.assertIn("32.0 MiB live", self.read_until(terminal, "32.0 MiB live"))
            os.write(terminal, b"3")
            self.assertIn("by call site", self.read_until(terminal, "by call site"))
            os.write(terminal, b"/nosuch\n")
            self.assertIn("/nosuch", self.read_until(terminal, "/nosuch   "))
            os.write(terminal, b"q")
            self.assertIn("\x1b[?1049l", self.read_until(terminal, "\x1b[?1049l"))
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        finally:
            os.close(terminal)

    @staticmethod
    def read_until(terminal, text, seconds=20):
        seen, end = "", time.monotonic() + seconds
        while text not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 65536).decode(errors="replace")
                except OSError:
                    break
        return seen


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir(parents=True)
unittest.main(argv=[sys.argv[0]])
