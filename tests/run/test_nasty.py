#!/usr/bin/env python3
"""Programs with bad habits (nasty.c) print and end the same under `vram run` as without it, and each allocation is recorded."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from support import CLI, EMULATED, PROGRAMS, SCRATCH, Expected, plain, read_events, run

NASTY = PROGRAMS / "run_nasty"
WITHOUT_FILES = {"VRAM_SIM_LOG": "", "VRAM_SIM": "backed=0"}  # without the simulator's own files
PYTHON = """
import ctypes, multiprocessing, sys
def work(count):
    cuda, context, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    for size in range(1, count + 1):
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_uint64(size)) == 0 and cuda.cuMemFree_v2(address) == 0
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        pool.map(work, [20, 20, 20, 20], chunksize=1)
        pool.close()
        pool.join()
    print("done")
"""


def folder():
    return Path(tempfile.mkdtemp(dir=SCRATCH.name))


class Nasty(unittest.TestCase):
    def twice(self, command, options=(), environment=None):
        """Runs a program with and without `vram run`, each in its own folder. Returns the recorded run."""
        without, ran = (run(command, way, environment, folder=folder(), cwd=True) for way in (None, options))
        ended = 128 - without.code if without.code < 0 else without.code
        self.assertEqual((ran.code, ran.stdout), (ended, without.stdout), ran.stderr)
        self.assertTrue(set(without.stderr.splitlines()) <= set(ran.stderr.splitlines()), ran.stderr)
        return ran

    def compare(self, ran):
        """Compares the recording with the simulator's calls, by process and thread."""
        log, names = ran.log(), {path.name: path for path in ran.folder.glob("*.vram")}
        self.assertEqual(set(names), {f"r-{call[0]}.vram" for call in log})
        for process in {call[0] for call in log}:
            events = read_events(names[f"r-{process}.vram"])
            for thread, wanted in Expected(call for call in log if call[0] == process).by_thread.items():
                self.assertEqual(plain(event for event in events if event[6] == thread), wanted, process)

    def test_habits(self):
        rows = (
            ("pairs",),
            ("counts-descriptors",),
            ("elsewhere",),
            ("ends-from-a-handler", 20000),
            ("ends-threads",),
            ("frees-at-the-end",),
            ("spawns",),
            ("forks-raw",),
            ("small-stacks", 16384),
            ("coroutines", 16384),
            ("deep", 10000),
            ("handlers",),
            ("recovers",),
            ("aborts",),
        )
        for habit, *number in rows:
            with self.subTest(habit=habit):
                ran = self.twice([NASTY, habit, *number])
                self.assertNotIn("warning:", ran.stderr)
                if habit != "ends-from-a-handler":  # the last call may be in the log but not in the recording
                    self.compare(ran)

    def test_a_recording_that_is_cut_ends_no_program(self):
        """The file is written through a mapping. After the program truncates it, a store beyond its end would raise SIGBUS."""
        ran = self.twice([NASTY, "cuts-recordings", 20000])
        self.assertEqual((ran.code, ran.stdout), (0, "to the end\n"))
        self.assertIn("the recording ended early", ran.stderr)

    def test_a_program_that_closes_all_descriptors(self):
        """The program reuses the descriptors' numbers. The simulator keeps memory contents in descriptors, so that is turned off."""
        ran = self.twice([NASTY, "closes-all", 20000], environment=WITHOUT_FILES)
        self.assertEqual(len(ran.only()), (10 + 20000) * 3)

    def test_a_program_without_standard_descriptors(self):
        ran = self.twice([NASTY, "closes-standard"], environment=WITHOUT_FILES)
        self.assertEqual((ran.folder / "out").read_text(), "0 1 2\nto standard error\nto standard output\n")
        self.assertEqual(len(ran.only()), 20 * 3)

    def test_a_place_for_cancellation_is_none(self):
        ran = self.twice([NASTY, "is-cancelled"], environment=WITHOUT_FILES)
        self.assertEqual(ran.stdout, "not inside\n" * 2)
        self.assertEqual(len(ran.only()), (2 * 20 + 10) * 3)

    def test_a_limit_of_files_is_no_end(self):
        for habit, number in (("small-files", 0), ("small-files", 100000), ("small-files", 300000), ("small-files", 1 << 20),
                              ("small-files", 3 << 20), ("small-files", 9 << 20), ("few-files", 0)):
            with self.subTest(habit=habit, number=number):
                if EMULATED and number == 0:
                    self.skipTest("qemu-user writes files of its own, and makes no child that ends without a signal")
                ran = self.twice([NASTY, habit, number], environment=WITHOUT_FILES)
                self.assertEqual((ran.code, ran.stdout), (0, "alive\n"))
                self.assertEqual(len(ran.recordings()), number > 100000)
                self.assertEqual("ended early" in ran.stderr, 100000 <= number < 1 << 20 or habit == "few-files", ran.stderr)
                if number > 100000:  # as many as there was room for
                    self.assertGreater(len(ran.only()), 1000)
                self.assertEqual("or it cannot write files" in ran.stderr, number <= 100000)

    def test_handlers_on_small_stacks(self):
        """The kernel's signal frame takes up to 3.5 of the 8 KiB, and the driver an unknown amount; recording after the call takes 2 KiB more."""
        without = run([NASTY, "measures-handlers"], None, environment=WITHOUT_FILES, folder=folder())
        for options in (["--stacks", "none"], ["--stacks", "c"], ["--stacks", "all"], ["--limit", "1GiB"], ["--on-oom", "dump"]):
            with self.subTest(options=options):
                ran = run([NASTY, "measures-handlers"], options, environment=WITHOUT_FILES, folder=folder())
                self.assertEqual(ran.code, 0, ran.stderr)
                for plain_bytes, recorded_bytes in zip(map(int, without.stdout.split()), map(int, ran.stdout.split()), strict=True):
                    self.assertLessEqual(recorded_bytes, plain_bytes + 2048)
                self.assertIn(20001 * 3 + 1, [len(events) for events in ran.recordings().values()])

    def test_a_program_that_can_open_few_files(self):
        """The recording's file takes the program's last descriptor, or one more than its limit. `vram run` reports both correctly."""
        for limit in range(3, 8):
            with self.subTest(limit=limit):
                if EMULATED and limit < 5:
                    self.skipTest("qemu-user makes no child that ends without a signal")
                ran = run([NASTY, "few-files-at-first", limit], environment=WITHOUT_FILES, folder=folder())
                self.assertEqual((ran.code, ran.stdout), (0, "alive\n"), ran.stderr)
                self.assertEqual("ended early" in ran.stderr, not ran.recordings(), ran.stderr)
                self.assertEqual("no file was written" in ran.stderr, not ran.recordings(), ran.stderr)
                if ran.recordings():
                    self.assertIn(f"{len(ran.only())} events", ran.stderr)

    def test_libraries_that_allocate_while_others_do(self):
        for stacks in ("none", "all"):
            with self.subTest(stacks=stacks):
                here = folder()
                for number in range(40):
                    shutil.copy(PROGRAMS / "librun_constructed.so", here / f"plugin{number}.so")
                ran = run([NASTY, "loads", 40], ["--stacks", stacks], folder=here, cwd=True)
                self.assertEqual(ran.code, 0, ran.stderr)
                self.compare(ran)
                self.assertEqual(sum(event[1] == "alloc" and event[5].startswith("plugin") for event in ran.only()), 40)

    def test_a_daemon_is_recorded_to_its_end(self):
        ran = self.twice([NASTY, "daemon"])
        for _ in range(200):
            if (ran.folder / "done").exists() and len(list(ran.folder.glob("*.vram"))) == 2:
                break
            time.sleep(0.05)
        time.sleep(0.2)
        self.compare(ran)

    def test_sanitizers(self):
        programs = [path for path in PROGRAMS.glob("run_nasty_*") if os.access(path, os.X_OK)]
        for path in programs:
            with self.subTest(program=path.name):
                self.compare(self.twice([path, "pairs"]))

    def test_python_in_many_processes(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method=method):
                here = folder()
                (here / "job.py").write_text(PYTHON)
                ran = run([sys.executable, here / "job.py", method], folder=here)
                self.assertEqual((ran.code, ran.stdout), (0, "done\n"), ran.stderr)
                self.assertEqual(sum(len(events) for events in ran.recordings().values()), 4 * 20 * 3)

    def test_where_the_recording_cannot_go(self):
        here = folder()
        (here / "folder").mkdir()
        os.mkfifo(here / "pipe")
        (here / "link").symlink_to("/dev/null")
        for name in ("folder", "pipe", "link", "x" * 5000):
            with self.subTest(name=name[:10]):
                ran = run(["touch", here / "ran"], folder=here, pattern=name)
                self.assertEqual((ran.code, (here / "ran").exists()), (3, False), ran.stderr)
                self.assertEqual(ran.stderr.count("\n"), 1)
        self.assertEqual(sorted(path.name for path in here.iterdir()), ["folder", "link", "pipe"])

    def test_odd_names(self):
        for name in ("with\ttab", "with\nnewline", "100%%", "quote'\"", "-o"):
            with self.subTest(name=name):
                here = folder() / name.replace("%%", "%")
                here.mkdir()
                program = here / "its own name"
                shutil.copy(NASTY, program)
                ran = run([program, "elsewhere"], folder=here, cwd=True, pattern="r-%p.vram", relative=True)
                self.assertEqual((ran.code, len(ran.recordings())), (0, 1), ran.stderr)
                self.assertIn("30 events", ran.stderr)
                self.assertEqual({event[5] for event in ran.only()}, {program.name})

    def test_nobody_listens(self):
        """Standard error is a pipe without a reader; the exit code is still the program's."""
        here = folder()
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([CLI, "run", "-o", here / "x.vram", "--", "sh", "-c", "exit 7"], stderr=write, timeout=60,
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        os.close(write)
        self.assertEqual(done.returncode, 7)

    def test_one_run_in_another(self):
        ran = run([CLI, "run", "-o", "inner-%p.vram", "--stacks", "none", "--", NASTY, "pairs"], folder=folder(), cwd=True)
        self.assertEqual(ran.code, 0, ran.stderr)
        self.assertEqual([(name[:6], len(events)) for name, events in ran.recordings().items()], [("inner-", 30)])


if __name__ == "__main__":
    unittest.main(verbosity=os.environ.get("VERBOSE", "1") != "1")
