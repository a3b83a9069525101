#!/usr/bin/env python3
"""Tests each way to reach a function of libcuda: a call is recorded exactly once, or `vram run` says that it was not. The driver only
counts."""
import os
import re
import unittest
from collections import Counter
from pathlib import Path

from support import PROGRAMS, plain, read_events, run

FAKE = PROGRAMS / "fake" / "libcuda.so.1"
PLUGIN = PROGRAMS / "librun_plugin.so"
DOORS = PROGRAMS / "run_doors"
KINDS = {"Managed": "managed", "Async": "async", "Host": "pinned", "Array": "array", "MemCreate": "physical"}


def gives(name):
    """Returns the tag of memory that a driver function allocates, or None."""
    if name.startswith("cuMemHostRegister"):
        return "registered"
    if not re.search(r"Alloc(?!ation)|Create", name) or "Ctx" in name:
        return None
    return next((tag for part, tag in KINDS.items() if part in name), "device")


def without_questions(calls):
    """Returns the calls without queries of free memory, which find the sizes of contexts and modules and change nothing."""
    return [name for name in calls if name != "cuMemGetInfo_v2"]


class Doors(unittest.TestCase):
    def go(self, *command, options=(), environment=None):
        env = {"FAKE_CUDA_LOG": "", **(environment or {})}
        ran = run(["env", "true"], options=None)  # makes a folder
        env["FAKE_CUDA_LOG"] = str(ran.folder / "fake.log")
        again = run(command, options, env, library_path=f"{FAKE.parent}:{PROGRAMS}", folder=ran.folder)
        self.assertEqual(again.code, 0, again.stderr)
        log = ran.folder / "fake.log"
        again.calls = [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []
        again.events = [event for path in sorted(ran.folder.glob("*.vram")) for event in plain(read_events(path))]
        return again

    def exactly_once(self, ran, events=None):
        given = Counter(filter(None, map(gives, ran.calls)))
        events = ran.events if events is None else events
        for action in ("alloc", "free_requested", "free_completed"):
            self.assertEqual(Counter(event[4] for event in events if event[1] == action), given, action)
        self.assertEqual(sum(event[1] == "segment_map" for event in events), ran.calls.count("cuMemMap"))
        self.assertGreater(sum(given.values()), 0)

    def test_every_function_through_every_door(self):
        table = (Path(__file__).parents[2] / "adapters/preload/doors.def").read_text()
        names = set(re.findall(r"^X\(\w+, \w+, (\w+),", table, re.M))
        self.assertGreater(len(names), 40)
        for door in ("handle", "default", "next", "dlvsym", "dlsym-by-dlsym", "proc1", "proc2", "proc2-by-proc2", "mixed", "dlmopen"):
            with self.subTest(door=door):
                ran = self.go(DOORS, door, FAKE)
                self.assertEqual(set(ran.calls), names)
                self.assertEqual(without_questions(ran.calls), without_questions(self.go(DOORS, door, FAKE, options=None).calls))
                self.exactly_once(ran)
                self.assertNotIn("warning:", ran.stderr)

    def test_plugins(self):
        for door in ("plugin", "plugin-deepbind"):
            with self.subTest(door=door):
                ran = self.go(DOORS, door, FAKE, PLUGIN)
                self.assertEqual(len(ran.calls), 6)
                self.exactly_once(ran)
                self.assertNotIn("warning:", ran.stderr)

    def test_linked(self):
        ran = self.go(PROGRAMS / "run_linked_plugin")
        self.assertEqual(len(ran.calls), 6)
        self.exactly_once(ran)

    def test_in_a_constructor(self):
        ran = self.go(PROGRAMS / "run_linked_early")
        self.assertEqual(len(ran.calls), 8)
        self.exactly_once(ran)

    def test_deepbind_kept_is_missed_and_said(self):
        ran = self.go(DOORS, "plugin-deepbind", FAKE, PLUGIN, options=["--keep-deepbind"])
        self.assertEqual(len(ran.calls), 6)
        self.assertLess(sum(event[1] == "alloc" for event in ran.events), 3)
        self.assertIn("warning: not recorded, because RTLD_DEEPBIND was kept: calls of /", ran.stderr)

    def test_a_namespace_of_its_own_is_missed_and_said(self):
        ran = self.go(DOORS, "plugin-namespace", FAKE, PLUGIN)
        self.assertEqual(len(ran.calls), 6)
        self.assertLess(sum(event[1] == "alloc" for event in ran.events), 3)
        self.assertIn("warning: not recorded, because dlmopen loaded it into its own namespace: /", ran.stderr)

    def test_libcuda_closed_and_opened_again(self):
        ran = self.go(DOORS, "reopen", FAKE)
        self.assertEqual(len(ran.calls), 40)
        self.exactly_once(ran)
        self.assertNotIn("warning:", ran.stderr)

    def test_absent_stays_absent(self):
        self.assertEqual(self.go(DOORS, "absent", FAKE).calls, [])

    def test_an_interface_of_tomorrow_is_left_alone_and_said(self):
        ran = self.go(DOORS, "newer", FAKE)
        self.assertEqual(ran.calls, ["newer"])
        self.assertIn("warning: not recorded: a newer interface of cuMemAlloc", ran.stderr)

    def test_a_clean_environment_is_missed(self):
        """Not reported, because no part of vram is in that process. The guide mentions it."""
        ran = self.go("env", "-i", f"LD_LIBRARY_PATH={FAKE.parent}", str(DOORS), "handle", str(FAKE))
        self.assertEqual(ran.events, [])

    def test_a_static_program_is_said(self):
        ran = self.go(PROGRAMS / "run_static")
        self.assertIn("cannot be recorded: it is linked statically", ran.stderr)

    def test_every_stack_kind_sees_the_same(self):
        seen = [self.go(DOORS, "proc2", FAKE, options=["--stacks", kind]).events for kind in ("none", "c", "python", "all")]
        self.assertTrue(all(events == seen[0] for events in seen))


if __name__ == "__main__":
    unittest.main(verbosity=os.environ.get("VERBOSE", "1") != "1")
