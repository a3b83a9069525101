#!/usr/bin/env python3
"""Runs the command with valid and invalid arguments and files, and compares exit codes and output.
usage: check_cli.py VRAM [--update]   (golden outputs are in golden/ in this file's folder; --update writes them)
Recordings are made here, so only Python's standard library is needed.
"""
import gzip
import json
import lzma
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = 0x7F0000000000


def frame(line, name="forward", file="/home/me/model.py"):
    return {"filename": file, "line": line, "name": name}


def event(action, addr, size, time, frames=None, stream=0):
    e = {"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time}
    if frames is not None:
        e["frames"] = frames
    return e


def block(address, size, requested, state, frames=()):
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": list(frames)}


def segment(address, blocks, kind="large", stream=0):
    used = [b for b in blocks if b["state"] == "active_allocated"]
    active = [b for b in blocks if b["state"] != "inactive"]
    return {"device": 0, "address": address, "total_size": sum(b["size"] for b in blocks), "allocated_size": sum(b["size"] for b in used),
            "active_size": sum(b["size"] for b in active), "requested_size": sum(b["requested_size"] for b in active), "stream": stream,
            "segment_type": kind, "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}


MIB = 1 << 20


def recording():
    """A program that has two of four blocks and then asks for more than the largest hole."""
    user = [frame(3, "linear", "/x/torch/nn/functional.py"), frame(10), frame(2, "main", "/home/me/train.py")]
    other = [frame(20, "backward"), frame(2, "main", "/home/me/train.py")]
    blocks = [block(BASE, 30 * MIB, 30 * MIB - 100, "active_allocated", user), block(BASE + 30 * MIB, 20 * MIB, 0, "inactive"),
              block(BASE + 50 * MIB, 30 * MIB, 30 * MIB, "active_allocated", other), block(BASE + 80 * MIB, 20 * MIB, 0, "inactive")]
    trace = [event("segment_alloc", BASE, 100 * MIB, 1000, user), event("alloc", BASE, 30 * MIB - 100, 1001, user),
             event("alloc", BASE + 30 * MIB, 20 * MIB, 1100, other), event("alloc", BASE + 50 * MIB, 30 * MIB, 1200, other),
             event("alloc", BASE + 80 * MIB, 20 * MIB, 1300, user)]
    for i, address in enumerate((BASE + 30 * MIB, BASE + 80 * MIB)):
        trace += [event("free_requested", address, 20 * MIB, 2000 + i, user), event("free_completed", address, 20 * MIB, 2000 + i, user)]
    trace.append({"action": "oom", "device_free": 5 * MIB, "size": 38 * MIB, "stream": 0, "time_us": 51000, "frames": other})
    return {"segments": [segment(BASE, blocks)], "device_traces": [trace],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:512", "expandable_segments": False}}


def two_devices():
    """The second device ran out of memory; the first was not used."""
    s = recording()
    for g in s["segments"]:
        g["device"] = 1
    s["device_traces"].insert(0, [event("segment_alloc", BASE, 2 * MIB, 1000), event("alloc", BASE, MIB, 1001)])
    s["segments"].append(segment(BASE, [block(BASE, MIB, MIB, "active_allocated"), block(BASE + MIB, MIB, 0, "inactive")]))
    return s


def trace():
    """A profiler's trace: allocations without segments."""
    def memory(ts, address, size):
        return {"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": 1, "tid": 1, "ts": ts,
                "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size, "Total Allocated": 0, "Total Reserved": 0}}
    return {"schemaVersion": 1, "traceEvents": [memory(10 * i, BASE + (i % 5) * MIB, MIB if i < 5 else -MIB) for i in range(9)]}


def hostile():
    """Names that would control a terminal, and a block that ends where the address space does."""
    s = recording()
    for e in s["device_traces"][0]:
        e["frames"] = [frame(1, "\x1b[31mred\x07\udc80", "/tmp/\x1b]0;title\x07\n.py")]
    s["segments"].append(segment(2**64 - 4096, [block(2**64 - 4096, 4096, 4096, "active_allocated")]))
    return s


def write_files(folder):
    def put(name, data):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    plain = pickle.dumps(recording(), 4)
    put("good.pickle", plain)
    put("good.json", json.dumps(recording()).encode())
    put("good.pickle.gz", gzip.compress(plain, mtime=0))
    put("members.pickle.gz", gzip.compress(plain[:1000], mtime=0) + gzip.compress(plain[1000:], mtime=0))
    put("good.pickle.xz", lzma.compress(plain))
    put("hostile.pickle", pickle.dumps(hostile(), 4))
    put("two_devices.pickle", pickle.dumps(two_devices(), 4))
    put("trace.json", json.dumps(trace()).encode())
    put("empty.pickle", b"")
    put("cut.pickle", plain[:700])
    put("cut.pickle.gz", gzip.compress(plain, mtime=0)[:300])
    put("cut.pickle.xz", lzma.compress(plain)[:300])
    put("bent.pickle.gz", gzip.compress(plain, mtime=0)[:100] + b"\xff" * 200)
    put("code.pickle", b"\x80\x04cos\nsystem\n(S'true'\ntR.")
    put("text.txt", b"hello\n")
    os.mkdir(os.path.join(folder, "none"))
    put("number.json", b"42")
    with open(os.path.join(HERE, "../../examples/recordings/train.json.gz"), "rb") as file:
        put("repeats.json.gz", file.read())
    os.mkdir(os.path.join(folder, "folder.pickle"))
    if subprocess.run(["zstd", "-q", "-k", os.path.join(folder, "good.pickle")], capture_output=True).returncode != 0:
        os.symlink("good.pickle", os.path.join(folder, "good.pickle.zst"))


# name, arguments, exit code, standard input (a file), golden output?
CASES = [
    ("no_command", [], 2, None, True),
    ("help", ["--help"], 0, None, True),
    ("report_help", ["report", "--help"], 0, None, True),
    ("help_report", ["help", "report"], 0, None, True),
    ("version", ["--version"], 0, None, False),
    ("wrong_command", ["reprot", "good.pickle"], 2, None, True),
    ("wrong_option", ["report", "--jsn", "good.pickle"], 2, None, True),
    ("far_option", ["report", "--zzzzzzzz", "good.pickle"], 2, None, True),
    ("wrong_letter", ["report", "-x", "good.pickle"], 2, None, True),
    ("flag_with_value", ["report", "--json=yes", "good.pickle"], 2, None, True),
    ("no_value", ["report", "good.pickle", "--top"], 2, None, True),
    ("bad_count", ["report", "--top", "ten", "good.pickle"], 2, None, True),
    ("no_file", ["report"], 2, None, True),
    ("absent", ["report", "absent.pickle"], 3, None, True),
    ("folder", ["report", "folder.pickle"], 3, None, True),
    ("empty", ["report", "empty.pickle"], 3, None, True),
    ("cut", ["report", "cut.pickle"], 3, None, True),
    ("cut_gzip", ["report", "cut.pickle.gz"], 3, None, True),
    ("cut_xz", ["report", "cut.pickle.xz"], 3, None, True),
    ("bent_gzip", ["report", "bent.pickle.gz"], 3, None, False),
    ("code", ["report", "code.pickle"], 3, None, True),
    ("text", ["report", "text.txt"], 3, None, True),
    ("number", ["report", "number.json"], 3, None, True),
    ("good", ["report", "good.pickle"], 0, None, True),
    ("top_1", ["report", "-n1", "good.pickle"], 0, None, True),
    ("good_json", ["report", "--json", "good.pickle"], 0, None, True),
    ("stdin", ["report", "-"], 0, "good.pickle", True),
    ("two_files", ["report", "good.pickle", "--", "good.json"], 0, None, True),
    ("two_devices", ["report", "--no-cure", "-n1", "two_devices.pickle", "good.pickle"], 0, None, True),
    ("summary", ["report", "--summary", "two_devices.pickle", "good.pickle"], 0, None, True),
    ("many_files", ["report", *["good.json"] * 8, *["two_devices.pickle"] * 9], 0, None, True),
    ("many_files_full", ["report", "--full", "--no-cure", *["good.json"] * 9], 0, None, False),
    ("flame_folder", ["flame", "-o", "never.svg", "folder.pickle"], 3, None, True),
    ("trace", ["report", "trace.json"], 0, None, True),
    ("one_bad_of_two", ["report", "absent.pickle", "good.pickle"], 3, None, True),
    ("leaks_of_an_empty_folder", ["leaks", "--serving", "none", "good.pickle"], 3, None, True),
    ("leaks_every_0", ["leaks", "--every", "0", "good.pickle"], 2, None, True),
    ("leaks_memory_0", ["leaks", "--serving", "--memory", "0", "good.pickle"], 2, None, True),
    ("leaks_top_0", ["leaks", "--top", "0", "good.pickle"], 2, None, True),
    ("hostile", ["report", "hostile.pickle"], 0, None, True),
    ("site", ["report", "--site", "good.pickle"], 0, None, True),
    ("site_skip", ["report", "--site", "--skip", "[a-z]+\\.py", "good.pickle"], 0, None, True),
    ("site_skip_none", ["report", "--site", "--skip", "(", "good.pickle"], 2, None, False),
    ("stack_json", ["report", "--stack", "--json", "--at", "end", "good.pickle"], 0, None, True),
    ("by_regex", ["report", "--regex", "model.py:([12])", "good.pickle"], 0, None, True),
    ("by_size_hostile", ["report", "--by", "function", "hostile.pickle"], 0, None, True),
    ("timeline", ["report", "--timeline", "good.pickle"], 0, None, True),
    ("no_such_event", ["report", "--at", "999", "good.pickle"], 2, None, True),
    ("bad_moment", ["report", "--at", "noon", "good.pickle"], 2, None, True),
    ("bad_grouping", ["report", "--by", "colour", "good.pickle"], 2, None, True),
    ("bad_expression", ["report", "--regex", "(", "good.pickle"], 2, None, False),
    ("flame_folded", ["flame", "good.pickle", "-o", "out.folded"], 0, None, False),
    ("flame_svg", ["flame", "hostile.pickle", "-o", "-"], 0, None, True),
    ("flame_nowhere", ["flame", "good.pickle"], 2, None, True),
    ("flame_itself", ["flame", "good.pickle", "-o", "good.pickle"], 2, None, True),
    ("diff_same", ["diff", "good.pickle", "good.json"], 0, None, True),
    ("diff_json", ["diff", "--json", "good.pickle", "good.json"], 0, None, True),
    ("diff_within", ["diff", "--fail-over", "9900%", "two_devices.pickle", "good.pickle", "--device", "0"], 0, None, False),
    ("diff_beyond", ["diff", "--fail-over", "9899.9%", "two_devices.pickle", "good.pickle", "--device", "0"], 1, None, False),
    ("diff_any", ["diff", "--fail-over", "0%", "good.pickle", "good.json"], 0, None, False),
    ("diff_share", ["diff", "--fail-over", "5 percent", "good.pickle", "good.json"], 2, None, True),
    ("diff_fails", ["diff", "--fail-over", "1KiB", "--junit", "-", "two_devices.pickle", "hostile.pickle"], 1, None, True),
    ("diff_no_limit", ["diff", "--github", "good.pickle", "good.json"], 2, None, True),
    ("report_within", ["report", "--fail-over", "1TiB", "--check", "--github", "good.json"], 1, None, True),
    ("report_past", ["report", "--fail-over", "1B", "--github", "--junit", "-", "two_devices.pickle", "hostile.pickle"], 1, None, True),
    ("report_limit_of_list", ["report", "--fail-over", "1GiB", "--site", "good.pickle"], 2, None, True),
    ("report_junit_nowhere", ["report", "--fail-over", "1TiB", "--junit", "absent/x.xml", "good.pickle"], 3, None, False),
    ("diff_one", ["diff", "good.pickle"], 2, None, True),
    ("diff_stack", ["diff", "--by", "stack", "good.pickle", "good.json"], 2, None, True),
    ("leaks_no_steps", ["leaks", "good.pickle"], 0, None, True),
    ("leaks_serving_short", ["leaks", "--serving", "good.pickle"], 0, None, True),
    ("leaks_serving_repeats", ["leaks", "--serving", "repeats.json.gz"], 0, None, True),
    ("leaks_serving_steps", ["leaks", "--serving", "--step", "a", "good.pickle"], 2, None, True),
    ("leaks_memory_alone", ["leaks", "--memory", "8GiB", "good.pickle"], 2, None, True),
    ("leaks_json", ["leaks", "--json", "--every", "2", "good.pickle"], 0, None, True),
]


def run(vram, arguments, folder, stdin=None, style=None):
    env = {k: v for k, v in os.environ.items() if k not in ("VRAM_STYLE", "COLUMNS", "NO_COLOR")}
    env["LC_ALL"] = "C"
    if style:
        env["VRAM_STYLE"] = style
    source = open(os.path.join(folder, stdin), "rb") if stdin else subprocess.DEVNULL
    try:
        return subprocess.run([vram] + arguments, cwd=folder, env=env, stdin=source, capture_output=True, timeout=60)
    finally:
        if stdin:
            source.close()


def check_golden(name, result, update):
    path = os.path.join(HERE, "golden", name + ".txt")
    text = result.stdout + (b"--- standard error ---\n" + result.stderr if result.stderr else b"")
    if update:
        with open(path, "wb") as f:
            f.write(text)
        return []
    with open(path, "rb") as f:
        want = f.read()
    if want == text:
        return []
    return ["%s: the output is not that of golden/%s.txt:\n%s" % (name, name, text.decode(errors="replace"))]


def check_same(vram, folder):
    """Every way to pass the same bytes gives the same report."""
    want = run(vram, ["report", "--json", "good.pickle"], folder).stdout
    found = []
    for name in ("good.pickle.gz", "members.pickle.gz", "good.pickle.xz", "good.pickle.zst"):
        got = run(vram, ["report", "--json", name], folder)
        if got.stdout.replace(name.encode(), b"good.pickle") != want:
            found.append("%s: not the report of good.pickle: %s" % (name, got.stderr.decode()))
    pair = json.loads(run(vram, ["report", "--json", "good.pickle", "good.json"], folder).stdout)
    for key in ("devices", "missing", "contradictions", "allocator_settings"):
        if pair[0][key] != json.loads(want)[key] or (key != "allocator_settings" and pair[1][key] != pair[0][key]):
            found.append("an array of two reports differs from the single ones in %s" % key)
    return found


def check_arrays(vram, folder):
    """One recording gives an object, several an array, for every command that takes many."""
    found = []
    for command in (["report"], ["replay"], ["leaks"], ["tune", "--each"], ["report", "--list", "stats"], ["report", "--site"]):
        for files in (["good.pickle"], ["good.pickle", "good.json"], ["absent.pickle", "good.pickle", "good.json"]):
            made = run(vram, command + ["--json"] + files, folder).stdout
            try:
                got = json.loads(made)
            except ValueError as error:
                got = error
            several = isinstance(got, list) and [type(one) for one in got] == [dict, dict]
            if not (several if len(files) > 1 else isinstance(got, dict)):
                found.append("%s of %s: %r" % (command, files, got))
    return found


def check_terminal_safety(vram, folder):
    found = []
    for style in (None, "unicode"):
        out = run(vram, ["report", "hostile.pickle"], folder, style=style).stdout.decode()
        bad = [c for c in out if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0]
        if bad:
            found.append("control characters of the file reach the terminal: %r" % bad[:5])
    if "\x1b[" not in run(vram, ["report", "good.pickle"], folder, style="colour").stdout.decode():
        found.append("no colour where colour was asked for")
    if max(len(line) for line in run(vram, ["report", "good.pickle"], folder).stdout.decode().splitlines()) > 100:
        found.append("a line is wider than 100 columns")
    return found


def check_verdicts(vram, folder):
    """Hostile names appear as text in JUnit's XML and GitHub's summary."""
    name = 'a<b>&"|`*_[x](y)\x1b[31m.pickle'
    shutil.copy(os.path.join(folder, "hostile.pickle"), os.path.join(folder, name))
    summary = os.path.join(folder, "summary.text")
    with_summary = {**os.environ, "GITHUB_STEP_SUMMARY": summary}
    command = [vram, "report", "--fail-over", "1B", "--junit", "verdicts.xml", "--github", name, "good.pickle"]
    made = subprocess.run(command, cwd=folder, env=with_summary, capture_output=True, timeout=60)
    suite = xml.etree.ElementTree.parse(os.path.join(folder, "verdicts.xml")).getroot()[0]
    with open(summary, encoding="utf-8") as file:
        lines = file.read().splitlines()
    annotations = [line for line in made.stderr.decode().splitlines() if line.startswith("::error title=vram report::")]
    found = []
    if made.returncode != 1 or int(suite.get("tests")) != len(suite) or int(suite.get("failures")) != len(annotations):
        found.append("verdicts: code %d, %s, %d annotations" % (made.returncode, suite.attrib, len(annotations)))
    if not any(case.get("name").startswith('a<b>&"|`*_[x](y)\\x1B[31m.pickle') for case in suite):
        found.append("verdicts: %s" % [case.get("name") for case in suite])
    if any(sum(line.count(mark) for mark in "<`_[") or line.count("|") != 4 for line in lines[5:-1]) or "failed" not in lines[4]:
        found.append("the summary has markup of a name: %s" % lines)
    return found


def check_whole_programs(vram, folder):
    """For a program under `vram run` the reserved bytes are unknown, so the table of several recordings never shows less than its allocated bytes."""
    segment = {"action": "segment_alloc", "addr": 4096, "size": 2 << 20, "stream": 0}
    events = [segment, dict(segment, action="alloc", size=8 << 20), dict(segment, action="free", size=8 << 20), dict(segment, action="segment_free")]
    names = ["first_program.json", "second_program.json"]
    for name in names:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump({"segments": [], "device_traces": [events], "allocator_settings": {"vram_run_process": "7"}}, file)
    table = run(vram, ["report"] + names, folder).stdout.decode().split("Peaks of 2 recordings")[1]
    return [] if table.count("8.0 MiB   not known") == 2 and "2.0 MiB" not in table else ["reserved of whole programs:" + table]


def check_full_disk(vram, folder):
    if not os.path.exists("/dev/full"):
        return []
    with open("/dev/full", "wb") as full:
        code = subprocess.run([vram, "report", "good.pickle"], cwd=folder, stdout=full, stderr=subprocess.DEVNULL).returncode
    return [] if code == 3 else ["a full disk gives exit code %d, not 3" % code]


def main(vram, update):
    vram = os.path.abspath(vram)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        for name, arguments, code, stdin, golden in CASES:
            result = run(vram, arguments, folder, stdin)
            if result.returncode != code:
                found.append("%s: exit code %d, not %d: %s" % (name, result.returncode, code, result.stderr.decode(errors="replace")))
            if code == 3 and result.stderr.count(b"\n") != 1:
                found.append("%s: not one line on standard error: %r" % (name, result.stderr))
            if golden:
                found += check_golden(name, result, update)
        styled = run(vram, ["report", "good.pickle"], folder, style="colour")
        found += check_golden("good_in_colour", styled, update) + check_same(vram, folder) + check_arrays(vram, folder) + check_verdicts(vram, folder)
        found += check_terminal_safety(vram, folder) + check_full_disk(vram, folder) + check_whole_programs(vram, folder)
    for line in found:
        print(line)
    print("%d cases, %d wrong" % (len(CASES), len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--update" in sys.argv))
