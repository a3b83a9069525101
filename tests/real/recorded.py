"""Compares a recording of `vram run` with the calls that the simulated driver answered (VRAM_SIM_LOG), event by event, per thread.

The log does not depend on the recording library, nor the recording on the log. Allocations and frees of memory of
every kind are compared, with address and size, and so are out-of-memory errors; arrays are only counted, because no driver reports their
size. The contents of a driver's pool and the mapping of physical memory (`segment_map`) are left out: pools are not calls."""
import collections
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))
from expected import Expected, read_log  # noqa: E402


def recorded_events(reader, path):
    """Returns (action, address, size, kind) by thread, in order."""
    done = subprocess.run([reader, str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(f"{path.name}: {done.stderr.strip()}")
    threads = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        device, action, address, size, kind, _, thread, _ = line.split("\t")
        threads[int(thread)].append(comparable(device, action, int(address, 0), int(size), kind))
    return threads


def comparable(device, action, address, size, kind):
    """Returns an event without what only one side knows. The log lacks the device number; physical memory and arrays have no address."""
    size = None if kind == "array" else size
    if action == "oom" or kind in ("physical", "array"):
        address = None
    return "host" if device.startswith("host") else "device", action, address, size, kind


def events_of(threads):
    """Merges the threads and leaves out maps: a recording keeps order only on a device and on the host."""
    kept = collections.defaultdict(list)
    for thread, events in threads.items():
        for event in events:
            if not event[1].startswith("segment"):
                kept[thread, event[0]].append(event)
    return kept


def differences(reader, folder):
    """Returns lines with the differences between folder/driver.log and folder/*.vram, and the number of events of the log."""
    calls = collections.defaultdict(list)
    for call in read_log(folder / "driver.log"):
        calls[call[0]].append(call)
    found, count = [], 0
    for process, own in calls.items():
        told = collections.defaultdict(list)
        for path in sorted(folder.glob(f"r-{process}*.vram")):
            if re.fullmatch(rf"r-{process}(-\d+)?\.vram", path.name):
                for thread, events in recorded_events(reader, path).items():
                    told[thread] += events
        wanted = events_of({thread: [comparable(*event) for event in events] for thread, events in Expected(own).by_thread.items()})
        told = events_of(told)
        count += sum(len(events) for events in wanted.values())
        for key in sorted(wanted.keys() | told.keys()):
            found += difference(f"process {process}, thread {key[0]}, {key[1]}", wanted[key], told[key])
    return found, count


def difference(where, wanted, told):
    """Compares two lists of events. A context that ends frees its memory in any order, so frees may differ in order if all are present."""
    if wanted == told:
        return []
    missing, more = collections.Counter(wanted) - collections.Counter(told), collections.Counter(told) - collections.Counter(wanted)
    lines = [f"{where}: not recorded: {count} x {event}" for event, count in missing.most_common(3)]
    lines += [f"{where}: recorded, and not called: {count} x {event}" for event, count in more.most_common(3)]
    births = [event for event in wanted if event[1] == "alloc"], [event for event in told if event[1] == "alloc"]
    return lines if lines or births[0] == births[1] else [f"{where}: in another order"]


def main():
    """usage: recorded.py READER FOLDER: folder/driver.log and folder/r-PID.vram, read by tests/run/run_events."""
    found, count = differences(sys.argv[1], pathlib.Path(sys.argv[2]))
    print("\n".join(found[:20]))
    print(f"{count} events, {len(found)} differences")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
