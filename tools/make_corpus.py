#!/usr/bin/env python3
"""make_corpus.py DIR: writes the small recordings that the readers' fuzzer begins with. All are made here.

Also a module: small snapshots of every generation of the format, and writers for every encoding that PyTorch's two writers, JSON tools and
the HTML pages use. The readers' tests import it.
"""
import base64
import json
import os
import pickle
import struct
import sys


def frame(name, filename, line):
    return {"name": name, "filename": filename, "line": line}


FRAMES = [frame("malloc", "allocator.cpp", 10), frame("forward", "/src/model.py", 42), frame("<module>", "/src/train.py", 7),
          frame("näive\n\"quoted\"", "", 2**64 - 1)]


def generation_1():
    """torch 2.0: blocks have a history, but no address and no frames."""
    history = [{"addr": 0x7F0000000000, "real_size": 500, "frames": FRAMES[:2]}, {"addr": 0x7F0000000000, "real_size": 100}]
    blocks = [{"size": 512, "state": "active_allocated", "history": history}, {"size": 1024, "state": "active_awaiting_free"},
              {"size": 2**21 - 1536, "state": "inactive", "history": []}]
    segment = {"device": 0, "address": 0x7F0000000000, "total_size": 2**21, "allocated_size": 512, "active_size": 1536, "stream": 0,
               "segment_type": "small", "blocks": blocks}
    return {"segments": [segment], "device_traces": [[{"action": "oom", "device_free": 77, "size": 2**30, "stream": 0}]]}


def events(newest):
    stack, other = FRAMES[:3], [FRAMES[3]]
    trace = []
    for i in range(3):
        address = 0x7F0000000000 + 512 * i
        rows = [("segment_alloc", 2**21, stack), ("alloc", 400 + i, stack), ("free_requested", 400 + i, other), ("free_completed", 400 + i, other)]
        for action, size, frames in rows:
            event = {"action": action, "addr": address, "size": size, "stream": 0 if i else -(2**63), "time_us": 1_700_000_000_000_000 + i}
            if newest:
                event.update(compile_context="N/A", user_metadata="step %d" % i, pool_id=(0, i))
            event["frames"] = frames
            trace.append(event)
    trace.append({"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": 1_700_000_000_000_009})
    trace.append({"action": "something_new", "addr": 2**63 + 5, "size": 1, "stream": 2**64 - 1})
    if newest:
        trace.append({"action": "annotate", "addr": 1, "size": 0, "stream": 0, "user_metadata": {"label": ["a", 1.5, None, True]}})
        trace.append({"action": "alloc", "addr": 2, "size": 512, "stream": 0, "internal_metadata": "mallocWithAddress", "forward_frames": ["y = x * 2", "z"]})
    return trace


def segment(device, address, blocks):
    total = sum(block["size"] for block in blocks)
    return {"device": device, "address": address, "total_size": total, "allocated_size": 512, "active_size": 1024, "requested_size": 800,
            "stream": 2**63 + 1, "segment_type": "large", "segment_pool_id": (0, 1), "is_expandable": True, "frames": [], "blocks": blocks}


def newest():
    blocks = [{"address": 2**63 + 4096, "size": 512, "requested_size": 400, "state": "active_allocated", "frames": FRAMES[:3]},
              {"address": 2**63 + 4608, "size": 512, "requested_size": 400, "state": "active_pending_free", "frames": FRAMES[1:2]},
              {"address": 2**63 + 5120, "size": 1024, "requested_size": 0, "state": "inactive", "frames": []}]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "max_split_size": -1, "garbage_collection_threshold": 0.8,
                "expandable_segments": True, "roundup_power2_divisions": {"1": 0, "32768": 8}, "of the future": [1, [2, {"x": None}], 2**64 - 1]}
    marks = [{"name": "step", "stage": stage, "device": device, "time_us": time}
             for stage, device, time in (("START", 0, 1_700_000_000_000_000), ("END", "1", "1700000000000001"))]
    return {"segments": [segment(0, 2**63 + 4096, blocks), segment(3, 0x7F0000000000, blocks[2:])],
            "device_traces": [events(True), [], [], events(True)[:4]], "allocator_settings": settings, "external_annotations": marks,
            "host_segments": [{"address": 1, "blocks": blocks}], "host_traces": events(True)[:3], "trace_alloc_overflowed": False}


def samples():
    """Returns name -> snapshot: every generation, and the bare list."""
    middle = {"segments": newest()["segments"][:1], "device_traces": [events(False)], "allocator_settings": {}}
    return {"generation_1": generation_1(), "generation_3": middle, "newest": newest(), "list": newest()["segments"],
            "single": {"allocator_settings": {"only": {"a": 1, "b": [2]}}, "unread": {"x": {"y": [1, 2]}}, "segments": newest()["segments"][:1],
                       "device_traces": [events(False)[:1]]},
            "single_list": newest()["segments"][1:], "empty": {"segments": [], "device_traces": []}}


