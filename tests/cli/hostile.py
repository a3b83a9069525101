#!/usr/bin/env python3
"""Passes damaged recordings, strange names and wrong options to every command that reads recordings.
usage: hostile.py VRAM [--seconds N] [--recordings FOLDER]
Every input must give a documented exit code, one line on standard error if it is bad, no sanitizer report and no hang. A
failed command may leave no output behind, and change none. Damage uses fixed seeds; cases beyond the time limit are skipped and counted.
"""
import argparse
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time

from check_cli import hostile, recording

TIMEOUT = 10
OUTPUTS = ("out.pickle", "out.json", "out.vram", "out.html", "out.folded", "out.svg")
READERS = [["report"], ["report", "--json"], ["report", "--timeline"], ["report", "--by", "category"], ["replay"], ["replay", "--exact"],
           ["replay", "--conf", "expandable_segments:True"], ["leaks"], ["leaks", "--every", "3"], ["diff", "good.pickle"],
           ["convert", "-o", "out.pickle"], ["convert", "-o", "out.json"], ["convert", "-o", "out.vram"], ["flame", "-o", "out.svg"],
           ["symbolize", "-o", "out.json"], ["view", "-o", "out.html"]]
# Commands and options that must be usage errors before anything is read.
USAGE = [[c] for c in ("report", "replay", "tune", "convert", "symbolize", "flame", "diff", "leaks", "run", "sim")]
USAGE += [[c, "--no-such-option", "good.pickle"] for c in
          ("report", "replay", "tune", "convert", "symbolize", "flame", "diff", "leaks", "view", "run", "sim", "doctor", "top", "attach")]
HUGE = ("18446744073709551616", "99999999999999999999999999", "-1", "1e9", "0x10", "", " 1", "1 ", "1.5.5", "nan")
USAGE += [["report", "--top=" + n, "good.pickle"] for n in HUGE]
USAGE += [["leaks", "--every=" + n, "good.pickle"] for n in HUGE]
USAGE += [["replay", "--memory=" + n, "good.pickle"] for n in HUGE if n != "1 "]  # a space may precede the unit
USAGE += [["sim", "--devices=" + n, "true"] for n in HUGE]
USAGE += [["replay", "--conf=" + c, "good.pickle"] for c in ("max_split_size_mb:99999999999999999999", "nonsense", ":", "x" * 5000)]
NAMES = ("with space.pickle", "new\nline.pickle", "bell\x07\x1b[31m.pickle", "-dash.pickle", "b\udcff.pickle", "n" * 200 + ".pickle")


# Names in every place where a command takes one; None: the name of an existing, good file.
STEERING = "bell\x07\x1b[31m\x7f\u009b.x"
STEERED = [([c, STEERING], {3}) for c in ("report", "replay", "tune", "leaks", "export", "top", "view")]
STEERED += [([STEERING], {2}), (["--" + STEERING], {2}), (["help", STEERING], {2}), (["doctor", STEERING], {2}), (["attach", STEERING], {2}),
            (["attach", "1", STEERING], {2, 3}), (["report", "--" + STEERING, "good.pickle"], {2}), (["report", "-\x1b", "good.pickle"], {2}),
            (["report", "-\u009b", "good.pickle"], {2}), (["report", "--list", STEERING, "good.pickle"], {2})]
STEERED += [(["report", "--" + o, STEERING, "good.pickle"], {2}) for o in ("top", "by", "at", "device", "memory")]
STEERED += [(["replay", "--conf", STEERING, "good.pickle"], {2}), (["replay", "--device", "7", None], {2}),
            (["replay", "--exact", "--placements", STEERING + "/p.csv", "good.pickle"], {3}), (["replay", "--start", STEERING, "x"], {2}),
            (["diff", STEERING, "good.pickle"], {3}), (["diff", "good.pickle", STEERING], {3}),
            (["convert", "--to", STEERING, "good.pickle"], {2}), (["convert", "-o", STEERING, "good.pickle"], {2}),
            (["convert", "--to", "json", "-o", STEERING + "/x", "good.pickle"], {3}), (["convert", "-o", "out.json", STEERING], {3}),
            (["convert", "--to", "json", "-o", None, None], {2}), (["symbolize", "-o", STEERING, "good.pickle"], {2}),
            (["symbolize", "-o", STEERING + "/x.json", "good.pickle"], {3}), (["symbolize", "-o", "out.json", STEERING], {3}),
            (["symbolize", "-o", None, None], {2}), (["flame", "-o", STEERING + "/x.svg", "good.pickle"], {3}),
            (["flame", "-o", None, None], {2}), (["flame", "-o", "out.svg", STEERING], {3}),
            (["flame", "--before", STEERING, "-o", "out.svg", "good.pickle"], {3}), (["view", "-o", None, None], {2}),
            (["view", "--no-open", "-o", STEERING + "/x.html", "good.pickle"], {3, 4}), (["export", "-o", STEERING + "/x", "made.vram"], {3}),
            (["export", "--interval", STEERING, "made.vram"], {2}), (["sim", "--", STEERING], {127, 4}),
            (["sim", "--set", STEERING, "--", STEERING], {2}), (["run", "--", STEERING], {127, 4}),
            (["run", "--conf", STEERING, "--", "true"], {2}), (["run", "--on-oom", STEERING, "--", "true"], {2})]


