#!/usr/bin/env python3
"""What the cure of `vram report`, that of `vram mcp` and `vram tune --memory` say of every recording that ran out of memory: one answer.

Usage: check_surfaces.py VRAM FILE|FOLDER...

For each device that has a setting as its cure: the same setting and the same need, to the byte, on all surfaces. Recordings of one device
are tuned in the room there was; tuning several devices looks for one setting for all.
"""
import json
import pathlib
import subprocess
import sys


def output_of(vram, *arguments, given=None):
    return subprocess.run([vram, *arguments], input=given, capture_output=True, check=False, text=True, timeout=600).stdout


def ask_mcp(vram, path, device):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "cure", "arguments": {"file": path, "device": device}}}
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize"}, call]
    answers = output_of(vram, "mcp", "--no-programs", given="".join(json.dumps(line) + "\n" for line in lines)).splitlines()
    return json.loads(answers[-1])["result"]["content"][0]["text"]


def check(vram, path):
    report = json.loads(output_of(vram, "report", "--json", path) or "{}")
    cures = [cure for cure in report.get("cures", []) if cure["verdict"] == "setting"]
    for cure in cures:
        said = ask_mcp(vram, path, cure["device"])
        assert f"={cure['conf']}\n" in said, f"mcp has another cure than {cure['conf']}: {said}"
        assert f"needs {cure['needed_bytes']:,} B" in said, f"mcp has another need than {cure['needed_bytes']:,} B: {said}"
        if len(report["devices"]) != 1:
            continue
        tuned = json.loads(output_of(vram, "tune", "--json", "--memory", str(cure["room_bytes"]), path))
        best = tuned["best"]
        assert (best["conf"], best["needed_bytes"]) == (cure["conf"], cure["needed_bytes"]), f"tune says {best}, the report {cure}"
        assert tuned["start"] == cure["start"], "tune and the report begin with other memory"
    return len(cures)


def main():
    vram, *roots = sys.argv[1:]
    roots = [pathlib.Path(root) for root in roots]
    paths = [path for root in roots for path in (sorted(root.iterdir()) if root.is_dir() else [root])]
    cured = failures = 0
    for path in paths:
        if not {".pickle", ".pkl", ".json", ".vram"} & set(path.suffixes):
            continue
        try:
            cured += check(vram, str(path))
        except AssertionError as error:
            failures += 1
            print(f"{path.name}: FAILED: {error}")
    print(f"{len(paths)} recordings, {cured} cures, {failures} wrong")
    sys.exit(failures != 0 or cured == 0)


main()