def odd_samples():
    """Returns name -> snapshot: values that no column can express, or none in the form that the file has."""
    frame_of_graph = dict(frame("call", "graph.py", 3), fx_node_op="call_function", fx_node_name="add", fx_node_target="aten::add", fx_original_trace="a\nb")
    event = {"action": "alloc", "addr": 1, "size": 2, "stream": 3, "frames": [frame_of_graph, FRAMES[1]], "forward_frames": ["File \"x\"", "y"],
             "category": "ACTIVATION", "thread": 77, "version": 2, "of the future": {"deep": [1, [2.5, {"x": None}], -(2**63)], "": 0.0}}
    odd = [dict(event), dict(event, user_metadata=None, compile_context={"a": 1}, time_us="soon", category=None, thread=2**40),
           dict(event, addr=-5, stream=2**63, time_us=1.5e3, frames=None, pool_id=[0, 1], user_metadata=["a", "b"]),
           {"action": "oom", "device_free": 2**63, "size": 1.0, "stream": True, "time_us": -1}, {"action": "unknown", "addr": 0, "size": 0,
                                                                                                "stream": -1, "pool_id": (2**30, 5)}]
    shared = {"label": [1, 2, {"x": 0.1 + 0.2}]}
    odd += [dict(event, user_metadata=shared, more=shared), dict(event, user_metadata=shared, more=shared)]
    del odd[0]["frames"]
    block = {"size": 512, "state": "something_new", "addr": 4096, "history": [
        {"addr": 4096, "real_size": 500, "frames": FRAMES[:2], "cpp_frames": FRAMES[2:]}, {"addr": 4096, "real_size": 4, "x": "y"}, {"addr": None,
                                                                                                                              "real_size": 1}]}
    blocks = [block, {"size": 512, "state": "inactive", "history": []}, {"size": 512, "requested_size": None, "state": "active_allocated"}, block]
    odd_segment = dict(segment(0, 4096, blocks), segment_type="huge", is_expandable=1, segment_pool_id=[0, 0], extra=[], frames=[frame_of_graph])
    host_block = {"address": 64, "size": 64, "requested_size": 60, "state": "active_allocated", "frames": FRAMES[:1]}
    host = dict(segment(0, 64, [host_block]), device=-1)
    marks = [{"name": "a", "stage": "START", "device": "0", "time_us": "12"}, {"name": "b", "device": 1, "time_us": 5, "stage": None},
             {"stage": "END", "name": ["c"], "depth": 3}]
    names_only = {"name": "aten::mm", "filename": "none"}
    base = {"segments": [odd_segment], "device_traces": [odd, [], [dict(event, frames=[names_only, {"name": "x", "filename": "y", "line": -1}])]],
            "allocator_settings": {"a": 0.0, "b": 1e22, "c": [1, 1.0, True, None], "trace_alloc_max_entries": 5}, "external_annotations": marks}
    lists = dict(base, segments=[dict(odd_segment), dict(odd_segment)], device_traces=[[dict(event, pool_id=[0, 1])]])
    pairs = dict(base, segments=[dict(odd_segment, segment_pool_id=(0, 0))], device_traces=[[dict(odd[2], pool_id=(0, 1))] + odd[4:]])
    return {"odd_lists": lists, "odd_pairs": pairs,
            "odd_host": dict(pairs, host_segments=[host, dict(host, device=0)], host_traces=[dict(event), dict(event, size=9)]),
            "fx_frames": dict(pairs, segments=[dict(odd_segment, segment_pool_id=(0, 0), frames=[
                {"name": "forward", "filename": "<eval_with_key>.0", "line": 7, "fx_node_op": "call_function", "fx_node_name": "add_1",
                 "fx_original_trace": "File \"m.py\", line 3\n"}])]),
            "odd_host_nested": dict(pairs, host_segments=[host], host_traces=[[dict(event)]]),
            "odd_host_only": {"segments": [segment(3, 512, [])], "device_traces": [[], [], [], []], "host_traces": [], "host_segments": []},
            "odd_host_other": dict(pairs, host_segments={"a": 1}, host_traces=[[1], [2]]),
            "odd_top": dict(pairs, trace_alloc_max_entries=[1, 2], trace_alloc_overflowed={"0": False}, external_annotations=None,
                            of_the_future={"frames": FRAMES[:3], "list": [1.5, "x", [FRAMES[0]]]}, empty={}, long=list(range(3000)), text="x" * 70000),
            "odd_settings": {"segments": None, "device_traces": [[]], "allocator_settings": None}}