def damaged(plain, seed):
    """Yields (what, bytes): truncations at many places, bit flips, spans overwritten, removed and duplicated."""
    rng = random.Random(seed)
    while True:
        kind, data = rng.choice(("cut", "flips", "span", "gap", "twice")), bytearray(plain)
        at = rng.randrange(len(data))
        if kind == "cut":
            del data[at:]
        elif kind == "flips":
            for _ in range(rng.choice((1, 1, 2, 8, 64))):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == "span":
            data[at:at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f", b"99999999"))
        else:
            end = min(len(data), at + rng.choice((1, 7, 100)))
            data[at:end] = data[at:end] * 2 if kind == "twice" else b""
        yield kind, bytes(data)


class Bench:
    def __init__(self, vram, folder):
        self.vram, self.folder, self.found, self.count = vram, folder, [], 0
        self.env = {k: v for k, v in os.environ.items() if k not in ("VRAM_STYLE", "COLUMNS")}
        self.env.update(LC_ALL="C", ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""),
                        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")

    def wrong(self, arguments, label, what, err=b""):
        self.found.append("%r (%s): %s %s" % (arguments, label, what, err.decode(errors="replace")[:1500]))

    def outputs(self):
        return {n: os.stat(os.path.join(self.folder, n)).st_mtime_ns for n in OUTPUTS if os.path.exists(os.path.join(self.folder, n))}

    def run(self, arguments, label, allowed, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, data=None):
        self.count += 1
        before = self.outputs()
        try:
            done = subprocess.run([os.fsencode(self.vram)] + [os.fsencode(a) for a in arguments], cwd=self.folder, env=self.env,
                                  stdin=None if data is not None else stdin, input=data, stdout=stdout, stderr=subprocess.PIPE,
                                  timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.wrong(arguments, label, "still running after %d s" % TIMEOUT)
            return None
        code, err = done.returncode, done.stderr
        if b"Sanitizer" in err or b"runtime error" in err:
            self.wrong(arguments, label, "sanitizer:", err)
        elif code == 4 and b"built without the viewer" in err and arguments[0] == "view":
            pass
        elif code not in allowed:
            self.wrong(arguments, label, "exit code %d, not of %s:" % (code, sorted(allowed)), err)
        elif code == 3 and err.count(b"\n") != 1:
            self.wrong(arguments, label, "not one line:", err)
        elif any(c != "\n" and (c < " " or "\x7f" <= c < "\xa0" or "\ud800" <= c < "\ue000") for c in err.decode(errors="surrogateescape")):
            self.wrong(arguments, label, "control characters on standard error:", err)
        after = self.outputs()
        if code in (2, 3) and after != before:
            self.wrong(arguments, label, "failed and left or changed %s" % sorted(set(after.items()) ^ set(before.items())))
        for name in after:
            os.unlink(os.path.join(self.folder, name))
        return done


def write(folder, name, data):
    with open(os.path.join(os.fsencode(folder), os.fsencode(name)), "wb") as file:
        file.write(data)


def steering(bench):
    there = "good" + STEERING + ".json"
    write(bench.folder, there, json.dumps(recording()).encode())
    for arguments, allowed in STEERED:
        bench.run([there if a is None else a for a in arguments], "a name that steers", allowed)
    os.mkdir(os.path.join(bench.folder, STEERING))
    for command in ("report", "view", "tune", "export"):
        bench.run([command, STEERING], "a folder whose name steers", {3})
    write(bench.folder, os.path.join(STEERING, "x.pickle"), b"no recording")
    for command in ("report", "view", "tune", "export"):
        bench.run([command, STEERING], "what is in a folder whose name steers", {3})
    os.unlink(os.path.join(bench.folder, STEERING, "x.pickle"))
    os.rmdir(os.path.join(bench.folder, STEERING))
    os.unlink(os.path.join(bench.folder, there))


def usage_and_names(bench, plain):
    for arguments in USAGE:
        bench.run(arguments, "usage", {2})
    for name in NAMES:
        write(bench.folder, name, plain)
        for reader in (["report"], ["report", "--json"], ["convert", "-o", "out.json"], ["leaks"]):
            bench.run(reader + ["--", name], "name", {0, 1})
        write(bench.folder, name, b"")
        bench.run(["report", "--", name], "empty, strange name", {3})
        os.unlink(os.path.join(os.fsencode(bench.folder), os.fsencode(name)))
    # Each would be searched from the beginning.
    many = b'<script type="application/x-vram" data-name="a">QQ==</script>' * 50000
    write(bench.folder, "many.html", b"<html><title>vram</title>" + many)
    for reader in (["report"], ["leaks", "--json"]):
        bench.run(reader + ["many.html"], "a page with very many recordings", {3})
    os.unlink(os.path.join(bench.folder, "many.html"))
    for reader in READERS:
        for name in ("folder", "empty", "absent", "", "good.pickle/x", "n" * 300):
            bench.run(reader + [name], "no recording", {2, 3} if name == "" else {3})
        bench.run(reader + ["-"], "empty standard input", {3})
        bench.run(reader + ["-"], "piped", {0, 1}, data=plain)
        if "-o" not in reader:
            continue
        place = reader.index("-o") + 1
        for target in ("absent/" + reader[place], "folder"):
            bench.run(reader[:place] + [target, "good.pickle"], "no place for the output", {2, 3})
    for reader in (["report"], ["report", "--json"], ["replay"], ["leaks", "--json"], ["--help"], ["replay", "--help"], ["doctor"]):
        with open("/dev/full", "wb") as full:
            operands = [] if "--help" in reader or reader == ["doctor"] else ["good.pickle"]
            bench.run(reader + operands, "full disk", {3, 4} if reader == ["doctor"] else {3}, stdout=full)  # 4: without a device
    bench.run(["report", "-", "-"], "standard input twice", {2, 3}, data=plain)


def damage(bench, sources, until):
    streams = [(name, damaged(data, name)) for name, data in sources if data]
    turn = 0
    while streams and time.monotonic() < until:
        name, stream = streams[turn % len(streams)]
        kind, data = next(stream)
        write(bench.folder, "bad", data)
        reader = READERS[turn // len(streams) % len(READERS)]
        before = len(bench.found)
        bench.run(reader + ["bad"], "%s of %s, case %d" % (kind, name, turn), {0, 1, 2, 3} if reader[0] == "replay" else {0, 1, 3})
        if len(bench.found) > before and os.environ.get("KEEP"):
            write(os.environ["KEEP"], "case%d-%s" % (turn, reader[0]), data)
        turn += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vram")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--recordings", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(options.vram), folder)
        plain = pickle.dumps(recording(), 4)
        write(folder, "good.pickle", plain)
        write(folder, "empty", b"")
        os.mkdir(os.path.join(folder, "folder"))
        subprocess.run([bench.vram, "convert", "-o", "made.vram", "good.pickle"], cwd=folder, env=bench.env, capture_output=True)
        with open(os.path.join(folder, "made.vram"), "rb") as file:
            made = file.read()
        sources = [("pickle", plain), ("json", json.dumps(recording()).encode()), ("vram", made), ("hostile", pickle.dumps(hostile(), 4))]
        for name in sorted(os.listdir(options.recordings)) if options.recordings else ():
            with open(os.path.join(options.recordings, name), "rb") as file:
                sources.append((name, file.read()))
        usage_and_names(bench, plain)
        steering(bench)
        fixed = bench.count
        damage(bench, sources, time.monotonic() + options.seconds)
    for line in bench.found:
        print(line)
    print("%d fixed cases, %d damaged recordings, %d wrong" % (fixed, bench.count - fixed, len(bench.found)))
    return 1 if bench.found else 0


if __name__ == "__main__":
    sys.exit(main())
