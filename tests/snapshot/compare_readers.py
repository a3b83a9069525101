"""compare_readers.py DUMP_MODEL [FILE...]: compares every column that the product's readers make of a file with Python's pickle and json.

Without files: small snapshots made here, in every encoding. Files are read as they are; those below 250 kB are also rewritten in every
encoding and read again.
"""
import glob
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from base64 import b64decode

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import make_corpus

HAS = {name: 1 << bit for bit, name in enumerate(
    ["device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type", "segment_pool_id",
     "is_expandable", "frames", "blocks", "size", "state", "history", "action", "time_us", "device_free", "compile_context", "user_metadata",
     "registration_counter", "thread", "category", "pool list", "cpp_frames"])}
HAS.update(addr=HAS["address"], pool_id=HAS["segment_pool_id"])
ACTIONS = {"alloc", "free_requested", "free_completed", "free", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot",
           "oom", "user_defined", "annotate"}
STATES = {"inactive", "active_allocated", "active_pending_free", "active_awaiting_free"}


def load(data):
    if data[:1] == b"\x80":
        return pickle.loads(data)
    match = re.search(rb'"base64"\s*:\s*"([^"]+)"', data)
    return pickle.loads(b64decode(match.group(1))) if match else json.loads(data.decode("utf-8-sig"))


def u64(value):
    return int(value) % 2**64


def text(value):
    if value is None:
        return ""
    return value if isinstance(value, str) else ("json", json.dumps(value))


def frames_of(value):
    return tuple((f.get("name", ""), f.get("filename", ""), u64(f.get("line", 0))) for f in value or [])


def has(item, keys, pairs):
    """Returns the bits of a row's keys. `pairs`: the file format distinguishes pairs from lists."""
    bits = sum({HAS[key] for key in keys if item.get(key) is not None})
    return bits | (HAS["pool list"] if pairs and any(isinstance(item.get(key), list) for key in ("pool_id", "segment_pool_id")) else 0)


def expected_block(block, cursor):
    address = u64(block.get("address", cursor))
    history = block.get("history") or []
    frames, requested = block.get("frames"), block.get("requested_size")
    if frames is None and history:
        frames = history[0].get("frames")
    if requested is None and history:
        requested = history[0].get("real_size")
    size = block["size"]
    state = block["state"] if block["state"] in STATES else "unknown"
    keys = ("address", "size", "requested_size", "state", "frames", "history")
    return (address, size, size if requested is None else requested, frames_of(frames), has(block, keys, False), state)


def expected_segment(item, pairs):
    cursor, blocks = u64(item["address"]), []
    for block in item["blocks"]:
        blocks.append(expected_block(block, cursor))
        cursor = u64(blocks[-1][0] + blocks[-1][1])
    pool = item.get("segment_pool_id") or (0, 0)
    keys = ("device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type", "segment_pool_id",
            "is_expandable", "frames", "blocks")
    row = (item.get("device", 0), u64(item["address"]), item.get("total_size", 0), item.get("allocated_size", 0), item.get("active_size", 0),
           item.get("requested_size", 0), u64(item.get("stream", 0)), pool[0], pool[1], frames_of(item.get("frames")), has(item, keys, pairs),
           {"small": 1, "large": 2}.get(item.get("segment_type"), 0), int(item.get("is_expandable", False)))
    return row, blocks


def expected_event(event, pairs):
    pool = event.get("pool_id") or (0, 0)
    keys = ("action", "addr", "size", "stream", "time_us", "frames", "device_free", "compile_context", "user_metadata", "pool_id")
    known = event["action"] in ACTIONS
    return (event["action"] if known else "unknown", u64(event.get("addr", event.get("device_free", 0))), event["size"], u64(event["stream"]),
            event.get("time_us", 0), frames_of(event.get("frames")), pool[0], pool[1], has(event, keys, pairs), text(event.get("compile_context")),
            text(event.get("user_metadata")), "" if known else event["action"])


def expected(snapshot, pairs):
    bare = isinstance(snapshot, list)
    top = {"segments": snapshot} if bare else snapshot
    segments = [expected_segment(item, pairs) for item in top.get("segments", [])]
    histories = [[expected_event(event, pairs) for event in trace] for trace in top.get("device_traces", [])]
    if "host_segments" in top:
        # Host memory is the last device.
        histories += [[] for _ in range(max([row[0] + 1 for row, _ in segments] or [0]) - len(histories))]
        hosts = [expected_segment(item, pairs) for item in top["host_segments"]]
        segments += [((len(histories),) + row[1:], blocks) for row, blocks in hosts]
        histories.append([expected_event(event, pairs) for event in top.get("host_traces", [])])
    settings = dict(top.get("allocator_settings", {}))
    for key in ("trace_alloc_max_entries", "trace_alloc_overflowed"):
        if key in top:
            settings.setdefault(key, top[key])
    return {"form": int(bare), "segments": segments, "histories": histories,
            "annotations": [(a["name"], a["stage"], int(a["device"]), int(a["time_us"])) for a in top.get("external_annotations", [])],
            "settings": list(settings.items()), "keys": [] if bare else list(top)}


