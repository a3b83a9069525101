#!/usr/bin/env python3
"""Compares the reference program with `vram report --json` on random recordings, valid and damaged. Every fact must be equal.

usage: random_facts.py VRAM [COUNT [SEED]]
Exit 0 if all agree, 1 if one differs (the recording is kept and named).
"""
import importlib.util
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile

from check_facts import FILE_KEYS, differences

ACTIONS = ("alloc", "free_requested", "free_completed", "free", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom",
           "something_new")
FACTS_OF_FILES = [key for key in FILE_KEYS if key not in ("file", "bytes")]
STATES = ("active_allocated", "active_pending_free", "active_awaiting_free", "inactive")
FILES = ("/home/me/a.py", "/home/me/b.py", "/usr/lib/python3/torch/x.py", "<string>.py", "??", "/x/torch/y.py", "/home/me/a.py:1", "\u00e4\udc80.py")


def make_frames(rng):
    return [{"filename": rng.choice(FILES), "line": rng.choice((0, 1, 2, 10, 2**64 - 1)), "name": rng.choice(("f", "g", "z::f", "h"))}
            for _ in range(rng.choice((0, 0, 1, 2, 5)))]


def make_event(rng, stacks, time):
    action = rng.choice(ACTIONS[:3] * 4 + ACTIONS)
    e = {"action": action, "addr": rng.randrange(12) * 512, "size": rng.randrange(1, 5) * 100, "stream": rng.choice((0, 0, 7, -3))}
    if action == "oom" and rng.random() < 0.5:
        e["device_free"] = e.pop("addr")
    if rng.random() < 0.9:
        e["frames"] = rng.choice(stacks)
    if time is not None:
        e["time_us"] = time
    return e


def make_sound_trace(rng, stacks):
    """Returns events that a real allocator could have made, and the live blocks after them."""
    live, events = {}, []
    for i in range(rng.randrange(120)):
        address = rng.randrange(12) * 512
        if address in live:
            for action in ("free_requested", "free_completed"):
                events.append({"action": action, "addr": address, "size": live[address][0], "stream": 0, "time_us": i, "frames": rng.choice(stacks)})
            del live[address]
        else:
            live[address] = (rng.randrange(1, 500), rng.choice(stacks))
            events.append({"action": "alloc", "addr": address, "size": live[address][0], "stream": 0, "time_us": i, "frames": live[address][1]})
    return events, live


def make_block(rng, address, stacks):
    b = {"size": 512, "state": rng.choice(STATES), "requested_size": rng.randrange(513)}
    if rng.random() < 0.8:
        b["address"] = address
    if rng.random() < 0.1:
        b["addr"] = rng.randrange(12) * 512
    style = rng.random()
    if style < 0.7:
        b["frames"] = rng.choice(stacks)
    elif style < 0.9:
        b["history"] = [{"addr": address, "real_size": rng.randrange(513), "frames": rng.choice(stacks)}]
        del b["requested_size"]
    return b


def make_segment(rng, device, base, stacks):
    blocks = [make_block(rng, base + 512 * i, stacks) for i in range(rng.randrange(7))]
    g = {"device": device, "address": base, "total_size": 512 * rng.randrange(8), "allocated_size": 512, "active_size": 512, "stream": rng.choice((0, 7)),
         "segment_type": rng.choice(("small", "large")), "blocks": blocks}
    if rng.random() < 0.5:
        g.update(requested_size=rng.randrange(600), segment_pool_id=(rng.randrange(2), rng.randrange(2)), is_expandable=rng.random() < 0.5)
    return g


def make_recording(rng):
    stacks = [make_frames(rng) for _ in range(6)]
    segments, traces = [], []
    for device in range(rng.randrange(3)):
        if rng.random() < 0.3:
            events, live = make_sound_trace(rng, stacks)
            blocks = [{"address": a, "size": 512, "requested_size": s, "state": "active_allocated", "frames": f} for a, (s, f) in sorted(live.items())]
            segments.append({"device": device, "address": 0, "total_size": 512 * len(blocks), "allocated_size": 512 * len(blocks),
                             "active_size": 512 * len(blocks), "stream": 0, "segment_type": "small", "blocks": blocks})
        else:
            times = rng.random() < 0.7
            events = [make_event(rng, stacks, rng.randrange(1000) if times and rng.random() < 0.95 else None) for _ in range(rng.randrange(60))]
            segments += [make_segment(rng, device, 4096 * i, stacks) for i in range(rng.randrange(4))]
        traces.append(events)
    rng.shuffle(segments)
    if rng.random() < 0.1:
        return segments
    recording = {"segments": segments, "device_traces": traces}
    if rng.random() < 0.2:  # pinned host memory, which is not in the facts
        host = [make_segment(rng, 0, 2**40, stacks)]
        events = [make_event(rng, stacks, 0) for _ in range(rng.randrange(5))]
        recording.update(host_segments=host, host_traces=[events] if rng.random() < 0.5 else events)
    if rng.random() < 0.5:
        recording["allocator_settings"] = rng.choice((None, {}, "max_split_size_mb:20", [1, "x"], {"max_split_size": -1, "a": {"b": [None, 0.5]}}))
    recording.update(rng.choice(({}, {}, {"rank": rng.choice((3, "0", 2**70)), "world": {"size": [8]}})))
    return recording


def reference_of(path):
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(vram, count, seed):
    reference = reference_of(os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay_reference.py"))
    names, wanted = [], []
    folder = tempfile.mkdtemp()
    for i in range(count):
        recording = make_recording(random.Random("%d.%d" % (seed, i)))
        as_json = i % 3 == 0
        data = json.dumps(recording).encode() if as_json else pickle.dumps(recording, 2 + i % 4)
        names.append(os.path.join(folder, "%05d" % i))
        with open(names[-1], "wb") as f:
            f.write(data)
        wanted.append(json.loads(json.dumps(reference.facts(*reference.load(data)))))
    wrong = 0
    for first in range(0, count, 100):
        batch = names[first:first + 100] + names[:1]  # at least two, so that the JSON is an array
        run = subprocess.run([vram, "report", "--json", "--plain-sites"] + batch, capture_output=True)
        if run.returncode != 0:
            print("exit code %d: %s" % (run.returncode, run.stderr.decode(errors="replace")[:2000]))
            return 1
        for name, want, got in zip(batch[:-1], wanted[first:], json.loads(run.stdout)):
            found = list(differences(want["devices"], got["devices"], "devices"))
            for key in FACTS_OF_FILES:
                found += differences(want[key], got[key], key)
            for line in found[:5]:
                print("%s: %s" % (name, line))
            wrong += bool(found)
            if not found and name != names[0]:
                os.unlink(name)
    print("%d of %d random recordings agree (seed %d)" % (count - wrong, count, seed))
    if wrong == 0:
        os.unlink(names[0])
        os.rmdir(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 600, int(sys.argv[3]) if len(sys.argv) > 3 else 1))
