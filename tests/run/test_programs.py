#!/usr/bin/env python3
"""`vram run` with one program that reaches the simulated driver in three ways: the recording has exactly the driver's events."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "real"))

import recorded
from support import CLI, PROGRAMS, SCRATCH, WAYS, Expected, plain, run, split_by_device

MIB = 1 << 20


def program(way, *arguments):
    return [PROGRAMS / f"run_{way}", *arguments]


def each_way(test):
    """Decorator that runs the test for each build of the program."""

    def all_ways(self):
        for way in WAYS:
            with self.subTest(way=way):
                test(self, way)

    return all_ways


class Programs(unittest.TestCase):
    def compare(self, events, calls):
        """Compares each thread's events. Host memory is compared for all threads together: another thread may reuse an address before the
        call that freed it returns, and then that thread's record includes the free."""
        expected = Expected(calls)
        for thread, wanted in expected.by_thread.items():
            recorded = plain([event for event in events if event[6] == thread])
            self.assertEqual(split_by_device(recorded)["0"], split_by_device(wanted)["0"])
        recorded, wanted = split_by_device(plain(events))["host0"], split_by_device(expected.all())["host0"]
        self.assertEqual(sorted(recorded), sorted(wanted))
        self.assertEqual(len(events), len(expected.all()))
        self.assertGreater(len(events), 20)

    @each_way
    def test_event_for_event(self, way):
        ran = run(program(way, "basic"))
        self.assertEqual(ran.code, 0, ran.stderr)
        events = ran.only()
        self.compare(events, ran.log())
        self.assertEqual({event[5] for event in events}, {f"run_{way}"})
        self.assertEqual([event[1] for event in events].count("oom"), 1)
        self.assertIn("out of memory 1 time", ran.stderr)
        self.assertIn("of pinned host memory", ran.stderr)

    @each_way
    def test_every_family(self, way):
        """Uses the comparison for other people's programs (tests/real/recorded.py)."""
        ran = run(program(way, "families"))
        self.assertEqual(ran.code, 0, ran.stderr)
        # Ten allocations, and the frees of all but one array, two events each.
        self.assertEqual(recorded.differences(PROGRAMS / "run_events", ran.folder), ([], 28))
        self.assertEqual({event[4] for event in ran.only() if event[1] == "alloc"}, {"device", "managed", "async", "physical", "array", "pinned"})

    def test_a_difference_is_told(self):
        ran = run(program("linked", "families"))
        log = ran.folder / "driver.log"
        lines = log.read_text().splitlines()
        without = [line for line in lines if " cuMemAllocManaged " not in line]
        log.write_text("\n".join([*without, ""]))
        told, _ = recorded.differences(PROGRAMS / "run_events", ran.folder)
        self.assertIn("recorded, and not called", told[0])
        log.write_text("\n".join([*lines, lines[-1].replace("cuCtxDestroy_v2", "cuMemAlloc_v2") + " 0x100 0x0", ""]))
        told, _ = recorded.differences(PROGRAMS / "run_events", ran.folder)
        self.assertEqual(len(told), 1)
        self.assertIn("not recorded: 1 x ", told[0])

    @each_way
    def test_the_same_without(self, way):
        self.assertEqual(run(program(way, "touch"), options=None).stdout, run(program(way, "touch")).stdout)
        self.assertEqual(run(program(way, "nonsense")).code, 97)

    @each_way
    def test_eight_threads(self, way):
        ran = run(program(way, "threads"))
        self.assertEqual(ran.code, 0, ran.stderr)
        self.compare(ran.only(), ran.log())
        self.assertEqual(len({event[6] for event in ran.only()}), 8)

    @each_way
    def test_fork(self, way):
        ran = run(program(way, "fork"))
        self.assertEqual(ran.code, 0, ran.stderr)
        recordings, log = ran.recordings(), ran.log()
        processes = {call[0] for call in log}
        self.assertEqual(len(processes), 2)
        self.assertEqual(set(recordings), {f"r-{process}.vram" for process in processes})
        parent = log[0][0]
        self.compare(recordings[f"r-{parent}.vram"], [call for call in log if call[0] == parent])
        # The child's recording has only its own allocations.
        child = (processes - {parent}).pop()
        self.compare(recordings[f"r-{child}.vram"], [call for call in log if call[0] == child])

    def test_fork_while_others_allocate(self):
        ran = run(program("proc", "fork-storm"))
        self.assertEqual(ran.code, 0, ran.stderr)
        self.compare(ran.only(), ran.log())

    @each_way
    def test_killed(self, way):
        ran = run(program(way, "kill"))
        self.assertEqual(ran.code, 128 + 9)
        self.compare(ran.only(), ran.log())

    def test_exec(self):
        ran = run(program("dlsym", "exec"))
        self.assertEqual(ran.code, 0, ran.stderr)
        first, second = sorted(ran.recordings().items(), key=lambda item: len(item[0]))
        self.assertEqual(second[0], first[0].replace(".vram", ".1.vram"))
        log = ran.log()
        before = len(first[1])
        self.assertGreater(before, 5)
        events = first[1] + second[1]
        self.assertEqual(len(events), len(Expected(log[: self.calls_of_first(log)]).all() + Expected(log[self.calls_of_first(log) :]).all()))

    @staticmethod
    def calls_of_first(log):
        """Returns the index of the second program's first call: its addresses begin at the driver's first one again."""
        first = next(call[4][0] for call in log if call[2] == "cuMemAlloc_v2")
        return [index for index, call in enumerate(log) if call[2] == "cuMemAlloc_v2" and call[4][0] == first][1]

    @each_way
    def test_contexts_take_their_memory_with_them(self, way):
        events = plain(run(program(way, "contexts")).only())
        ends = [event[3] for event in events if event[1] == "free_completed"]
        self.assertEqual(sorted(ends), [4096, MIB, 2 * MIB])
        self.assertEqual(len(events), 3 * 3)

    @each_way
    def test_in_the_order_of_a_stream(self, way):
        ran = run(program(way, "async"))
        self.assertEqual(ran.code, 0, ran.stderr)
        sizes = [(event[1], event[3] // MIB) for event in ran.only() if event[4] == "async"]
        ended = [("free_requested", 3), ("free_completed", 3), ("free_requested", 5), ("free_completed", 5)]
        self.assertEqual(sizes, [("alloc", 3), ("alloc", 5), *ended])
        # Memory that the driver's pool took from the device and returned.
        pool = [event for event in ran.only() if event[1].startswith("segment")]
        self.assertGreaterEqual(sum(event[3] for event in pool if event[1] == "segment_map"), 8 * MIB)

    @each_way
    def test_in_the_order_of_a_stream_from_the_cache(self, way):
        ran = run(program(way, "async"), ["--cache"])
        self.assertEqual(ran.code, 0, ran.stderr)
        sizes = [(event[1], event[3] // MIB) for event in ran.only() if event[4] == "async"]
        ended = [("free_requested", 3), ("free_completed", 3), ("free_requested", 5), ("free_completed", 5)]
        self.assertEqual(sizes, [("alloc", 3), ("alloc", 5), *ended])

    @each_way
    def test_limit(self, way):
        ran = run(program(way, "limit", 64 * MIB), ["--limit", "64MiB"])
        self.assertEqual(ran.code, 0, ran.stderr)
        ooms = [event for event in ran.only() if event[1] == "oom"]
        self.assertEqual([(event[2], event[3]) for event in ooms], [(32 * MIB, 64 * MIB)])
        # The driver never got the request that the limit refused.
        self.assertNotIn("cuMemAlloc_v2 2", "\n".join(f"{call[2]} {call[3]}" for call in ran.log()))

    def test_limit_is_exact_between_threads(self):
        ran = run(program("proc", "race", 96 * MIB), ["--limit", "96MiB"])
        self.assertEqual(ran.code, 0, ran.stderr)
        self.assertEqual(sum(event[1] == "alloc" for event in ran.only()), 96)

    def test_limit_above_the_device_changes_nothing(self):
        ran = run(program("linked", "basic"), ["--limit", "64TiB"])
        self.assertEqual(ran.code, 0, ran.stderr)
        self.compare(ran.only(), ran.log())

    def test_stacks(self):
        for kind, has in (("none", False), ("c", True), ("all", True)):
            events = run(program("linked", "basic"), ["--stacks", kind]).only()
            self.assertEqual(all(event[7] > 0 for event in events), has, kind)
            self.assertEqual({event[5] for event in events}, {"run_linked"})

    def test_python(self):
        """The recorded Python stack leads to the line of the script, and the report at the end names it."""
        script = (
            "import ctypes\ncu = ctypes.CDLL('libcuda.so.1')\ncontext = ctypes.c_uint64()\n"
            "cu.cuInit(0)\ncu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\ncu.cuCtxSetCurrent(context)\n"
            "def layer(size):\n    address = ctypes.c_uint64()\n    return cu.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_uint64(size))\n"
            "assert layer(1 << 20) == 0\nassert layer(1 << 44) == 2\n"
        )
        for kind in ("python", "all"):
            ran = run(["true"], options=None)
            path = ran.folder / "layers.py"
            path.write_text(script)
            ran = run([sys.executable, path], ["--stacks", kind], folder=ran.folder)
            self.assertEqual(ran.code, 0, ran.stderr)
            self.assertEqual([event[1] for event in ran.only()], ["alloc", "oom"])
            self.assertIn("layers.py:9:layer", ran.stderr)

    def test_reports_say_nothing_of_what_is_reserved(self):
        """For a recording of a whole program, the bytes requested from the driver are its allocated bytes. Mapped pages are part of them,
        so reports mention no reserved bytes."""
        ran = run(program("linked", "basic"))
        for options in ([], ["--timeline"]):
            text = subprocess.run([CLI, "report", *options, *ran.folder.glob("*.vram")], capture_output=True, text=True, check=True).stdout
            self.assertRegex(text, "(?i)timeline|allocated up to")
            self.assertNotIn("reserved", text)

    def test_dump_at_oom(self):
        ran = run(program("linked", "basic"), ["--on-oom", "dump"])
        recordings = ran.recordings()
        self.assertEqual(len(recordings), 2)
        dumped = next(events for name, events in recordings.items() if name.endswith("-oom1.vram"))
        self.assertEqual(dumped[-1][1], "oom") if dumped[-1][0] == "0" else None
        self.assertNotIn("Out of memory", ran.stderr)

    @each_way
    def test_cache(self, way):
        ran = run(program(way, "touch"), ["--cache"])
        self.assertEqual((ran.code, ran.stdout), (0, "same\n"), ran.stderr)
        tags = [event[1] for event in ran.only() if event[4] == "device"]
        self.assertEqual(tags.count("alloc"), 3)
        self.assertEqual(tags.count("free_completed"), 3)
        # One segment serves them all; the recording has no driver calls of the allocator.
        self.assertEqual([call[2] for call in ran.log()].count("cuMemAlloc_v2"), 1)

    def test_cache_under_load(self):
        for arguments in (["basic"], ["threads"]):
            ran = run(program("proc", *arguments), ["--cache", "--conf", "expandable_segments:True"])
            self.assertEqual(ran.code, 0, ran.stderr)

    def test_exit_codes(self):
        self.assertEqual(run(["sh", "-c", "exit 7"]).code, 7)
        self.assertEqual(run(["sh", "-c", "kill -15 $$"]).code, 128 + 15)
        missing = run(["no-such-program-here"])
        self.assertEqual((missing.code, missing.stderr), (127, "vram run: no-such-program-here: No such file or directory\n"))
        self.assertEqual(run(["/etc/passwd"]).code, 126)
        self.assertIn("no file was written", run(["true"]).stderr)
        self.assertNotIn("vram sim", run(["true"]).stderr)
        without = run(["true"], environment={"VRAM_LIBCUDA": "/no/such/libcuda.so.1"}).stderr
        self.assertTrue(without.endswith("vram run: no CUDA driver found; to use a simulated one, run `vram sim -- vram run -- true`\n"))

    def test_terminated_from_outside(self):
        ran = run(["sh", "-c", "kill -TERM $PPID; exec sleep 20"])
        self.assertEqual(ran.code, 128 + 15)

    def test_a_plain_name_is_replaced_and_processes_do_not_clash(self):
        first = run(program("linked", "fork"), pattern="same.vram")
        self.assertEqual(sorted(first.recordings()), ["same.1.vram", "same.vram"])
        second = run(program("linked", "basic"), pattern="same.vram", folder=first.folder)
        self.assertEqual(second.code, 0, second.stderr)
        self.assertEqual(sum(event[1] == "oom" for event in second.recordings()["same.vram"]), 1)

    def test_where_nothing_can_be_written(self):
        ran = run(program("linked", "touch"), pattern="no/such/folder/x.vram")
        self.assertEqual(ran.code, 0)
        self.assertIn("warning: the recording ended early", ran.stderr)

    def test_a_library_whose_path_the_linker_cannot_read(self):
        for name in ("with space", "with:colon"):
            with tempfile.TemporaryDirectory(dir=SCRATCH.name) as scratch:
                folder, temporary = Path(scratch) / name, Path(scratch) / "tmp dir"
                folder.mkdir()
                temporary.mkdir()
                library = folder / "libvram_preload.so"
                library.symlink_to(os.environ["VRAM_PRELOAD"])
                before = set(Path("/tmp").glob("vram-run-*"))
                for environment in ({"VRAM_PRELOAD": str(library)}, {"VRAM_PRELOAD": str(library), "TMPDIR": str(temporary)}):
                    ran = run(program("linked", "basic"), environment=environment)
                    self.assertEqual(ran.code, 0, ran.stderr)
                    self.compare(ran.only(), ran.log())
                    self.assertEqual({event[5] for event in ran.only()}, {"run_linked"})
                self.assertEqual(list(temporary.iterdir()), [])
                # Other processes may work there; new files must not be this test's.
                self.assertEqual([path for path in set(Path("/tmp").glob("vram-run-*/libvram_preload.so")) if path.parent not in before], [])

    def test_usage(self):
        for wrong in (["--limit", "much"], ["--limit", "1 "], ["--limit", "1 GiB "], ["--stacks", "deep"], ["--conf", "no_such_key:1"], ["-o", ""]):
            done = subprocess.run([CLI, "run", *wrong, "--", "true"], capture_output=True, text=True, timeout=20)
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(subprocess.run([CLI, "run"], capture_output=True, timeout=20).returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=os.environ.get("VERBOSE", "1") != "1")