class CppPickler:
    """Pickles like PyTorch's C++ writer: protocol 2, every list and dictionary in one batch, strings memoized by value, containers only
    if they are shared, and numbers beyond 32 bits always in 8 bytes."""

    def __init__(self):
        self.out, self.memo, self.uses = bytearray(b"\x80\x02"), {}, {}

    def count(self, value):
        self.uses[id(value)] = self.uses.get(id(value), 0) + 1
        if self.uses[id(value)] > 1:
            return
        if isinstance(value, dict):
            for item in value.values():
                self.count(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.count(item)

    def put(self, key):
        index = self.memo[key] = len(self.memo)
        self.out += b"q%c" % index if index < 256 else b"r" + struct.pack("<I", index)

    def get(self, key):
        index = self.memo[key]
        self.out += b"h%c" % index if index < 256 else b"j" + struct.pack("<I", index)

    def scalar(self, value):
        if value is None:
            self.out += b"N"
        elif isinstance(value, bool):
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            if ("string", value) in self.memo:
                return self.get(("string", value))
            text = value.encode("utf-8", "surrogatepass")
            self.out += b"X" + struct.pack("<I", len(text)) + text
            self.put(("string", value))
        elif -(2**31) <= value < 2**31:
            self.out += b"K%c" % value if 0 <= value < 256 else b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<Q", value % 2**64)

    def save(self, value):
        if not isinstance(value, (dict, list, tuple)):
            return self.scalar(value)
        key = ("container", id(value))
        if key in self.memo:
            return self.get(key)
        if isinstance(value, dict):
            self.out += b"}("
            for name, item in value.items():
                self.save(name)
                self.save(item)
            self.out += b"u"
        elif isinstance(value, list):
            self.out += b"]("
            for item in value:
                self.save(item)
            self.out += b"e"
        else:
            if len(value) != 2:
                self.out += b"("
            for item in value:
                self.save(item)
            self.out += b"\x86" if len(value) == 2 else b"t"
        if self.uses[id(value)] > 1:
            self.put(key)

    def dump(self, value):
        self.count(value)
        self.save(value)
        return bytes(self.out + b".")


def html_page(data):
    text = base64.b64encode(data + b"\0" * (-len(data) % 3)).decode()
    return ("<!DOCTYPE html>\n<html>\n<body>\n<script type=\"module\">\nconst local_files = [{\"name\": \"snapshot.pickle\", \"base64\": \"%s\"}]\n"
            "</script>\n</body>\n" % text).encode()


def encodings(snapshot):
    """Returns suffix -> bytes: one snapshot in every encoding that the readers accept."""
    made = {"p%d" % protocol: pickle.dumps(snapshot, protocol) for protocol in (2, 3, 4, 5)}
    made["cpp"] = CppPickler().dump(snapshot)
    made["json"] = json.dumps(snapshot).encode()
    made["indented"] = b"\xef\xbb\xbf" + json.dumps(snapshot, indent=2, ensure_ascii=False).encode()
    made["html"] = html_page(made["p4"])
    return made


# Opcodes that no writer of snapshots uses but that are plain data, and some that are refused.
ODD = {
    "text_numbers": b"\x80\x02(dVsegments\n(lsVdevice_traces\n(l(lF1.5\nI01\nL12L\nI-7\naaasas.",
    "incremental": b"\x80\x04}\x94\x8c\x08segments]s\x8c\x0ddevice_traces]]}\x8c\x06action\x8c\x05allocs\x8c\x04sizeK\x07saas.",
    "dup_pop": b"\x80\x04}\x8c\x08segments](2e0]2a\x30s.",
    "long4": b"\x80\x04}\x8c\x08segments]s\x8c\x01x\x8b\x03\0\0\0\x01\x02\x03s.",
    "bytes": b"\x80\x04}\x8c\x08segments]s\x8c\x01xC\x03abcs\x8c\x01yB\x01\0\0\0as\x8c\x01z\x96\x01\0\0\0\0\0\0\0as.",
    "cycle": b"\x80\x04}\x94\x8c\x08segments]\x94h\x01ash\0.",
    "global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
    "huge_length": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
    "deep": b"\x80\x04" + b"](" * 200 + b"e" * 200 + b".",
    "shared": b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](](}(\x8c\x06action\x8c\x05allocu\x94e\x94" + b"h\x01" * 60 + b"eu.",
    "item_names_its_list": b"\x80\x04]\x94(}(\x8c\x06deviceK\0\x8c\x01xh\0\x8c\x0atotal_sizeK\x01ue.",
    "nothing_inside": b"\x80\x04}\x8c\x08segments]}(\x8c\x06blocks]}a\x8c\x0atotal_sizeK\0uas.",
    "json_odd": b"[{\"device\": 0, \"total_size\": 1e3, \"blocks\": [], \"x\": [NaN, -Infinity, \"\\ud83d\\ude00\\u0000\"]}]",
}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_corpus.py DIR")
    os.makedirs(sys.argv[1], exist_ok=True)
    files = {name: data for name, data in ODD.items()}
    for name, snapshot in {**samples(), **odd_samples()}.items():
        for suffix, data in encodings(snapshot).items():
            if suffix in ("p2", "p4", "cpp", "json") or (suffix == "html" and name in ("empty", "generation_1")):
                files["%s.%s" % (name, suffix)] = data
    for name, data in files.items():
        with open(os.path.join(sys.argv[1], name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
