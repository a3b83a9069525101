#!/usr/bin/env python3
"""Tests recordings in ZIP archives: those of torch.save(), downloaded attachments, several ranks in one; and damaged archives.
usage: check_zip.py VRAM"""
import gzip
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import zipfile

SEGMENT = {"device": 0, "address": 2 << 20, "total_size": 2 << 20, "allocated_size": 512, "active_size": 512, "requested_size": 500, "stream": 0,
           "segment_type": "small", "blocks": [{"size": 512, "requested_size": 500, "state": "active_allocated"},
                                               {"size": (2 << 20) - 512, "requested_size": 0, "state": "inactive"}]}
RECORDING = {"segments": [SEGMENT] * 1, "device_traces": [[{"action": "alloc", "addr": 2 << 20, "size": 500, "stream": 0}] * 1]}
PLAIN = pickle.dumps(RECORDING, 2)


def archive(files, method=zipfile.ZIP_DEFLATED, comment=b"", streamed=False):
    raw = io.BytesIO()
    if streamed:  # sizes follow the data, as in archives written to a pipe
        raw.seek, raw.seekable = (lambda *_: (_ for _ in ()).throw(OSError())), (lambda: False)
    with zipfile.ZipFile(raw, "w", method) as made:
        for name, data in files:
            made.writestr(name, data)
        made.comment = comment
    return raw.getvalue()


def with_zip64(data):
    """Returns the archive with its sizes where large archives have them."""
    at = data.rindex(b"PK\5\6")
    count, length, offset = struct.unpack_from("<HII", data, at + 10)
    end = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, offset)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at, 1)
    last = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:at] + end + locator + last


def bent(data, at, change):
    return data[:at] + bytes([data[at] ^ change]) + data[at + 1:]


ONE = archive([("snapshot.pickle", PLAIN)])
STORED = archive([("snapshot.pickle", PLAIN)], zipfile.ZIP_STORED)
TORCH = [("archive/data.pkl", PLAIN), ("archive/byteorder", b"little"), ("archive/version", b"3\n"), ("archive/.data/serialization_id", b"1")]
TWO = archive([("rank0.pickle", PLAIN), ("rank1.pickle", PLAIN)])

GOOD = {
    "one.zip": ONE, "stored.zip": STORED, "torch.pt": archive(TORCH, zipfile.ZIP_STORED), "streamed.zip": archive([("a.pickle", PLAIN)], streamed=True),
    "mac.zip": archive([("folder/", b""), ("folder/snapshot.pickle", PLAIN), ("__MACOSX/folder/._snapshot.pickle", b"\0\5")]),
    "json.zip": archive([("read me.txt", b"hello"), ("snapshot.json", json.dumps(RECORDING).encode())]),
    "packed.zip": archive([("snapshot.pickle.gz", gzip.compress(PLAIN))], zipfile.ZIP_STORED), "unnamed.zip": archive([("snapshot", PLAIN)]),
    "comment.zip": archive([("snapshot.pickle", PLAIN)], comment=b"PK\5\6" * 50), "zip64.zip": with_zip64(ONE),
    "before.zip": archive([("x.txt", b"PK\3\4PK\5\6"), ("snapshot.pickle", PLAIN)], zipfile.ZIP_STORED),
}
BAD = {  # expected message
    "none.zip": (archive([("a.txt", b"1"), ("b.txt", b"2")]), "contains no recording"), "empty.zip": (archive([]), "contains no recording"),
    "text.zip": (archive([("a.pickle", b"hello")]), "not a recording"), "cut.zip": (ONE[:len(ONE) - 30], "its list of files is missing"),
    "method.zip": (archive([("a.pickle", PLAIN)], zipfile.ZIP_BZIP2), "neither stored nor deflated"),
    "data.zip": (bent(ONE, 80, 0x55), ""), "checksum.zip": (bent(STORED, 30 + len("snapshot.pickle") + len(PLAIN) - 20, 1), ""),
    "list.zip": (bent(ONE, ONE.rindex(b"PK\1\2") + 2, 7), "list of files is invalid"), "place.zip": (bent(ONE, ONE.rindex(b"PK\5\6") + 17, 1), "damaged"),
    "header.zip": (bent(ONE, ONE.rindex(b"PK\1\2") + 42, 9), "damaged"), "bomb.zip": (archive([("a.json", b'{"segments": [],' + b" " * (2 << 20))]), "unpack"),
}


def main(vram):
    found = []

    def run(*words, **options):
        return subprocess.run([vram, *words], capture_output=True, timeout=100, **options)

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, data in {**GOOD, **{name: data for name, (data, _) in BAD.items()}, "two.zip": TWO, "plain.pickle": PLAIN}.items():
            with open(name, "wb") as file:
                file.write(data)
        wanted = run("report", "--json", "--no-cure", "plain.pickle")
        for name in GOOD:
            told = run("report", "--json", "--no-cure", name)
            ours, theirs = ({key: value for key, value in json.loads(one.stdout or "{}").items() if key not in ("file", "bytes")} for one in (told, wanted))
            if told.returncode != 0 or ours != theirs or not theirs["devices"]:
                found.append(f"{name}: {told.returncode}: {told.stderr.decode()}")
        for name, (_, words) in BAD.items():
            told = run("report", "--no-cure", "--max-unpacked", "1MiB", name)
            if told.returncode != 3 or told.stderr.count(b"\n") != 1 or words.encode() not in told.stderr:
                found.append(f"{name}: {told.returncode}: {told.stderr.decode()}")
        both = run("report", "--no-cure", "two.zip").stdout.decode()
        named = run("report", "--no-cure", "two.zip#2"), run("report", "--no-cure", "two.zip#rank1.pickle"), run("report", "two.zip#rank9")
        if "two.zip#rank0.pickle" not in both or "two.zip#rank1.pickle" not in both or [one.returncode for one in named] != [0, 0, 3]:
            found.append(f"two.zip: {both[:300]} {named}")
        with open("one.zip", "rb") as file:
            piped = subprocess.run(f"cat one.zip | {vram} report -", shell=True, capture_output=True, stdin=file)
        if piped.returncode != 3 or b"only be read from a file" not in piped.stderr:
            found.append(f"a pipe: {piped}")
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
