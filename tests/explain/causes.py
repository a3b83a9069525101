#!/usr/bin/env python3
"""Recordings with a known cause of their out-of-memory error. `vram report`, its JSON and `vram mcp` must name the cause and what holds the memory.

usage: causes.py VRAM [FOLDER OF RECORDINGS]      checks them (those of real GPUs are skipped by name if they are missing)
       causes.py --make TARGET [FOLDER OF RECORDINGS]   writes them and the table (causes.json), for the page's test

Three kinds: made here, event by event; real PyTorch on the simulator (recordings/*.pickle.gz, by tests/real/programs/oom_causes.py); real GPUs.
"""
import gzip
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
GIB = 1 << 30
TRAIN = [("train.py", 7, "main")]
CALL = ("/usr/lib/python3/site-packages/torch/nn/modules/module.py", 1776, "_call_impl")


def frames(*lines):
    return [{"filename": file, "line": line, "name": name} for file, line, name in lines]


def forward(line, caller=("train.py", 7, "main")):
    return frames(("model.py", line, "forward"), CALL, caller)


class Device:
    """A device with segments and blocks like PyTorch's native allocator: each allocation has its own segment, or a named place."""

    def __init__(self, **settings):
        self.events, self.segments, self.blocks, self.settings, self.next, self.time = [], {}, {}, settings, 0x7F0000000000, 1000

    def event(self, action, address, size, stack, stream=0, pool=(0, 0)):
        self.time += 10
        self.events.append({"action": action, "addr": address, "size": size, "stream": stream, "segment_pool_id": pool, "time_us": self.time, "frames": stack})

    def segment(self, size, stack, stream=0, pool=(0, 0)):
        address = self.next
        self.next += size + 64 * MIB
        self.segments[address] = {"address": address, "total_size": size, "stream": stream, "pool": pool, "frames": stack}
        self.event("segment_alloc", address, size, stack, stream, pool)
        return address

    def put(self, address, size, stack, stream=0, pool=(0, 0), given=None):
        self.event("alloc", address, size, stack, stream, pool)
        self.blocks[address] = [size, given or size, stack, "active_allocated"]
        return address

    def take(self, size, stack, stream=0, pool=(0, 0), given=None):
        return self.put(self.segment(given or size, stack, stream, pool), size, stack, stream, pool, given)

    def give(self, address, stream=0, pool=(0, 0), pending=False, back=True):
        """Frees; `pending`: another stream still uses it; `back`: releases its segment, in which it is the only block."""
        size = self.blocks[address][0]
        self.event("free_requested", address, size, [], stream, pool)
        if pending:
            self.blocks[address][3] = "active_awaiting_free"
            return
        self.event("free_completed", address, size, [], stream, pool)
        given = self.blocks.pop(address)[1]
        if back and address in self.segments and self.segments[address]["total_size"] == given:
            self.event("segment_free", address, given, [], stream, pool)
            del self.segments[address]

    def fail(self, size, free, stack, stream=0, pool=(0, 0)):
        self.time += 10
        self.events.append({"action": "oom", "device_free": free, "size": size, "stream": stream, "segment_pool_id": pool, "time_us": self.time, "frames": stack})

    def picture(self):
        for segment in self.segments.values():
            at, end, blocks = segment["address"], segment["address"] + segment["total_size"], []
            for address in sorted(address for address in self.blocks if at <= address < end):
                size, given, stack, state = self.blocks[address]
                if address > at:
                    blocks.append({"address": at, "size": address - at, "requested_size": 0, "state": "inactive", "frames": []})
                blocks.append({"address": address, "size": given, "requested_size": size, "state": state, "frames": stack})
                at = address + given
            if at < end:
                blocks.append({"address": at, "size": end - at, "requested_size": 0, "state": "inactive", "frames": []})
            used = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
            yield {"device": 0, "address": segment["address"], "total_size": segment["total_size"], "allocated_size": used, "active_size": used, "requested_size": used, "stream": segment["stream"],
                   "segment_type": "large", "segment_pool_id": segment["pool"], "is_expandable": False, "frames": segment["frames"], "blocks": blocks}

    def recording(self):
        return {"segments": list(self.picture()), "device_traces": [self.events], "external_annotations": [], "allocator_settings": self.settings}


class Host(Device):
    """Pinned host memory as in a history of vram's own allocator; its free memory is the system's."""

    def recording(self):
        return {"segments": [], "device_traces": [[]], "host_segments": list(self.picture()), "host_traces": self.events, "external_annotations": [], "allocator_settings": self.settings}


# --- made here: a function per cause, whose name is the recording's ----------------------------------------------------------------------------


