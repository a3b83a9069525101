"""Compares the memory state that two runs of a program left (startup/memory_record.py), one with PyTorch's own allocator, one with vram's.

usage: same_memory.py OWN OURS      two folders; prints the differences, and exits 1 if there are any"""
import collections
import json
import pathlib
import pickle
import sys

# For pinned memory, only blocks in use are compared. Block sizes, and the block chosen for a request, follow vram's own rule; before pinned
# memory had a history, PyTorch's counters missed some frees (docs/differences.md).
HOST_KEYS = ("active_requests.allocated", "active_requests.current", "active_requests.freed")
MOST = 20  # differences printed per kind
# Values of PyTorch without meaning (docs/differences.md): the last request's size in a free block.
FREE_BLOCK_FIELDS = ("requested_size",)


def numbers_of_streams(snapshot):
    """Handles differ between runs, so streams are numbered by their first appearance in the history."""
    numbers = {0: 0}
    for trace in snapshot["device_traces"]:
        for event in trace:
            numbers.setdefault(event["stream"], len(numbers))
    for segment in snapshot["segments"]:
        numbers.setdefault(segment["stream"], len(numbers))
    return numbers


def frames_of(item):
    return [(frame["filename"], frame["line"], frame["name"]) for frame in item.get("frames", [])]


class Lost(list):
    """Frames that PyTorch may lose: when a segment is divided, its stack stays with its last piece. Empty ones are equal to all."""

    def __eq__(self, other):
        return not self or list(self) == list(other)

    def __ne__(self, other):
        return not self == other


def event_rows(snapshot):
    streams = numbers_of_streams(snapshot)
    for device, trace in enumerate(snapshot["device_traces"]):
        for event in trace:
            words = {key: value for key, value in event.items() if key not in ("time_us", "frames", "stream")}
            yield (device, streams[event["stream"]], sorted((key, str(value)) for key, value in words.items()), frames_of(event))


def state_rows(snapshot):
    streams = numbers_of_streams(snapshot)
    for segment in snapshot["segments"]:
        facts = {key: value for key, value in segment.items() if key not in ("blocks", "frames", "stream")}
        yield (streams[segment["stream"]], sorted((key, str(value)) for key, value in facts.items()), Lost(frames_of(segment)))
        for block in segment["blocks"]:
            free = block["state"] == "inactive"
            facts = {key: value for key, value in block.items() if key not in ("frames", *(FREE_BLOCK_FIELDS if free else ()))}
            yield (sorted((key, str(value)) for key, value in facts.items()), frames_of(block))


def host_rows(snapshot):
    """Yields the rows of pinned memory, if recorded. Addresses differ between runs, so they are numbered in the order of the events."""
    numbers, every = {}, snapshot.get("host_traces", [])
    for event in [each for item in every for each in (item if isinstance(item, list) else [item])]:
        words = {key: value for key, value in event.items() if key not in ("time_us", "frames", "addr")}
        number = numbers.setdefault(event["addr"], len(numbers))
        yield (number, sorted((key, str(value)) for key, value in words.items()), frames_of(event))
    rows = []
    for segment in snapshot.get("host_segments", []):
        facts = {key: value for key, value in segment.items() if key not in ("frames", "address", "blocks")}
        blocks = [sorted((key, str(value)) for key, value in block.items() if key not in ("frames", "address")) for block in segment.get("blocks", [])]
        rows.append((numbers.get(segment["address"]), sorted((key, str(value)) for key, value in facts.items()), blocks, frames_of(segment)))
    yield from sorted(rows, key=str)


def settings_rows(snapshot):
    return sorted((key, str(value)) for key, value in snapshot.get("allocator_settings", {}).items())


def annotation_rows(snapshot):
    return [(entry["name"], entry["stage"], entry["device"]) for entry in snapshot.get("external_annotations", [])]


def differences(own, ours):
    """Returns (differences as texts, rows compared) of two lists of rows."""
    found = [f"{index}: {left}\n     ours {right}" for index, (left, right) in enumerate(zip(own, ours)) if left != right]
    if len(own) != len(ours):
        found.append(f"{len(own)} rows, ours {len(ours)}")
    return found, max(len(own), len(ours))


def compare_process(own, ours):
    """Returns {kind: (differences, rows)} of two files of one process."""
    kinds = {}
    with open(own, "rb") as left, open(ours, "rb") as right:
        before, after = pickle.load(left), pickle.load(right)
    for kind, rows in (("events", event_rows), ("state", state_rows), ("settings", settings_rows), ("annotations", annotation_rows),
                       ("pinned", host_rows)):
        kinds[kind] = differences(list(rows(before)), list(rows(after)))
    stats = [json.loads(path.with_suffix(".json").read_text()) for path in (own, ours)]
    rows = [sorted((f"{device}:{key}", value) for device, table in enumerate(each["stats"]) for key, value in table.items()) for each in stats]
    kinds["statistics"] = differences(*rows)
    keys = HOST_KEYS if "host_traces" in before else HOST_KEYS[:1]
    kinds["host statistics"] = differences(*[[(key, each["host"].get(key)) for key in keys if each["host"]] for each in stats])
    return kinds


def answer_rows(folder):
    """Returns the answers that the program recorded itself (programs/rows.py)."""
    path = folder / "answers"
    return path.read_text().splitlines() if path.exists() else []


def compare(own, ours):
    """Returns ({kind: rows}, {kind: differences}) over all processes of two folders."""
    rows, found = collections.Counter(), collections.defaultdict(list)
    if answer_rows(own) or answer_rows(ours):
        found["answers"], rows["answers"] = differences(answer_rows(own), answer_rows(ours))
    names = {path.name for folder in (own, ours) for path in folder.glob("*.pickle")}
    for name in sorted(names):
        if not ((own / name).exists() and (ours / name).exists()):
            found["processes"].append(f"{name}: only {'PyTorch' if (own / name).exists() else 'vram'} has it")
            continue
        for kind, (differing, count) in compare_process(own / name, ours / name).items():
            rows[kind] += count
            found[kind] += [f"{name} {text}" for text in differing]
    return rows, {kind: texts for kind, texts in found.items() if texts}


def main():
    rows, found = compare(*map(pathlib.Path, sys.argv[1:3]))
    for kind, texts in found.items():
        print(f"--- {kind}: {len(texts)} differences")
        print("\n".join(texts[:MOST]))
    print(", ".join(f"{count} {kind}" for kind, count in rows.items()) + f"; {sum(map(len, found.values()))} differences")
    sys.exit(1 if found or not rows else 0)


if __name__ == "__main__":
    main()
