#!/usr/bin/env python3
"""Compares `vram report --json` with the facts of every recording, key by key.

usage: check_facts.py VRAM FOLDER     (FOLDER has snapshots/ and facts/)

Every key that a facts file has from `devices` down must be there with the same value, and so must the keys of the file itself that
the report carries. The report may have more keys. Exit 0 when all agree, 1 when one differs, 77 (skipped) when FOLDER is absent.
"""
import json
import os
import subprocess
import sys

# The innermost frame of every stack that PyTorch recorded with C++ frames. The facts make a site of it; the report tells such stacks by
# other frames.
RECORDER = "??:0:torch::unwind::unwind()"
FILE_KEYS = ("file", "bytes", "form", "top_level_keys", "annotation_count", "allocator_settings", "device_trace_lists")


def differences(want, got, path):
    """Yields one line per place where `got` lacks something of `want` or has another value."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in want:
            if key not in got:
                yield "%s.%s is missing" % (path, key)
            else:
                yield from differences(want[key], got[key], "%s.%s" % (path, key))
        # Counters by name must not have names of their own.
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


def sites_agree(want, got, path):
    """The same, but the facts' one site RECORDER stands for all the sites that are machine code. `got`: all sites."""
    named = {site["site"]: site for site in want if site["site"] != RECORDER}
    for line in differences([*named.values()], [site for site in got if site["site"] in named], path):
        yield line
    whole = next(site for site in want if site["site"] == RECORDER)
    native = [site for site in got if ".py:" not in site["site"] and site["site"] != "<no frames>" or "/torch/" in site["site"]]
    if not native or any(site["site"] == RECORDER for site in native):
        yield "%s: stacks are told by the frame that recorded them" % path
    for key in ("bytes", "count"):
        if sum(site[key] for site in native) != whole[key]:
            yield "%s: %d %s in machine code, not %d" % (path, sum(site[key] for site in native), key, whole[key])


def take_native_sites(facts, got, everything):
    """Compares the sites of stacks with C++ frames, and takes them out of the facts that are left to compare."""
    for number, device in facts["devices"].items():
        for kind in ("allocated", "active"):
            path = "devices.%s.%s" % (number, kind)
            sites = device.get(kind, {}).get("top_sites_at_peak", [])
            if any(site["site"] == RECORDER for site in sites):
                yield from sites_agree(sites, everything()["devices"][number][kind]["top_sites_at_peak"], path)
                del device[kind]["top_sites_at_peak"], device[kind]["distinct_sites_at_peak"]
            mine = got["devices"].get(number, {}).get(kind, {}).get("longest_lived", [])
            for fact, lived in zip(device.get(kind, {}).get("longest_lived", []), mine):
                if fact.get("site") == RECORDER and lived.get("site") not in (None, RECORDER):
                    del fact["site"]


def check(vram, snapshot, facts):
    run = subprocess.run([vram, "report", "--json", snapshot], capture_output=True)
    if run.returncode != 0:
        return ["exit code %d: %s" % (run.returncode, run.stderr.decode(errors="replace").strip())]
    got = json.loads(run.stdout)
    found = list(take_native_sites(facts, got, lambda: json.loads(subprocess.run([vram, "report", "--json", "-n", "10000", snapshot],
                                                                                capture_output=True, check=True).stdout)))
    found += list(differences(facts["devices"], got["devices"], "devices"))
    for key in FILE_KEYS:
        found += differences(facts[key], got.get(key), key)
    return found


def main(vram, folder):
    snapshots = os.path.join(folder, "snapshots")
    if not os.path.isdir(snapshots):
        print("skipped: no recordings at %s" % folder)
        return 77
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