def load(device, size, line):
    return device.take(size, frames(("/usr/lib/python3/site-packages/torch/nn/modules/module.py", 934, "_apply"), ("train.py", line, "main")))


def a_list_that_grows():
    device = Device()
    load(device, GIB, 3)
    for _ in range(40):
        inside = [device.take(100 * MIB, forward(line)) for line in (11, 12, 13)]
        for address in inside:
            device.give(address)
        device.take(64 * MIB, frames(("train.py", 31, "remember"), *TRAIN))
    device.fail(400 * MIB, 100 * MIB, forward(11))
    return device


def few_blocks_in_the_way():
    """One index in the middle of each of four segments."""
    device = Device()
    for _ in range(4):
        segment = device.segment(GIB, frames(("train.py", 20, "step"), *TRAIN))
        large = device.put(segment, 500 * MIB, frames(("train.py", 20, "step"), *TRAIN))
        device.put(segment + 500 * MIB, 24 * MIB, frames(("train.py", 55, "build_index"), *TRAIN))
        device.give(large, back=False)
    device.take(4 * GIB, frames(("train.py", 3, "load"), *TRAIN))
    device.fail(900 * MIB, 10 * MIB, frames(("train.py", 21, "step"), *TRAIN))
    return device


def another_process():
    device = Device(vram_device_0_total_bytes=8 * GIB)
    device.settings["vram_accounts_0"] = {"device": 0, "context_bytes": 300 * MIB, "module_bytes": 8 * MIB, "self_bytes": 2 * GIB, "has_self": True, "processes": [{"pid": 4711, "name": "trainer", "bytes": 5 * GIB}]}
    device.take(GIB, frames(("train.py", 3, "load"), *TRAIN))
    device.fail(2 * GIB, 500 * MIB, frames(("train.py", 9, "step"), *TRAIN))
    return device


def a_fraction():
    device = Device(per_process_memory_fraction=0.25, vram_device_0_total_bytes=80 * GIB)
    device.take(18 * GIB, frames(("train.py", 3, "load"), *TRAIN))
    device.fail(4 * GIB, 60 * GIB, frames(("train.py", 9, "step"), *TRAIN))
    return device


def pool_of_a_graph():
    device = Device()
    inside = device.take(6 * GIB, frames(("serve.py", 20, "capture"), *TRAIN), pool=(0, 3))
    device.take(2 * GIB, frames(("serve.py", 3, "load"), *TRAIN))
    device.give(inside, pool=(0, 3), back=False)
    device.fail(3 * GIB, 500 * MIB, frames(("serve.py", 40, "answer"), *TRAIN))
    return device


def waits_for_a_stream():
    device = Device()
    device.take(2 * GIB, frames(("train.py", 3, "load"), *TRAIN))
    batch = device.take(5 * GIB, frames(("data.py", 12, "prefetch"), *TRAIN))
    device.give(batch, pending=True)
    device.fail(4 * GIB, 500 * MIB, frames(("train.py", 9, "step"), *TRAIN))
    return device


def cache_of_a_stream():
    device = Device()
    large = device.take(5 * GIB, frames(("data.py", 30, "copy_ahead"), *TRAIN), stream=7)
    device.take(2 * GIB, frames(("train.py", 3, "load"), *TRAIN))
    device.give(large, stream=7, back=False)
    device.fail(4 * GIB, 500 * MIB, frames(("train.py", 9, "step"), *TRAIN))
    return device


def blocks_that_are_not_split():
    """With max_split_size_mb a block may be 20 MiB larger than its request."""
    device = Device(max_split_size=20 * MIB)
    for _ in range(100):
        device.take(22 * MIB, frames(("train.py", 33, "gather"), *TRAIN), given=40 * MIB)
    device.fail(60 * MIB, 10 * MIB, frames(("train.py", 34, "gather"), *TRAIN))
    return device


def a_library_s_workspace():
    device = Device()
    load(device, GIB, 3)
    handle = {"filename": "??", "line": 0, "name": "at::cuda::getCurrentCUDABlasHandle()"}
    for _ in range(20):
        device.take(200 * MIB, [handle, *forward(40)])
    device.fail(200 * MIB, 50 * MIB, [handle, *forward(40)])
    return device


def no_room_at_all():
    device = Device()
    device.take(200 * MIB, frames(("train.py", 3, "load"), *TRAIN))
    device.fail(48 * GIB, 21 * GIB, frames(("train.py", 44, "all_pairs"), *TRAIN))
    return device


