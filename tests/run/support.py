"""Shared by the tests of `vram run`: runs programs under it, reads recordings, and computes the expected events from the driver's log."""
import os
import subprocess
import tempfile
from pathlib import Path

from expected import Expected, read_log, split_by_device

SCRATCH = tempfile.TemporaryDirectory(prefix="vram-run-", dir=os.environ.get("VRAM_TEST_SCRATCH"))
CLI = os.environ["VRAM_TEST_CLI"]
PROGRAMS = Path(os.environ["VRAM_TEST_PROGRAMS"])
EMULATED = "VRAM_TEST_EMULATED" in os.environ  # by qemu-user (tools/check_arm64.sh)
WAYS = ("linked", "proc", "dlsym")


class Ran:
    """A finished program: its exit code, its output, and the recordings and the driver's log by process."""

    def __init__(self, folder, finished):
        self.folder, self.code = Path(folder), finished.returncode
        self.stdout, self.stderr = finished.stdout, finished.stderr

    def recordings(self):
        """Returns lists of events, by file name."""
        return {path.name: read_events(path) for path in sorted(self.folder.glob("*.vram"))}

    def only(self):
        recordings = self.recordings()
        assert len(recordings) == 1, recordings.keys()
        return next(iter(recordings.values()))

    def log(self):
        """Returns the driver's calls as (process, thread, name, result, values), in the order of their ends."""
        return read_log(self.folder / "driver.log")


def run(command, options=(), environment=None, library_path=None, pattern="r-%p.vram", folder=None, cwd=False, relative=False):
    """Runs it under `vram run` in its own folder (which lives as long as the test), or, with options None, without. `cwd`: the folder it
    starts in; `relative`: the pattern is relative to it."""
    folder = folder or tempfile.mkdtemp(dir=SCRATCH.name)
    env = dict(os.environ, VRAM_SIM_LOG=f"{folder}/driver.log", LD_LIBRARY_PATH=library_path or os.environ["VRAM_TEST_SIM"])
    env.update(environment or {})
    before = [] if options is None else [CLI, "run", "-o", pattern if relative else f"{folder}/{pattern}", *options, "--"]
    place = folder if cwd else None
    return Ran(folder, subprocess.run([*before, *map(str, command)], env=env, cwd=place, capture_output=True, text=True, timeout=200))


def read_events(path):
    """Returns (device, action, address, size, tag, library, thread, stack depth) in the order of the device's history."""
    done = subprocess.run([PROGRAMS / "run_events", str(path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    events = []
    for line in done.stdout.splitlines():
        device, action, address, size, tag, library, thread, depth = line.split("\t")
        events.append((device, action, int(address, 0), int(size), tag, library, int(thread), int(depth)))
    return events


def plain(events):
    """Returns events without what a driver cannot know: library, thread, stack, and the made-up address of physical memory."""
    return [(device, action, None if tag == "physical" else address, size, tag) for device, action, address, size, tag, *_ in events]
