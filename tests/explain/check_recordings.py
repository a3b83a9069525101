#!/usr/bin/env python3
"""Compares the page of every real recording with an out-of-memory error with a manually checked one, and its cure with `vram replay`.

Usage: check_recordings.py VRAM FOLDER [--update]   (the checked pages are in golden/, named by recording and device)

The independent facts say which recordings have an out-of-memory error. A proposed setting must fit in the memory there was, and the settings in
force must not; if no setting helps, none may fit, and twice the demand must be enough.
"""
import json
import pathlib
import re
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).parent / "golden"
PAGE = re.compile(r"^  Out of memory.*?(?=^  \S|\Z)", re.M | re.S)
HELPLESS = ("", "expandable_segments:True", "max_split_size_mb:128")


def devices_with_oom(facts):
    return [device for device, said in facts["devices"].items() if said.get("oom")]


def run(vram, *arguments):
    return subprocess.run([vram, *arguments], capture_output=True, text=True, check=False, env={"COLUMNS": "110", "LC_ALL": "C"})


def pages(vram, path):
    """Returns device -> page, without the folders of the recorded program."""
    text = run(vram, "report", str(path)).stdout
    parts = re.split(r"^Device (\d+) =+$", text, flags=re.M)
    found = {}
    for device, part in zip(parts[1::2], parts[2::2]):
        page = PAGE.search(part)
        if page:
            found[device] = re.sub(r"(\s)\S*/(\w+\.py)", r"\1\2", page.group())
    return found


def fits(vram, path, cure, conf, memory):
    return run(vram, "replay", "--device", str(cure["device"]), "--memory", f"{memory}B", "--conf", conf, str(path)).returncode == 0


def check_cure(vram, path, cure):
    if cure["verdict"] == "setting":
        assert fits(vram, path, cure, cure["conf"], cure["room_bytes"]), "the proposed setting does not fit"
        assert fits(vram, path, cure, cure["conf"], cure["needed_bytes"]), "the proposed setting needs more than is said"
    elif cure["verdict"] == "demand":
        assert cure["demand_bytes"] > cure["room_bytes"]
        assert not any(fits(vram, path, cure, conf, cure["room_bytes"]) for conf in HELPLESS), "a setting fits all the same"
        assert fits(vram, path, cure, "", 2 * cure["demand_bytes"]), "the history does not fit anywhere"


def check(vram, path, wanted, update):
    found = pages(vram, path)
    assert sorted(found) == sorted(wanted), f"out of memory on devices {sorted(found)}, not {sorted(wanted)}"
    for device, page in found.items():
        golden = GOLDEN / f"{path.name[:3]}_device{device}.txt"
        if update:
            golden.write_text(page, encoding="utf-8")
        assert page == golden.read_text(encoding="utf-8"), f"not the page that was checked:\n{page}"
    process = run(vram, "report", "--check", "--json", str(path))
    assert process.returncode == 1, f"--check gives {process.returncode}"
    cures = json.loads(process.stdout)["cures"]
    assert [str(cure["device"]) for cure in cures] == wanted
    for cure in cures:
        check_cure(vram, path, cure)
    return [cure["verdict"] for cure in cures]


def main(vram, folder, *options):
    wrong = checked = 0
    for facts in sorted(pathlib.Path(folder, "facts").glob("*.json")):
        wanted = devices_with_oom(json.loads(facts.read_text(encoding="utf-8")))
        if not wanted:
            continue
        path = next(pathlib.Path(folder, "snapshots").glob(facts.stem + "_*"))
        checked += 1
        try:
            print(f"{path.name}: {', '.join(check(vram, path, wanted, '--update' in options))}")
        except AssertionError as problem:
            wrong += 1
            print(f"{path.name}: WRONG: {problem}")
    print(f"{checked} recordings that ran out of memory, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