def a_library_of_a_program():
    """As recorded by `vram run`: libraries' requests to the driver, without an allocator in between."""
    device = Device(vram_run_process=4711, vram_device_0_total_bytes=8 * GIB)
    for i in range(12):
        device.event("alloc", device.next, 500 * MIB, frames(("solver.c", 90 + i % 2, "exchange")))
        device.events[-1]["user_metadata"] = "libnccl.so.2"
        device.next += GIB
    device.event("alloc", device.next, GIB, frames(("solver.c", 12, "read_mesh")))
    device.events[-1]["user_metadata"] = "solver"
    device.fail(2 * GIB, 600 * MIB, frames(("solver.c", 40, "assemble")))
    return device


def pinned_buffers_kept():
    """A loader that pins and frees a buffer for each batch, and a log that keeps one per step."""
    host = Host(vram_host_total_bytes=64 * GIB)
    for _ in range(40):
        inside = [host.take(100 * MIB, frames(("data.py", line, "pin"), *TRAIN)) for line in (11, 12, 13)]
        for address in inside:
            host.give(address)
        host.take(512 * MIB, frames(("train.py", 31, "remember"), *TRAIN))
    host.fail(100 * MIB, 90 * MIB, frames(("data.py", 11, "pin"), *TRAIN))
    return host


def pinned_all():
    host = Host(vram_host_total_bytes=64 * GIB)
    for _ in range(25):
        host.take(2 * GIB, frames(("offload.py", 40, "optimizer_to_host"), *TRAIN))
    host.fail(2 * GIB, GIB, frames(("offload.py", 40, "optimizer_to_host"), *TRAIN))
    return host


def pinned_with_others():
    host = Host(vram_host_total_bytes=64 * GIB)
    host.take(4 * GIB, frames(("data.py", 11, "pin"), *TRAIN))
    host.fail(2 * GIB, GIB, frames(("data.py", 12, "pin"), *TRAIN))
    return host


def pinned_in_a_container():
    host = Host(vram_host_total_bytes=512 * GIB)
    host.take(4 * GIB, frames(("data.py", 11, "pin"), *TRAIN))
    host.fail(2 * GIB, 300 * GIB, frames(("data.py", 12, "pin"), *TRAIN))
    return host