def string(word):
    return bytes.fromhex(word[1:]).decode("utf-8", "surrogatepass")


def parse(lines):
    frames, stacks, found = [], [], {"segments": [], "histories": [], "annotations": [], "settings": [], "keys": []}
    blocks = []
    for line in lines:
        kind, *words = line.split(" ")
        if kind == "form":
            found["form"] = int(words[0])
        elif kind == "frame":
            frames.append((string(words[0]), string(words[1]), u64(words[2])))
        elif kind == "stack":
            stacks.append(tuple(frames[int(word)] for word in words))
        elif kind == "segment":
            row = [int(word) for word in words]
            found["segments"].append((tuple(row[:9] + [stacks[row[9]]] + row[10:13]), row[13]))
        elif kind == "block":
            blocks.append((int(words[0]), int(words[1]), int(words[2]), stacks[int(words[3])], int(words[4]), words[5]))
        elif kind == "device":
            found["histories"].append([])
        elif kind == "event":
            n = [int(word) for word in words[1:9]]
            found["histories"][-1].append((words[0], *n[:4], stacks[n[4]], *n[5:], string(words[9]), string(words[10]), string(words[11])))
        elif kind == "annotation":
            found["annotations"].append((string(words[0]), string(words[1]), int(words[2]), int(words[3])))
        elif kind == "setting":
            found["settings"].append((string(words[0]), json.loads(string(words[1]))))
        elif kind == "key":
            found["keys"].append(string(words[0]))
    rest = iter(blocks)
    found["segments"] = [(row, [next(rest) for _ in range(count)]) for row, count in found["segments"]]
    assert next(rest, None) is None
    if len(set(stacks)) != len(stacks) or len(set(frames)) != len(frames):
        raise SystemExit("stacks or frames are not distinct")
    return found


def same(ours, theirs):
    """Returns whether two values are equal; texts that are JSON may be spelled differently."""
    if isinstance(theirs, tuple) and len(theirs) == 2 and theirs[0] == "json" and isinstance(ours, str):
        return json.loads(ours) == json.loads(theirs[1])
    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and (tuple(ours) == tuple(theirs) or all(map(same, ours, theirs)))
    return ours == theirs


def difference(ours, theirs, path):
    """Returns the path of the first value that differs."""
    if isinstance(theirs, dict):
        pairs = [(ours[key], theirs[key], key) for key in theirs]
    elif isinstance(theirs, (tuple, list)) and isinstance(ours, (tuple, list)) and len(ours) == len(theirs):
        pairs = [(a, b, index) for index, (a, b) in enumerate(zip(ours, theirs))]
    else:
        return "%s: ours %r, Python's %r" % (path, ours, theirs)
    for a, b, key in pairs:
        if not (a == b or same(a, b)):
            return difference(a, b, "%s/%s" % (path, key))
    return "%s: %r, %r" % (path, ours, theirs)


def check(program, name, data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        result = subprocess.run([program, file.name], capture_output=True, text=True)
    if result.returncode != 0:
        return "%s: not read: %s" % (name, result.stderr.strip())
    # The model keeps settings as JSON, which has no tuples.
    wanted = expected(load(data), data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["))
    wanted["settings"] = [(key, json.loads(json.dumps(value))) for key, value in wanted["settings"]]
    found = parse(result.stdout.splitlines())
    for part, value in wanted.items():
        if not same(found[part], value):
            return "%s: %s" % (name, difference(found[part], value, part))
    return None


def main():
    program, files = sys.argv[1], [file for name in sys.argv[2:] for file in (sorted(glob.glob(name + "/snapshots/*")) or [name])]
    cases, failures = [], []
    for name, snapshot in make_corpus.samples().items() if not files else ():
        cases += [("%s.%s" % (name, suffix), data) for suffix, data in make_corpus.encodings(snapshot).items()]
    for case in cases:
        failures.append(check(program, *case))
    for path in files:
        with open(path, "rb") as file:
            data = file.read()
        name = os.path.basename(path)
        failures.append(check(program, name, data))
        for suffix, again in make_corpus.encodings(load(data)).items() if len(data) < 250_000 else ():
            failures.append(check(program, "%s as %s" % (name, suffix), again))
    count, failures = len(failures), [failure for failure in failures if failure]
    print("\n".join(failures + ["%d files read, %d differ from Python" % (count, len(failures))]))
    sys.exit(1 if failures or count == 0 else 0)


if __name__ == "__main__":
    main()
