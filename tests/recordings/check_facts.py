#!/usr/bin/env python3
"""Compares `vram report --json` with the facts of every recording, key by key.

usage: check_facts.py VRAM FOLDER     (FOLDER has snapshots/ and facts/)

The report must have every key that a facts file has from `devices` down, with the same value. Of the keys of the file itself, those that the report
also has must be equal. The report may have more keys. Exit 0 if all agree, 1 if one differs.
"""
import json
import os
import subprocess
import sys

FILE_KEYS = ("file", "bytes", "form", "top_level_keys", "annotation_count", "allocator_settings", "device_trace_lists")


def differences(want, got, path):
    """Yields one line for each place where `got` lacks a part of `want` or has another value."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in want:
            if key not in got:
                yield "%s.%s is missing" % (path, key)
            else:
                yield from differences(want[key], got[key], "%s.%s" % (path, key))
        # Counters by name must have no additional names.
        if path.rsplit(".", 1)[-1] in ("events_by_action", "event_bytes_by_action", "anomalies", "segment_sum_mismatches", "blocks_by_state",
                                       "segments_by_type", "devices"):
            for key in set(got) - set(want):
                yield "%s.%s should not be there" % (path, key)
    elif isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            yield "%s has %d items, not %d" % (path, len(got), len(want))
        for i, (a, b) in enumerate(zip(want, got)):
            yield from differences(a, b, "%s[%d]" % (path, i))
    elif isinstance(want, bool) is not isinstance(got, bool) or want != got:
        yield "%s is %r, not %r" % (path, got, want)


def count_leaves(value):
    if isinstance(value, dict):
        return sum(count_leaves(v) for v in value.values())
    if isinstance(value, list):
        return sum(count_leaves(v) for v in value)
    return 1


def check(vram, snapshot, facts):
    run = subprocess.run([vram, "report", "--json", "--plain-sites", snapshot], capture_output=True)
    if run.returncode != 0:
        return ["exit code %d: %s" % (run.returncode, run.stderr.decode(errors="replace").strip())]
    got = json.loads(run.stdout)
    found = list(differences(facts["devices"], got["devices"], "devices"))
    for key in FILE_KEYS:
        found += differences(facts[key], got.get(key), key)
    return found


def main(vram, folder):
    snapshots = os.path.join(folder, "snapshots")
    files = sorted(os.listdir(snapshots))
    good = values = 0
    for name in files:
        with open(os.path.join(folder, "facts", name[:3] + ".json")) as f:
            facts = json.load(f)
        found = check(vram, os.path.join(snapshots, name), facts)
        values += count_leaves(facts["devices"])
        good += not found
        for line in found[:20]:
            print("%s: %s" % (name, line))
    print("%d of %d recordings agree (%d values)" % (good, len(files), values))
    return 0 if files and good == len(files) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
