#!/usr/bin/env python3
"""Tests which processes use the device's memory when a program runs out: the measured contexts and modules of the program, the other
processes listed by NVIDIA's management library (a stand-in here), and the unknown rest. The recording, the page and the JSON agree."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import CLI, PROGRAMS, run

MIB = 1 << 20
FAKE = PROGRAMS / "fake"
NVML, NVML_FIRST = PROGRAMS / "nvml", PROGRAMS / "nvml1"
DOORS = PROGRAMS / "run_doors"
HELD = MIB  # bytes of run_doors when it runs out
IN_USE = (100 + 300 + 8) * MIB  # on the fake driver's device: before the program, its context, the module that stays


def report(ran):
    """Returns the last out-of-memory error as JSON, and the page."""
    path = next(ran.folder.glob("*.vram"))
    done = subprocess.run([CLI, "report", "--json", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    device = json.loads(done.stdout)["devices"]["0"]
    page = subprocess.run([CLI, "report", path], capture_output=True, text=True, timeout=60).stdout
    return device["oom_causes"][-1], page


class FakeCard(unittest.TestCase):
    """A driver whose contexts take 300 MiB and whose modules take 8 MiB."""

    def go(self, said, library=NVML, **more):
        path = f"{FAKE}:{library}" if library else str(FAKE)
        environment = {"FAKE_NVML": said, "FAKE_CUDA_LOG": "", **more}
        ran = run([DOORS, "accounts", FAKE / "libcuda.so.1"], (), environment, library_path=path)
        self.assertEqual(ran.code, 0, ran.stderr)
        cause, page = report(ran)
        # `vram run` prints the same page at the end.
        start = page.index("    #  in use")
        self.assertIn(page[start : page.index("    why")], ran.stderr)
        self.assertIn("doors.c:", ran.stderr)
        accounts = cause["accounts"]
        parts = [accounts[key] or 0 for key in ("context_bytes", "module_bytes", "driver_bytes", "other_bytes", "unknown_bytes")]
        self.assertEqual(sum(parts), cause["outside_bytes"])
        self.assertEqual(cause["outside_bytes"], IN_USE - HELD)
        return accounts, page

    def test_two_other_processes(self):
        self_bytes = HELD + (300 + 8 + 5) * MIB
        accounts, page = self.go(f"4000000001:{20 * MIB} self:{self_bytes} 4000000002:{60 * MIB}")
        self.assertEqual(accounts["context_bytes"], 300 * MIB)
        self.assertEqual(accounts["module_bytes"], 8 * MIB)
        self.assertEqual(accounts["driver_bytes"], 5 * MIB)
        self.assertEqual(accounts["other_bytes"], 80 * MIB)
        self.assertEqual(accounts["unknown_bytes"], 100 * MIB - 80 * MIB - 5 * MIB - HELD)
        self.assertEqual([(p["pid"], p["name"], p["bytes"]) for p in accounts["processes"]],
                         [(4000000002, "", 60 * MIB), (4000000001, "", 20 * MIB)])
        self.assertTrue(accounts["apart"])
        self.assertRegex(page, r"context +313\.0 MiB  for this process: contexts 300\.0 MiB, modules 8\.0 MiB, other 5\.0 MiB")
        self.assertRegex(page, r"others +80\.0 MiB  other processes")
        self.assertRegex(page, r"other processes\n +60\.0 MiB  process 4000000002\n +20\.0 MiB  process 4000000001\n")
        self.assertNotIn("vram_accounts", page)

    def test_names_are_those_of_the_system(self):
        # This process exists for the whole test.
        accounts, page = self.go(f"self:{HELD} {os.getpid()}:{MIB}")
        name = Path(f"/proc/{os.getpid()}/comm").read_text(encoding="utf-8").strip()
        self.assertEqual(accounts["processes"], [{"pid": os.getpid(), "name": name, "bytes": MIB}])
        self.assertIn(f"process {os.getpid()} ({name})", page)

    def test_a_hostile_name(self):
        script = "import time\nopen('/proc/self/comm', 'wb').write(bytes([97, 27, 91, 34, 98, 92]))\nprint(flush=True)\ntime.sleep(100)"
        sleeper = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        try:
            sleeper.stdout.readline()
            accounts, page = self.go(f"self:{HELD} {sleeper.pid}:{MIB}")
            self.assertEqual(accounts["processes"][0]["name"], "a?[\"b\\")
            self.assertNotIn("\x1b", page)
        finally:
            sleeper.kill()
            sleeper.wait()
            sleeper.stdout.close()

    def test_only_the_first_interface(self):
        for said, library in (("", NVML_FIRST), ("old ", NVML)):
            accounts, _ = self.go(f"{said}self:{HELD} 4000000001:{20 * MIB} 4000000002:{60 * MIB}", library)
            self.assertEqual([p["bytes"] for p in accounts["processes"]], [60 * MIB, 20 * MIB])

    def test_wide_entries(self):
        accounts, _ = self.go(f"wide self:{HELD} 4000000001:{20 * MIB} 4000000002:{60 * MIB}")
        self.assertEqual([p["pid"] for p in accounts["processes"]], [4000000002, 4000000001])

    def test_computes_and_draws(self):
        accounts, _ = self.go(f"self:{HELD} 4000000001:{20 * MIB} draws:4000000001:{20 * MIB} draws:4000000002:{MIB}")
        self.assertEqual([(p["pid"], p["bytes"]) for p in accounts["processes"]], [(4000000001, 20 * MIB), (4000000002, MIB)])

    def test_the_library_refuses(self):
        accounts, page = self.go("fails")
        self.assertEqual(accounts["why"], "NVML cannot list processes: Not Supported")
        self.assertIsNone(accounts["other_bytes"])
        self.assertEqual(accounts["unknown_bytes"], 100 * MIB - HELD)
        self.assertIn("not known: NVML cannot list processes: Not Supported", page)

    def test_it_does_not_start(self):
        self.assertEqual(self.go("no-init")[0]["why"], "cannot initialize NVML: Driver Not Loaded")

    def test_it_does_not_know_the_device(self):
        self.assertEqual(self.go("nowhere")[0]["why"], "NVML cannot find the device: Not Found")

    def test_this_process_has_another_number_there(self):
        """As in a container, one of the listed processes is this one, but its number there is unknown."""
        mine = HELD + 308 * MIB
        accounts, page = self.go(f"71:{mine} 72:{60 * MIB}")
        self.assertFalse(accounts["apart"])
        self.assertEqual(accounts["other_bytes"], 60 * MIB)
        self.assertIn("processes on the device, possibly including this one", page)
        self.assertIn("other processes, possibly including this one", page)

    def test_nobody_but_this_one(self):
        accounts, page = self.go(f"self:{HELD}")
        self.assertEqual((accounts["processes"], accounts["other_bytes"], accounts["why"]), ([], 0, ""))
        self.assertEqual(accounts["unknown_bytes"], 100 * MIB - HELD)
        self.assertNotIn("    other processes\n", page)

    def test_nobody_not_even_this_one(self):
        accounts, page = self.go("")
        self.assertEqual((accounts["processes"], accounts["other_bytes"], accounts["unknown_bytes"]), ([], None, 100 * MIB - HELD))
        self.assertIn("others not known: NVML lists no processes on the device, as in many containers", page)

    def test_bytes_that_are_not_available(self):
        accounts, page = self.go("self:- 4000000001:- 4000000002:7")
        self.assertEqual([p["bytes"] for p in accounts["processes"]], [7, None])
        self.assertIsNone(accounts["driver_bytes"])
        self.assertRegex(page, r"not known  process 4000000001")

    def test_no_library(self):
        accounts, page = self.go("", library=None, VRAM_NVML="/nowhere/libnvidia-ml.so.1")
        self.assertTrue(accounts["why"].startswith("NVML is not available: "), accounts["why"])
        self.assertEqual(accounts["context_bytes"], 300 * MIB)

    def test_more_processes_than_anybody_wants_to_see(self):
        accounts, page = self.go(f"self:{HELD} " + " ".join(f"{4000000000 + i}:{i}" for i in range(150)))
        self.assertEqual((len(accounts["processes"]), accounts["left_out"]), (128, 22))
        self.assertIn("      and 145 more\n", page)

    def test_who_asked(self):
        cause, page = report(run([DOORS, "accounts", FAKE / "libcuda.so.1"], (), {"FAKE_NVML": ""}, library_path=f"{FAKE}:{NVML}"))
        self.assertEqual([(row["site"], row["bytes"]) for row in cause["libraries"]], [("run_doors", HELD)])
        self.assertRegex(page, r"allocated by\n +1\.0 MiB  100\.0 %  #+  run_doors\n")


class Doctor(unittest.TestCase):
    def ask(self, library):
        environment = dict(os.environ, VRAM_NVML=str(library), FAKE_NVML="")
        done = subprocess.run([CLI, "doctor", "--json"], capture_output=True, text=True, timeout=60, env=environment)
        return next(row for row in json.loads(done.stdout)["checks"] if row["name"] == "NVML")

    def test_it_says_whether_nvml_is_there(self):
        self.assertEqual(self.ask(NVML / "libnvidia-ml.so.1")["state"], "ok")
        absent = self.ask("/nowhere/libnvidia-ml.so.1")
        self.assertEqual(absent["state"], "off")
        self.assertIn("NVML is not available", json.dumps(absent))


class SimulatedCard(unittest.TestCase):
    """The simulated driver, which like NVIDIA's reports nothing before a context exists."""

    def test_the_first_context(self):
        environment = {"VRAM_SIM": "memory=1GiB,context=300MiB", "FAKE_NVML": ""}
        ran = run([PROGRAMS / "run_proc", "basic"], (), environment, library_path=f"{NVML}:{os.environ['VRAM_TEST_SIM']}")
        self.assertEqual(ran.code, 0, ran.stderr)
        cause, page = report(ran)
        accounts = cause["accounts"]
        self.assertAlmostEqual(cause["outside_bytes"], 300 * MIB, delta=8192) # the last rows of pitched memory are shorter
        self.assertEqual((accounts["context_bytes"], accounts["at_start_bytes"]), (None, 300 * MIB))
        self.assertEqual(accounts["unknown_bytes"], cause["outside_bytes"])
        self.assertIn("contexts, other processes; 300.0 MiB was in use just after the first context was created", " ".join(page.split()))

    def test_the_first_context_by_nvml(self):
        # A first run's report says how many bytes the program holds when memory runs out.
        library_path = f"{NVML}:{os.environ['VRAM_TEST_SIM']}"
        environment = {"VRAM_SIM": "memory=1GiB,context=300MiB", "FAKE_NVML": ""}
        held = report(run([PROGRAMS / "run_proc", "basic"], (), environment, library_path=library_path))[0]["allocated_bytes"]
        environment["FAKE_NVML"] = f"self:{held + 300 * MIB}"
        cause = report(run([PROGRAMS / "run_proc", "basic"], (), environment, library_path=library_path))[0]
        self.assertEqual((cause["accounts"]["driver_bytes"], cause["accounts"]["unknown_bytes"]), (cause["outside_bytes"], 0))

    def test_the_simulators_own_nvml(self):
        """Under `vram sim` NVML's stand-in knows the memory of the process, so none is of unknown use."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = [CLI, "sim", "--memory", "1GiB", "--set", "context=300MiB", "--", CLI, "run", "--", PROGRAMS / "run_proc", "basic"]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("VRAM_")}
            done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            recording = next(Path(folder).glob("*.vram"))
            told = json.loads(subprocess.run([CLI, "report", "--json", recording], capture_output=True, text=True, timeout=60).stdout)
        accounts = told["devices"]["0"]["oom_causes"][-1]["accounts"]
        self.assertEqual((accounts["driver_bytes"], accounts["unknown_bytes"], accounts["apart"]), (300 * MIB, 0, True))

    def test_threads_that_run_out_together(self):
        """A thread that runs out while another one asks gets no account. No thread waits, and the program is not affected."""
        environment = {"VRAM_SIM": "memory=96MiB", "FAKE_NVML": f"self:{96 * MIB}"}
        ran = run([PROGRAMS / "run_proc", "race", 96 * MIB], (), environment, library_path=f"{NVML}:{os.environ['VRAM_TEST_SIM']}")
        self.assertEqual(ran.code, 0, ran.stderr)
        path = next(ran.folder.glob("*.vram"))
        done = subprocess.run([CLI, "report", "--json", path], capture_output=True, text=True, timeout=60)
        causes = json.loads(done.stdout)["devices"]["0"]["oom_causes"]
        self.assertEqual(len(causes), 8)
        self.assertTrue(any(cause["accounts"] for cause in causes))

    def test_the_cache_tells_them_too(self):
        environment = {"VRAM_SIM": "memory=1GiB,context=300MiB", "FAKE_NVML": "self:1"}
        ran = run([PROGRAMS / "run_proc", "basic"], ["--cache"], environment, library_path=f"{NVML}:{os.environ['VRAM_TEST_SIM']}")
        self.assertEqual(ran.code, 0, ran.stderr)
        self.assertEqual(report(ran)[0]["accounts"]["at_start_bytes"], 300 * MIB)

    def test_a_limit_asks_nobody(self):
        ran = run([PROGRAMS / "run_proc", "limit", 64 * MIB], ["--limit", "64MiB"], {"FAKE_NVML": "self:1"},
                  library_path=f"{NVML}:{os.environ['VRAM_TEST_SIM']}")
        self.assertIsNone(report(ran)[0]["accounts"])

    def test_a_pickle_keeps_them(self):
        environment = {"VRAM_SIM": "memory=1GiB,context=300MiB", "FAKE_NVML": f"self:{400 * MIB} 4000000001:{MIB}"}
        ran = run([PROGRAMS / "run_proc", "basic"], (), environment, library_path=f"{NVML}:{os.environ['VRAM_TEST_SIM']}")
        before = report(ran)[0]["accounts"]
        path = next(ran.folder.glob("*.vram"))
        for kind in ("pickle", "json"):
            other = ran.folder / f"other.{kind}"
            subprocess.run([CLI, "convert", path, "-o", other], check=True, capture_output=True, timeout=60)
            done = subprocess.run([CLI, "report", "--json", other], capture_output=True, text=True, timeout=60)
            self.assertEqual(json.loads(done.stdout)["devices"]["0"]["oom_causes"][-1]["accounts"], before)


if __name__ == "__main__":
    unittest.main(verbosity=os.environ.get("VERBOSE", "1") != "1")