def pool_of_the_driver(maximum=False):
    """As `vram run` records cudaMallocAsync: what the pool reserves on the device, and what was requested from it."""
    device, pool = Device(vram_run_process=4711, vram_device_0_total_bytes=8 * GIB), 0x6800000000000000
    own = (77, 0) if maximum else (0, 0)
    for i in range(60):
        if i % 2 == 0:
            device.event("segment_map", pool + i // 2 * 200 * MIB, 200 * MIB, [])
        device.event("alloc", device.next + i * GIB, 100 * MIB, frames(("solver.cu", 90 + i % 2, "exchange" if i % 2 else "read_mesh")))
        device.events[-1].update(user_metadata="solver", category="async", pool_id=own)
    if not maximum:
        for i in range(0, 60, 2):
            for half in ("free_requested", "free_completed"):
                device.event(half, device.next + i * GIB, 100 * MIB, [])
    device.fail(GIB, 100 * MIB if not maximum else 2 * GIB, frames(("solver.cu", 40, "assemble")))
    device.events[-1]["pool_id"] = own
    return device


def pools_of_the_driver():
    return pool_of_the_driver()


def maximum_of_a_pool():
    return pool_of_the_driver(maximum=True)


MADE = [pinned_buffers_kept, pinned_all, pinned_with_others, pinned_in_a_container, pools_of_the_driver, maximum_of_a_pool, a_library_of_a_program, a_list_that_grows, few_blocks_in_the_way, another_process, a_fraction, pool_of_a_graph, waits_for_a_stream, cache_of_a_stream, blocks_that_are_not_split, a_library_s_workspace, no_room_at_all]

# name -> the cause's word in JSON, a regular expression for its first sentence, the name in or next to it, and the cure's verdict or the first
# remedy's name (None: not checked).
TABLE = {
    "a_list_that_grows": ("growth", r"a leak: 2\.5 GiB", "train.py:31:remember", "release"),
    "few_blocks_in_the_way": ("pinned", r"one small block of 24\.0 MiB splits it", "train.py:55:build_index", None),
    "another_process": ("outside", r"process 4711 \(trainer\) held", "trainer", None),
    "a_fraction": ("limit", r"a memory limit of the process: it may hold 20\.0 GiB", "train.py:3:load", None),
    "pool_of_a_graph": ("private_pools", r"6\.0 GiB was free, but in other pools \(CUDA graphs", "serve.py:20:capture", None),
    "waits_for_a_stream": ("pending", r"5\.0 GiB was freed, but was still waiting", "data.py:12:prefetch", None),
    "cache_of_a_stream": ("other_streams", r"5\.0 GiB was free, but in the caches of other streams", "data.py:30:copy_ahead", None),
    "blocks_that_are_not_split": ("full", r"blocks are 1\.8 GiB larger than", "train.py:33:gather", None),
    "a_library_s_workspace": ("full", r"workspaces hold 3\.9 GiB", "model.py:40:forward", None),
    "no_room_at_all": ("full", r"a single request of 48\.0 GiB exceeds", "train.py:44:all_pairs", None),
    "a_library_of_a_program": ("full", r"6\.9 GiB is in use, most allocated by solver\.c:9", "libnccl.so.2", None),
    "pinned_buffers_kept": ("growth", r"pinned host memory ran out, not the device's: a leak: 20\.0 GiB", "train.py:31:remember", None),
    "pinned_all": ("full", r"pinned host memory ran out, not the device's: 50\.0 GiB was pinned, and the system had 1\.0 GiB available, less than the 2\.0 GiB", "offload.py:40:optimizer_to_host", None),
    "pinned_with_others": ("outside", r"pinned host memory ran out, not the device's: other uses held 59\.0 GiB of the system's memory", "data.py:11:pin", None),
    "pinned_in_a_container": ("limit", r"pinned host memory ran out, not the device's: a limit on pinned memory refused the request: the system had 300\.0 GiB available, enough", "data.py:11:pin", None),
    "pools_of_the_driver": ("driver_pools", r"2\.9 GiB was free in the driver's own pools \(cudaMallocAsync\)", "solver.cu:91:exchange", None),
    "maximum_of_a_pool": ("limit", r"the pool's own maximum", "solver.cu:91:exchange", None),
    # The example that comes with the project.
    "oom": ("pinned", r"6\.9 GiB was free for the request", "serve_sim.c:38:grow_cache", "setting"),
    # Real PyTorch on the simulator.
    "activations": ("full", r"activations hold", "train.py:", "batch"),
    "growing_list": ("growth", r"a leak: ", "train.py:", "release"),
    "retained_graphs": ("growth", r"graphs of earlier steps are kept", "train.py:", "detach"),
    "validation": ("full", r"a forward pass without a backward pass keeps", "train.py:", "no_grad"),
    "optimizer_first_step": ("full", r"the optimizer was allocating its state in its first step", "train.py:", "optimizer_8bit"),
    "held_gradients": ("full", r"gradients stays live through the forward pass", "", "gradients_none"),
    "two_models": ("full", r"parameters hold .*make_teacher.* and .*make_student", "make_teacher", "sharding"),
    "key_values": ("full", r"KV cache holds", "init_kv_cache", "kv_cache"),
    "one_request": ("full", r"a single request of 4\.0 GiB", "attention_scores", None),
    "graph_pool": ("private_pools", r"was free, but in other pools", "graph_pool", None),
    "fraction": ("limit", r"a memory limit of the process refused it", "", None),
    # The same under `vram run`: pinned memory, and PyTorch's cudaMallocAsync (tests/real/programs/oom_pools.py).
    "pinned_limit": ("limit", r"pinned host memory ran out, not the device's: a limit on pinned memory refused the request: the system had", "train.py:", None),
    "pinned_request": ("full", r"pinned host memory ran out, not the device's: .* less than the 16\.0 TiB requested", "train.py:", None),
    "driver_pool_pieces": ("driver_pools", r"1\.4 GiB was free in the driver's own pools", "train.py:", None),
    "driver_pool_full": ("full", r"memory was full", "train.py:", None),
    # A real GPU.
    "091_Constructor-Sun_memory_snapshot": ("full", r"activations hold 78\.3 GiB of the 78\.3 GiB in use", "models.py:174:update_nodes", "recompute"),
}


def make_all(target, recordings):
    for maker in MADE:
        with gzip.GzipFile(os.path.join(target, maker.__name__ + ".pickle.gz"), "wb", 6, mtime=0) as file:
            pickle.dump(maker().recording(), file, 4)
    for folder in (os.path.join(HERE, "recordings"), os.path.join(HERE, "../../examples/recordings"), recordings):
        for name in sorted(os.listdir(folder)) if folder and os.path.isdir(folder) else []:
            if name.removesuffix(".gz").removesuffix(".pickle") in TABLE:
                shutil.copy(os.path.join(folder, name), target)


def named(target):
    return {name.removesuffix(".gz").removesuffix(".pickle"): os.path.join(target, name) for name in sorted(os.listdir(target)) if ".pickle" in name}


# --- outputs ------------------------------------------------------------------------------------------------------------------------------------


def run(vram, *arguments):
    return subprocess.run([vram, *arguments], capture_output=True, text=True, timeout=200, env={"COLUMNS": "4000", "LC_ALL": "C"})


def by_report(vram, path):
    return run(vram, "report", path).stdout


def by_json(vram, path):
    report = json.loads(run(vram, "report", "--json", path).stdout)
    places = [*report["devices"].values(), *([report["host"]] if "host" in report else [])]
    return next((device, report.get("cures", [])) for device in places if device["oom"])


def by_agent(vram, path):
    calls = [("initialize", {"protocolVersion": "2025-06-18"})] + [("tools/call", {"name": name, "arguments": {"file": path}}) for name in ("why", "cure")]
    lines = [json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}) for i, (method, params) in enumerate(calls)]
    answers = subprocess.run([vram, "mcp"], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=200).stdout.splitlines()
    for line in answers:
        assert len(line) <= 4096, len(line)
    return [json.loads(line)["result"]["content"][0]["text"] for line in answers[1:]]


