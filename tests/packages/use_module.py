"""Uses the module `vram` of an installed wheel. usage: use_module.py PACKED PLAIN EVENTS_CSV [PACKAGE...]      (the installed packages of
others)"""
import csv
import gc
import os
import sys
import types

import vram

packed, plain, table, *packages = sys.argv[1:]


def check(what, good):
    assert good, what
    print("ok: " + what)


def check_tables(recording):
    events = recording.events()
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    check("as many events as rows of the table", len(rows) == len(events) > 1000)
    names = {name.lower(): name for name in rows[0]}
    for ours in ("size_bytes", "stream", "stack", "thread"):
        if ours in names:
            check("events: " + ours, [int(row[names[ours]] or 0) for row in rows] == [int(value) for value in events.column(ours)])
    check("events: action", [row[names["action"]] for row in rows] == list(events["action"]))
    blocks, segments = recording.blocks, recording.segments
    check("blocks fill their segments", sum(map(int, blocks.column("size_bytes"))) == sum(map(int, segments.column("size_bytes"))))
    number = max(map(int, events.column("stack")))
    check("a stack has frames", all(len(frame) == 3 for frame in recording.stack(number)) and recording.stack(0) == [])
    return events


def check_frames(recording, events):
    import numpy
    import pandas
    import polars
    import pyarrow
    values = events.column("size_bytes")
    check("no copy, and read-only", not values.flags.owndata and not values.flags.writeable and values.ctypes.data == events.column("size_bytes").ctypes.data)
    made = pyarrow.table(events)
    made.validate(full=True)
    check("Arrow has the recording's memory", made["size_bytes"].chunk(0).buffers()[1].address == values.ctypes.data)
    total = int(values.sum())
    check("Arrow's sum", pyarrow.compute.sum(made["size_bytes"]).as_py() == total if hasattr(pyarrow, "compute") else True)
    check("Arrow's words", made["action"].to_pylist() == list(events["action"]))
    frame = events.to_pandas()
    check("pandas", int(frame["size_bytes"].sum()) == total and list(frame["action"]) == list(events["action"]))
    check("polars", polars.DataFrame(events)["size_bytes"].sum() == total and polars.DataFrame(recording.frames).height == len(recording.frames))
    check("a batch", pyarrow.record_batch(recording.blocks).num_rows == len(recording.blocks))
    kept = pyarrow.table(vram.open(plain).events())
    gc.collect()
    check("Arrow keeps the recording", kept.equals(made))
    del kept, made
    gc.collect()
    from vram import _arrow
    check("everything was released", not _arrow._held and not _arrow._capsules)
    check("NumPy", numpy.asarray(events["action"]).shape == (len(events),))


class Cuda(types.ModuleType):
    """The part of PyTorch that vram.record() and vram_peak use."""

    def __init__(self):
        super().__init__("torch.cuda")
        self.used, self.most, self.on, self.begun = 0, 0, False, False
        self.memory = types.SimpleNamespace(_record_memory_history=self.history, _dump_snapshot=self.dump)

    def init(self):
        self.begun = True

    def is_available(self):
        return True

    def device_count(self):
        return 1

    def reset_peak_memory_stats(self, _device):
        assert self.begun, "Invalid device argument"
        self.most = self.used

    def memory_allocated(self, _device):
        return self.used

    def max_memory_allocated(self, _device):
        return self.most

    def take(self, size):
        self.used += size
        self.most = max(self.most, self.used)

    def history(self, enabled="all", **_options):
        self.on = enabled is not None

    def dump(self, path):
        assert self.on
        with open(plain, "rb") as source, open(path, "wb") as file:
            file.write(source.read())


def check_record():
    cuda = Cuda()
    torch = types.ModuleType("torch")
    torch.cuda, sys.modules["torch"], sys.modules["torch.cuda"] = cuda, torch, cuda
    with vram.record("made.pickle") as recorded:
        cuda.take(1 << 30)
        cuda.take(-1 << 29)
    check("record: peak and file", recorded.peak_bytes == {0: 1 << 30} and not cuda.on and len(recorded.open().events()) > 1000)
    try:
        with vram.record("failed.pickle"):
            raise KeyError
    except KeyError:
        check("record: also of a block that fails", os.path.getsize("failed.pickle") > 0 and not cuda.on)
    return cuda


def main():
    recording = vram.open(packed)
    events = check_tables(recording)
    check("the same from a plain file", list(vram.open(plain).events().column("address")) == list(events.column("address")))
    text = str(vram.report(plain))
    check("report", "Device 0" in text and vram.report(plain).data["devices"])
    page = vram.show(plain)
    check("show", page.html.startswith("<!doctype") or page.html.startswith("<!DOCTYPE"))
    check("show in Jupyter", page._repr_html_().startswith('<iframe srcdoc="&lt;!'))
    for wrong in (__file__, table):
        try:
            vram.open(wrong)
        except ValueError as error:
            check("no recording: %s" % error, "\n" not in str(error))
    try:
        vram.open("absent.pickle")
    except OSError:
        check("no file", True)
    except ValueError:
        check("no file", True)
    check_record()
    if "numpy" in packages:
        check_frames(recording, events)


main()
