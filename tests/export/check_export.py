#!/usr/bin/env python3
"""Converts a recording to the formats of other tools and compares each with the recording's own JSON.

usage: check_export.py VRAM RECORDING.json.gz
The readers (CSV, SQLite, and a small one of Protocol Buffers) are Python's and this file's own.
"""
import csv
import gzip
import io
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

VRAM, RECORDING = sys.argv[1], sys.argv[2]
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
FOLDER = tempfile.mkdtemp(prefix="vram-export-")


def vram(*arguments, code=0, data=None):
    result = subprocess.run([VRAM, *arguments], input=data, capture_output=True, check=False)
    if result.returncode != code:
        raise AssertionError(f"{arguments}: {result.returncode}: {result.stderr.decode()}")
    return result


def convert(source, name, *options):
    path = os.path.join(FOLDER, name)
    vram("convert", source, "-o", path, *options)
    return path


def message(data):
    """Returns the fields of a protobuf message: {number: [values]}, varints as numbers, all others as bytes."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            length = varint()
            value, at = data[at:at + length], at + length
            assert len(value) == length
        fields.setdefault(key >> 3, []).append(value)
    return fields


def varints(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


def text_of(frame):
    return f'{frame["name"]} ({frame["filename"]}:{frame["line"]})'


def live(snapshot, device=0):
    """Returns the memory allocated before the history, and the memory live at its peak: {address: (size, stack)}, by undoing the history."""
    trace = snapshot["device_traces"][device]
    now = {}
    for segment in snapshot["segments"]:
        for block in segment["blocks"] if segment["device"] == device else ():
            if block["state"] == "active_allocated":
                now[block["address"]] = (block.get("requested_size", block["size"]), stack_of(block))
    for event in reversed(trace):
        if event["action"] == "alloc":
            now.pop(event["addr"], None)
        elif event["action"] == "free_requested":
            now[event["addr"]] = (event["size"], "<no frames>")
    start = dict(now)
    total = most = sum(size for size, _ in now.values())
    peak = dict(now)
    for event in trace:
        if event["action"] == "alloc":
            now[event["addr"]] = (event["size"], stack_of(event))
            total += event["size"]
        elif event["action"] == "free_requested":
            total -= now.pop(event["addr"])[0]
        if total > most:
            most, peak = total, dict(now)
    return start, peak


def stack_of(row):
    frames = row.get("frames") or []
    return ";".join(text_of(f) for f in reversed(frames)) or "<no frames>"


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with gzip.open(RECORDING) as file:
            cls.snapshot = json.load(file)
        cls.trace = cls.snapshot["device_traces"][0]
        cls.used = [d for d, t in enumerate(cls.snapshot["device_traces"]) if t]
        cls.start, cls.peak = live(cls.snapshot)
        assert cls.used == [0]

    def count(self, *actions):
        return sum(e["action"] in actions for e in self.trace)

    def test_rmm_log(self):
        path = convert(RECORDING, "x.csv")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.readline(), "Thread,Time,Action,Pointer,Size,Stream\n")
            rows = [line.rstrip("\n").split(",") for line in file]
        actions = [row[2] for row in rows]
        self.assertEqual(actions.count("allocate"), self.count("alloc") + len(self.start))
        self.assertEqual(actions.count("free"), self.count("free_requested"))
        self.assertEqual(actions.count("allocate failure"), self.count("oom"))
        live_now = set()
        for row in rows:
            address = int(row[3], 16)
            if row[2] == "allocate":
                self.assertNotIn(address, live_now)
                live_now.add(address)
            elif row[2] == "free":
                live_now.remove(address)

    def test_rmm_log_comes_back(self):
        once = convert(RECORDING, "once.csv")
        again = convert(once, "again.csv")
        with open(once, "rb") as a, open(again, "rb") as b:
            self.assertEqual(a.read(), b.read())
        with open(convert(once, "back.json"), encoding="utf-8") as file:
            back = json.load(file)
        self.assertEqual([e["action"] for e in back["device_traces"][0]].count("alloc"), self.count("alloc") + len(self.start))
        blocks = [b for s in back["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
        wanted = [b for s in self.snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
        self.assertEqual(sorted(b["address"] for b in blocks), sorted(b["address"] for b in wanted))

    def test_events(self):
        for name in ("x.events.csv", "x.events.csv.gz"):
            path = convert(RECORDING, name)
            with (gzip.open(path, "rt") if name.endswith("gz") else open(path, encoding="utf-8", newline="")) as file:
                rows = list(csv.DictReader(file))
            self.assertEqual(len(rows), len(self.trace))
            for row, event in zip(rows, self.trace):
                self.assertEqual((row["action"], int(row["size_bytes"])), (event["action"], event["size"]))
                self.assertEqual(row["address"], "" if event["action"] == "oom" else str(event["addr"]))
                self.assertEqual(int(row["time_us"]), event["time_us"])
                frames = event.get("frames") or []
                self.assertEqual(row["frames"], ";".join(f'{f["filename"]}:{f["line"]}:{f["name"]}' for f in reversed(frames)))

    def test_quotes_in_csv(self):
        event = {"action": "alloc", "addr": 512, "size": 1, "stream": 0, "time_us": 1, "compile_context": 'a "b", c\nd',
                 "frames": [{"name": "f,g", "filename": "x", "line": 1}]}
        data = json.dumps({"segments": [], "device_traces": [[event]]}).encode()
        text = vram("convert", "-", "--to", "events", data=data).stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        self.assertEqual([(r["compile_context"], r["frames"]) for r in rows], [('a "b", c\nd', "x:1:f,g")])

    def test_formulas_in_csv(self):
        """Cells that a spreadsheet would execute are written as text, because recordings may be foreign."""
        texts = ['=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(A1)", "\tx", "a=1", ""]
        trace = [{"action": "alloc", "addr": 512 * n, "size": 1, "stream": 0, "time_us": n, "compile_context": text}
                 for n, text in enumerate(texts, 1)]
        data = json.dumps({"segments": [], "device_traces": [trace]}).encode()
        text = vram("convert", "-", "--to", "events", data=data).stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        self.assertEqual([r["compile_context"] for r in rows], ["'" + t if t[:1] in ("=", "+", "-", "@", "\t") and t else t for t in texts])

    def test_events_without_a_stack(self):
        frames = [{"name": "f", "filename": "x", "line": 1}]
        trace = [{"action": "alloc", "addr": 4096 * n, "size": 512, "stream": 0, "frames": frames if n == 1 else []} for n in range(1, 5)]
        data = json.dumps({"segments": [], "device_traces": [trace]}).encode()
        rows = list(csv.DictReader(io.StringIO(vram("convert", "-", "--to", "events", data=data).stdout.decode())))
        self.assertEqual([(r["site"], r["frames"]) for r in rows], [("x:1:f", "x:1:f")] + 3 * [("", "")])

    def test_sqlite(self):
        path = convert(RECORDING, "x.sqlite")
        with sqlite3.connect(path) as base:
            self.assertEqual(base.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            rows = base.execute("SELECT action, address, size_bytes, time_us, stack FROM events WHERE device = 0 ORDER BY event").fetchall()
            self.assertEqual([r[:4] for r in rows], [(e["action"], e.get("addr", e.get("device_free")), e["size"], e["time_us"]) for e in self.trace])
            stacks = {}
            for stack, name, filename, line in base.execute("SELECT stack, name, filename, line FROM stack_frames JOIN frames USING (frame)"
                                                            " ORDER BY stack, depth"):
                stacks.setdefault(stack, []).append((name or "", filename or "", line))
            for row, event in zip(rows, self.trace):
                wanted = [(f["name"], f["filename"], f["line"]) for f in event.get("frames") or []]
                self.assertEqual(stacks.get(row[4], []), wanted)
            segments = base.execute("SELECT device, address, size_bytes, stream FROM segments ORDER BY segment").fetchall()
            self.assertEqual(segments, [(s["device"], s["address"], s["total_size"], s["stream"]) for s in self.snapshot["segments"]])
            states = base.execute("SELECT segment, size_bytes, state FROM blocks ORDER BY block").fetchall()
            self.assertEqual(states, [(i, b["size"], b["state"]) for i, s in enumerate(self.snapshot["segments"]) for b in s["blocks"]])
            settings = dict(base.execute("SELECT key, value FROM settings"))
            self.assertEqual({k: json.loads(v) for k, v in settings.items()}, self.snapshot.get("allocator_settings", {}))
            marks = base.execute("SELECT count(*) FROM annotations").fetchone()[0]
            self.assertEqual(marks, len(self.snapshot.get("external_annotations", [])))
        self.assertFalse([name for name in os.listdir(FOLDER) if name.startswith(".vram-")])

    def test_folded(self):
        wanted = {}
        for size, stack in self.peak.values():
            wanted[stack] = wanted.get(stack, 0) + size
        with open(convert(RECORDING, "x.folded"), encoding="utf-8") as file:
            found = dict(line.rstrip("\n").rsplit(" ", 1) for line in file)
        self.assertEqual(sum(map(int, found.values())), sum(wanted.values()))
        known = {k: v for k, v in wanted.items() if k != "<no frames>"}
        self.assertEqual({k: int(v) for k, v in found.items() if k in known}, known)
        with open(convert(RECORDING, "a.folded", "--measure", "allocated"), encoding="utf-8") as file:
            total = sum(int(line.rsplit(" ", 1)[1]) for line in file)
        self.assertEqual(total, sum(e["size"] for e in self.trace if e["action"] == "alloc"))

    def test_pprof(self):
        with gzip.open(convert(RECORDING, "x.pb.gz")) as file:
            profile = message(file.read())
        strings = [s.decode() for s in profile[6]]
        self.assertEqual(strings[0], "")
        types = [(strings[t[1][0]], strings[t[2][0]]) for t in map(message, profile[1])]
        self.assertEqual(types, [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"),
                                 ("peak_objects", "count"), ("peak_space", "bytes")])
        functions = {f[1][0]: strings[f[2][0]] for f in map(message, profile[5])}
        locations = {}
        for location in map(message, profile[4]):
            line = message(location[4][0])
            locations[location[1][0]] = f'{functions[line[1][0]]}:{line.get(2, [0])[0]}'
        sums = [0] * 6
        stacks = {}
        for sample in map(message, profile[2]):
            values = varints(sample[2][0])
            sums = [a + b for a, b in zip(sums, values)]
            stacks[tuple(locations[i] for i in varints(sample[1][0]))] = values
            label = message(sample[3][0])
            self.assertEqual((strings[label[1][0]], label.get(3, [0])[0]), ("device", 0))
        allocs = [e for e in self.trace if e["action"] == "alloc"]
        self.assertEqual(sums[:2], [len(allocs), sum(e["size"] for e in allocs)])
        self.assertEqual(sums[4:], [len(self.peak), sum(size for size, _ in self.peak.values())])
        counts = {}
        for event in allocs:
            stack = tuple(f'{f["name"]}:{f["line"]}' for f in event.get("frames") or [])
            counts[stack] = counts.get(stack, 0) + 1
        self.assertEqual({k: v[0] for k, v in stacks.items() if v[0]}, counts)

    def test_perfetto(self):
        with open(convert(RECORDING, "x.pftrace"), "rb") as file:
            packets = [message(p) for p in message(file.read())[1]]
        tracks, points, ooms, marks = {}, {}, 0, 0
        for packet in packets:
            if 60 in packet:
                track = message(packet[60][0])
                tracks[track[1][0]] = track[2][0].decode()
                continue
            event = message(packet[11][0])
            kind, track = event[9][0], tracks[event[11][0]]
            if kind == 4:
                points.setdefault(track, []).append((packet[8][0], event[30][0]))
            elif track == "out of memory":
                ooms += 1
            else:
                marks += 1
        self.assertEqual(ooms, self.count("oom"))
        self.assertEqual(marks, len(self.snapshot.get("external_annotations", [])))
        self.assertEqual(max(v for _, v in points["allocated"]), sum(size for size, _ in self.peak.values()))
        self.assertEqual(points["reserved"][-1][1], sum(s["total_size"] for s in self.snapshot["segments"]))
        times = [t for t, _ in points["allocated"]]
        self.assertEqual(times[1:], [e["time_us"] * 1000 for e in self.trace if e["action"] in ("alloc", "free_requested")])

    def refuses_foreign_names(self, address):
        """A foreign page that maps its own name to this address gets nothing."""
        request = urllib.request.Request(address, headers={"Host": "rebound.example"})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            DIRECT.open(request)
        self.assertEqual(caught.exception.code, 403)
        caught.exception.close()

    def answers_despite_half_requests(self, address, text):
        """Half a request does not block others: 100 of them once cost 20 seconds."""
        port = urllib.parse.urlsplit(address).port
        halves = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        try:
            for half in halves:
                try:
                    half.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127")
                except OSError:  # there are too many, and this one was silent longest
                    pass
            # Each half request once had two seconds: far less than a hundred take, far more than one answer needs.
            with DIRECT.open(address, timeout=15) as reply:
                self.assertEqual(reply.read().decode(), text)
        finally:
            for half in halves:
                half.close()

    def test_prometheus(self):
        """Exports a job's recordings as one text, by rank, to a file and over the loopback interface."""
        job = os.path.join(FOLDER, "job")
        os.mkdir(job)
        ranks = {"mem_rank2.vram": "2", "Rank-10_host7.vram": "10", "x.rank_03.vram": "3", "7.vram": "7", "run_1_2.vram": None, "none.vram": None}
        for name in ranks:
            vram("convert", RECORDING, "-o", os.path.join(job, name))
        text = vram("export", job).stdout.decode()
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        peak = sum(size for size, _ in self.peak.values())
        reserved = sum(segment["total_size"] for segment in self.snapshot["segments"])
        for name, rank in ranks.items():
            labels = f'recording="{name}"' + (f',rank="{rank}"' if rank else "")
            self.assertEqual(lines[f'vram_peak_requested_bytes{{{labels},device="0"}}'], str(peak))
            self.assertEqual(lines[f'vram_reserved_bytes{{{labels},device="0"}}'], str(reserved))
            self.assertEqual(lines[f"vram_events_total{{{labels}}}"], str(len(self.trace)))
            self.assertEqual(lines[f"vram_up{{{labels}}}"], "0")
        for name in {line.split("{")[0] for line in lines}:
            self.assertEqual(text.count(f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n"), 1)
        # Files left by an out-of-memory error are not followed, and do no harm.
        shutil.copy(RECORDING, os.path.join(job, "oom_rank2.json.gz"))
        self.assertEqual(vram("export", job).stdout.decode(), text)
        path = os.path.join(FOLDER, "vram.prom")
        vram("export", job, "--interval", "50ms", "-o", path)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        server = subprocess.Popen([VRAM, "export", job, "--listen", "0"], stderr=subprocess.PIPE, text=True)
        try:
            address = server.stderr.readline().split()[1]
            with DIRECT.open(address) as reply:
                self.assertEqual(reply.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
                self.assertEqual(reply.read().decode(), text)
            for wrong, code in ((address + "x", 404), (urllib.request.Request(address, method="POST"), 405)):
                with self.assertRaises(urllib.error.HTTPError) as caught:
                    DIRECT.open(wrong)
                self.assertEqual(caught.exception.code, code)
                caught.exception.close()
            self.refuses_foreign_names(address)
            self.answers_despite_half_requests(address, text)
        finally:
            server.terminate()
        self.assertEqual(server.wait(10), 0)
        server.stderr.close()
        self.assertIn(b"--interval takes a time", vram("export", job, "--interval", "soon", code=2).stderr)
        self.assertIn(b"--listen takes a port", vram("export", job, "--listen", "70000", code=2).stderr)
        self.assertIn(b"not a recording file", vram("export", RECORDING, code=3).stderr)
        dumps = os.path.join(FOLDER, "dumps")
        os.mkdir(dumps)
        shutil.copy(RECORDING, os.path.join(dumps, "oom.json.gz"))
        self.assertIn(b"dumps contains no recording file (.vram)", vram("export", dumps, code=3).stderr)

    def test_standard_streams(self):
        """Output into a log by /dev/stdout and similar files is between the earlier and the later contents."""
        text = vram("convert", RECORDING, "-o", "-", "--to", "folded").stdout
        for name, descriptor in (("/dev/stdout", 1), ("/dev/stderr", 2), ("/dev/fd/2", 2)):
            path = os.path.join(FOLDER, "log")
            with open(path, "wb") as log:
                os.write(log.fileno(), b"before\n")
                stream = {1: "stdout", 2: "stderr"}[descriptor]
                subprocess.run([VRAM, "convert", RECORDING, "-o", name, "--to", "folded"], check=True, timeout=60, **{stream: log})
                os.write(log.fileno(), b"after\n")
            with open(path, "rb") as log:
                self.assertEqual(log.read(), b"before\n" + text + b"after\n", name)

    def test_extensions(self):
        self.assertIn(b"cannot infer a format from", vram("convert", RECORDING, "-o", os.path.join(FOLDER, "x.odd"), code=2).stderr)
        self.assertIn(b"cannot infer a format from", vram("convert", RECORDING, "-o", os.path.join(FOLDER, "csv"), code=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
