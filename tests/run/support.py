"""What the tests of `vram run` share: running programs under it, reading recordings, and what a log of the simulated driver lets expect."""
import os
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

SCRATCH = tempfile.TemporaryDirectory(prefix="vram-run-", dir=os.environ.get("VRAM_TEST_SCRATCH"))
CLI = os.environ["VRAM_TEST_CLI"]
PROGRAMS = Path(os.environ["VRAM_TEST_PROGRAMS"])
WAYS = ("linked", "proc", "dlsym")
OUT_OF_MEMORY = 2


class Ran:
    """A finished program: its exit code, its output, the recordings by process, and the driver's log by process."""

    def __init__(self, folder, finished):
        self.folder, self.code = Path(folder), finished.returncode
        self.stdout, self.stderr = finished.stdout, finished.stderr

    def recordings(self):
        """Lists of events, by file name."""
        return {path.name: read_events(path) for path in sorted(self.folder.glob("*.vram"))}

    def only(self):
        recordings = self.recordings()
        assert len(recordings) == 1, recordings.keys()
        return next(iter(recordings.values()))

    def log(self):
        """The driver's calls as (process, thread, name, result, values), in the order of their ends."""
        path = self.folder / "driver.log"
        calls = []
        for line in path.read_text().splitlines() if path.exists() else ():
            process, thread, name, result, *values = line.split()
            calls.append((int(process), int(thread), name, int(result), [int(value, 0) for value in values]))
        return calls


def run(command, options=(), environment=None, library_path=None, pattern="r-%p.vram", folder=None, cwd=False, relative=False):
    """Runs it under `vram run` in a folder of its own (which lives as long as the test), or, with options None, without. `cwd`: it starts
    in that folder; `relative`: the pattern is relative to it."""
    folder = folder or tempfile.mkdtemp(dir=SCRATCH.name)
    env = dict(os.environ, VRAM_SIM_LOG=f"{folder}/driver.log", LD_LIBRARY_PATH=library_path or os.environ["VRAM_TEST_SIM"])
    env.update(environment or {})
    before = [] if options is None else [CLI, "run", "-o", pattern if relative else f"{folder}/{pattern}", *options, "--"]
    place = folder if cwd else None
    return Ran(folder, subprocess.run([*before, *map(str, command)], env=env, cwd=place, capture_output=True, text=True, timeout=200))


def read_events(path):
    """(device, action, address, size, tag, library, thread, depth of the stack), in order of the device's history."""
    done = subprocess.run([PROGRAMS / "run_events", str(path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    events = []
    for line in done.stdout.splitlines():
        device, action, address, size, tag, library, thread, depth = line.split("\t")
        events.append((device, action, int(address, 0), int(size), tag, library, int(thread), int(depth)))
    return events


def plain(events):
    """Events without what a driver cannot know: library, thread, stack; physical memory without its made-up address."""
    return [(device, action, None if tag == "physical" else address, size, tag) for device, action, address, size, tag, *_ in events]


class Expected:
    """Turns a driver's log into the events of a recording, per thread. Threads give back what they took themselves: lines of different
    threads may be in another order than what they tell."""

    def __init__(self, calls):
        self.by_thread = defaultdict(list)
        known = defaultdict(lambda: ({}, {}, {}))
        for process, thread, name, result, values in calls:
            self.now = self.by_thread[thread]
            self.sizes, self.handles, self.ranges = known[thread]
            handler = getattr(self, name, None)
            if result == 0 and handler is not None:
                handler(*values)
            elif result == OUT_OF_MEMORY:
                self.now.append(("0", "oom", None, values[1], ""))

    def all(self):
        return [event for events in self.by_thread.values() for event in events]

    def born(self, device, address, size, tag):
        self.sizes[device, address] = size, tag
        self.now.append((device, "alloc", address, size, tag))

    def died(self, device, address, shown, known=None):
        size, tag = known or self.sizes.pop((device, address))
        self.now.append((device, "free_requested", shown, size, tag))
        self.now.append((device, "free_completed", shown, size, tag))

    def cuMemAlloc_v2(self, address, size):
        self.born("0", address, size, "device")

    def cuMemFree_v2(self, address):
        if address != 0:
            self.died("0", address, address)

    def cuMemHostAlloc(self, address, size):
        self.born("host0", address, size, "pinned")

    def cuMemFreeHost(self, address):
        self.died("host0", address, address)

    def cuMemHostRegister_v2(self, address, size):
        self.born("host0", address, size, "registered")

    def cuMemHostUnregister(self, address):
        self.died("host0", address, address)

    def cuMemCreate(self, handle, size):
        self.handles[handle] = [size, 1]
        self.now.append(("0", "alloc", None, size, "physical"))

    def less(self, handle):
        self.handles[handle][1] -= 1
        if self.handles[handle][1] == 0:
            self.died("0", None, None, (self.handles[handle][0], "physical"))

    def cuMemRelease(self, handle):
        self.less(handle)

    def cuMemMap(self, address, size, offset, handle):
        self.ranges[address] = size, handle
        self.handles[handle][1] += 1
        self.now.append(("0", "segment_map", address, size, ""))

    def cuMemUnmap(self, address, size):
        end = address + size
        while address < end:
            length, handle = self.ranges.pop(address)
            self.now.append(("0", "segment_unmap", address, length, ""))
            self.less(handle)
            address += length


def split_by_device(events):
    """A device's history is in order; the order between devices is not in a recording."""
    devices = defaultdict(list)
    for event in events:
        devices[event[0]].append((event[0], event[1], None, *event[3:]) if event[1] == "oom" else event)
    return devices