def check(vram, name, path):
    cause, says, holder, cure = TABLE[name]
    text = " ".join(by_report(vram, path).split())
    device, cures = by_json(vram, path)
    told, demand = device["oom_causes"][-1], device["oom_causes"][-1].get("demand") or {"remedies": []}
    why, answer = by_agent(vram, path)
    first = re.search(r" why (.*?)(?= cure | try | help |$)", text)
    assert first and re.search(says, first[1]), f"the report says: {first and first[1]}"
    assert cause is None or told["cause"] == cause, f"cause {told['cause']}: {told['text']}"
    assert re.search(says, told["text"]), f"JSON says: {told['text']}"
    assert re.search(says, why), f"the agent is told: {why}"
    page = text[text.index(" requested on stream ") :].split("Reserved at the end")[0]
    assert holder in page, f"the report does not name {holder}"
    assert holder in why, f"the agent is not told of {holder}: {why}"
    assert holder in json.dumps(told), f"JSON does not name {holder}"
    if cure == "setting":
        # In `vram mcp` the search has a time limit, in which an emulated processor (tools/check_arm64.sh) may find nothing.
        late = "VRAM_TEST_EMULATED" in os.environ and "no setting was found within the time limit" in answer
        assert cures[0]["verdict"] == "setting" and (late or cures[0]["conf"] in answer) and cures[0]["conf"] in text, cures
    elif cure:
        assert demand["remedies"] and demand["remedies"][0]["remedy"] == cure, [item["remedy"] for item in demand["remedies"]]
        assert demand["remedies"][0]["text"] in text and demand["remedies"][0]["text"] in answer, answer


def check_ranks(vram, target):
    """One rank of four has more memory: the folder's report says which, and how much."""
    for rank in range(4):
        device = Device()
        for i in range(10):
            device.take((400 if rank == 2 else 300) * MIB, forward(11 + i))
        if rank == 2:
            device.fail(GIB, 100 * MIB, forward(30))
        with open(os.path.join(target, f"rank{rank}.pickle"), "wb") as file:
            pickle.dump(device.recording(), file, 4)
    text = " ".join(run(vram, "report", "--no-cure", target).stdout.split())
    assert "The highest and the lowest peak are 1000.0 MiB apart" in text and re.search(r"vram diff \S*rank0\.pickle \S*rank2\.pickle", text), text[-600:]


def main():
    if sys.argv[1] == "--make":
        os.makedirs(sys.argv[2], exist_ok=True)
        make_all(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
        paths = named(sys.argv[2])
        with open(os.path.join(sys.argv[2], "causes.json"), "w", encoding="utf-8") as file:
            json.dump([{"name": name, "path": path, "cause": TABLE[name][0], "says": TABLE[name][1], "holder": TABLE[name][2]} for name, path in paths.items()], file)
        return 0
    vram, wrong = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as target:
        make_all(target, sys.argv[2] if len(sys.argv) > 2 else None)
        paths = named(target)
        for name in TABLE:
            if name not in paths:
                print(f"{name}: absent, skipped")
                continue
            try:
                check(vram, name, paths[name])
            except (AssertionError, KeyError, ValueError) as error:
                wrong += 1
                print(f"{name}: {error}")
    with tempfile.TemporaryDirectory() as target:
        try:
            check_ranks(vram, target)
        except AssertionError as error:
            wrong += 1
            print(f"ranks: {error}")
    print(f"{len(paths)} recordings with a known cause, {wrong} named wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
