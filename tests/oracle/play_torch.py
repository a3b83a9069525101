"""Plays lists of operations on PyTorch's own allocator. oracle.py runs it under `vram sim`, with the Python of the PyTorch under test.

Reads file names from its input, one per line. Each is played in its own process (a fork, so that PyTorch is imported once), and FILE.torch
gets the operations with PyTorch's answers (format.md). Prints a line per file: its name, or `failed` and the reason."""
import ctypes
import gc
import inspect
import json
import os
import pickle
import queue
import sys
import threading
import traceback
import warnings

import torch

STREAMS = 4  # per device, including the default stream; the others are in the order of their handles
PTX = b""".version 6.0
.target sm_60
.address_size 64
.visible .entry work() { ret; }
"""
FAMILIES = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
            "requested_bytes")
SINGLE = ("oversize_allocations", "oversize_segments")
SCALARS = ("num_alloc_retries", "num_ooms", "max_split_size", "num_sync_all_streams", "num_device_alloc", "num_device_free",
           "num_oom_rejections")
ZERO = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
STATES = {"active_allocated": "live", "active_pending_free": "pending", "inactive": "free"}


class Worker(threading.Thread):
    """A thread that does one operation at a time, while the others wait."""

    def __init__(self):
        super().__init__(daemon=True)
        self.work, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        self.start()

    def run(self):
        while True:
            function, words = self.work.get()
            try:
                self.done.put((function(*words), None))
            except BaseException as failure:  # noqa: BLE001 - the caller of do() gets it
                self.done.put((None, failure))

    def do(self, function, words):
        self.work.put((function, words))
        answer, failure = self.done.get()
        if failure is not None:
            raise failure
        return answer


class Driver:
    """The simulated driver itself, for operations without a PyTorch function."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.functions = {}

    def work(self, device, stream):
        if device not in self.functions:
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), PTX))
            self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, b"work"))
            self.functions[device] = function
        self.check(self.cuda.cuLaunchKernel(self.functions[device], 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(stream), None, None))

    @staticmethod
    def check(result):
        if result != 0:
            raise RuntimeError(f"the driver says {result}")


def set_options(conf):
    if hasattr(torch._C, "_accelerator_setAllocatorSettings"):
        torch._C._accelerator_setAllocatorSettings(conf)
    else:
        torch.cuda.memory._set_allocator_settings(conf)


def record_history(entries=1 << 22):
    """Forgets the events recorded so far."""
    if "clear_history" in inspect.signature(torch.cuda.memory._record_memory_history_impl).parameters:
        torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=entries, clear_history=True)
    else:  # older versions clear it themselves
        torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=entries)


class Play:
    def __init__(self, head, source):
        self.source, self.entries = source, 1 << 22
        os.environ["VRAM_SIM"] = head["sim"]
        self.devices = int(head.get("devices", "1"))
        if head.get("conf"):
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = head["conf"]
        torch.cuda.init()
        if head.get("conf"):
            set_options(head["conf"])
        record_history()
        self.driver = Driver()
        self.streams = []
        for device in range(self.devices):
            own = sorted((torch.cuda.Stream(device=device) for _ in range(STREAMS - 1)), key=lambda stream: stream.cuda_stream)
            self.streams.append([torch.cuda.default_stream(device), *own])
        self.stream_numbers = [{stream.cuda_stream: i for i, stream in enumerate(streams)} for streams in self.streams]
        self.blocks, self.graphs, self.pools, self.pool_names, self.keep = {}, {}, {}, {(0, 0): 0}, []
        self.pinned, self.pinned_names, self.captured = {}, {}, {}
        self.next_place, self.open = 0, {}
        self.routes, self.checkpoints, self.known_stats = {}, {}, [{} for _ in range(self.devices)]
        self.current = {}
        torch.cuda.set_stream(self.streams[0][0])

    # --- operations: words of the line -> the answer, or None ---------------------------------------------------------------------------
    def stream(self, device, stream):
        torch.cuda.set_stream(self.streams[int(device)][int(stream)])

    def malloc(self, name, size):
        try:
            block = torch.empty(int(size), dtype=torch.uint8, device=torch.device("cuda", torch.cuda.current_device()))
        except torch.OutOfMemoryError as failure:
            failure.__traceback__ = None
            return "OOM"
        self.blocks[name] = block
        return f"{block.data_ptr():x}"

    def free(self, name):
        self.blocks.pop(name, None)

    def record(self, name, stream):
        block = self.blocks.get(name)
        if block is not None:
            block.record_stream(self.streams[block.device.index][int(stream)])

    def empty(self):
        torch.cuda.empty_cache()

    def wait(self, device, stream):
        self.streams[int(device)][int(stream)].synchronize()

    def sync(self):
        for device in range(self.devices):
            torch.cuda.synchronize(device)

    def work(self):
        stream = torch.cuda.current_stream()
        self.driver.work(stream.device_index, stream.cuda_stream)

    def fork(self, stream):
        here = torch.cuda.current_stream()
        event = torch.cuda.Event()
        event.record(here)
        self.streams[here.device_index][int(stream)].wait_event(event)

    def join(self, stream):
        here = torch.cuda.current_stream()
        event = torch.cuda.Event()
        event.record(self.streams[here.device_index][int(stream)])
        here.wait_event(event)

    def generator(self, _=None):
        """Measures how many blocks of 8 bytes the first capture of a device allocates for its random numbers."""
        counts = [torch.cuda.memory_stats().get("allocation.all.allocated", 0)]
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(capture_error_mode="relaxed")
        graph.capture_end()
        self.keep.append(graph)
        counts.append(torch.cuda.memory_stats().get("allocation.all.allocated", 0))
        return str(counts[1] - counts[0])

    def capture(self, graph, pool):
        self.graphs[graph] = torch.cuda.CUDAGraph()
        shared = {"pool": self.pools[pool]} if pool in self.pools else {}
        self.graphs[graph].capture_begin(capture_error_mode="relaxed", **shared)
        self.captured[graph] = pool

    def endcapture(self, graph):
        self.graphs[graph].capture_end()
        pool = self.captured[graph]
        self.pools[pool] = self.graphs[graph].pool()
        self.pool_names[tuple(self.pools[pool])] = int(pool)

    def dropgraph(self, graph):
        self.graphs.pop(graph).reset()

    def pool(self, name, *options):
        made = torch.cuda.MemPool(**{option: True for option in options})
        self.pools[name], self.pool_names[tuple(made.id)] = made.id, int(name)
        self.routes[name] = made

    def droppool(self, name):
        del self.routes[name]

    def use(self, name):
        self.open[name] = torch.cuda.use_mem_pool(self.routes[name])
        self.open[name].__enter__()

    def unuse(self, name):
        self.open.pop(name).__exit__(None, None, None)

    def conf(self, text=""):
        set_options(text)

    def fraction(self, device, share):
        here = torch.cuda.current_device()
        torch.cuda.set_per_process_memory_fraction(float(share), int(device))
        torch.cuda.set_device(here)  # 2.6 leaves the other device current

    def peaks(self, device):
        torch.cuda.reset_peak_memory_stats(int(device))

    def sums(self, device):
        torch.cuda.reset_accumulated_memory_stats(int(device))

    # --- pinned memory -------------------------------------------------------------------------------------------------------------------
    def pin(self, name, size):
        block = torch.empty(int(size), dtype=torch.uint8, pin_memory=True)
        self.pinned[name] = block
        if block.data_ptr() not in self.pinned_names:
            self.pinned_names[block.data_ptr()] = self.next_place
            self.next_place += 1
        return str(self.pinned_names[block.data_ptr()])

    def unpin(self, name):
        self.pinned.pop(name, None)

    def pinuse(self, name, block):
        if block in self.blocks and name in self.pinned:
            count = min(self.pinned[name].numel(), self.blocks[block].numel())
            self.blocks[block][:count].copy_(self.pinned[name][:count], non_blocking=True)

    def pinempty(self):
        torch._C._host_emptyCache()
        live = {block.data_ptr() for block in self.pinned.values()}  # the host may reuse addresses for other blocks
        self.pinned_names = {address: name for address, name in self.pinned_names.items() if address in live}

    # --- recordings (rings.py) -----------------------------------------------------------------------------------------------------------
    def history(self, entries):
        self.entries = int(entries)
        record_history(self.entries)
        for device in range(self.devices):
            torch.cuda.reset_peak_memory_stats(device)

    def snapshot(self, name):
        """Writes SOURCE.NAME.pickle, and SOURCE.NAME.json with the statistics at that moment and the length of the ring."""
        statistics = [{key: now[key] for key in FAMILIES} for now in map(torch._C._cuda_memoryStats, range(self.devices))]
        snapshot = torch.cuda.memory._snapshot()
        with open(f"{self.source}.{name}.pickle", "wb") as file:
            pickle.dump(snapshot, file)
        with open(f"{self.source}.{name}.json", "w") as file:
            json.dump([statistics, self.entries], file)

    # --- pictures ------------------------------------------------------------------------------------------------------------------------
    def stats(self):
        lines = []
        for device in range(self.devices):
            now, known, words = torch._C._cuda_memoryStats(device), self.known_stats[device], []
            for key in FAMILIES:
                if now.get(key) == known.get(key):
                    continue
                for pool in ("all", "small_pool", "large_pool"):
                    words += self.row(f"{key}.{pool}", now[key][pool], known.get(key, {}).get(pool, ZERO))
            for key in SINGLE:
                words += self.row(key, now[key], known.get(key, ZERO))
            words += [f"{key}={now[key]}" for key in SCALARS if now.get(key, 0) != known.get(key, 0)]
            self.known_stats[device] = now
            lines += [f"stat {device} {word}" for word in words]
        return lines

    @staticmethod
    def row(name, now, known):
        return [] if now == known else [f"{name}={now['current']},{now['peak']},{now['allocated']},{now['freed']}"]

    def name_of_pool(self, identity):
        return self.pool_names.get(tuple(identity), -1)

    def map(self):
        lines = []
        for segment in sorted(torch.cuda.memory._snapshot()["segments"], key=lambda segment: (segment["device"], segment["address"])):
            device, address = segment["device"], segment["address"]
            kind = f"{self.stream_numbers[device].get(segment['stream'], -1)} {self.name_of_pool(segment['segment_pool_id'])} " \
                   f"{segment['segment_type']}{' expandable' if segment.get('is_expandable') else ''}"
            for block in segment["blocks"]:
                state = STATES[block["state"]]
                asked = 0 if state == "free" else block["requested_size"]
                lines.append(f"block {device} {address:x} {block['size']} {state} {asked} {kind}")
                address += block["size"]
        return lines

    def events(self):
        lines = []
        for device, trace in enumerate(torch.cuda.memory._snapshot()["device_traces"]):
            for event in trace:
                if event["action"] in ("snapshot", "user_defined"):
                    continue
                address = event["device_free"] if event["action"] == "oom" else event["addr"]
                pool = f" {self.name_of_pool(event['pool_id'])}" if "pool_id" in event else ""
                number = self.stream_numbers[device].get(event["stream"], -1)
                lines.append(f"event {device} {event['action']} {address:x} {event['size']} {number}{pool}")
        return lines


def play(source):
    lines = open(source).read().splitlines()
    head = dict(line[2:].split(" ", 1) if " " in line[2:] else (line[2:], "") for line in lines if line.startswith("# "))
    head["torch"] = torch.__version__.split("+")[0]
    state, thread, workers = Play(head, source), "0", {}
    out = [f"# {key} {value}".rstrip() for key, value in head.items()]
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        line = line.split(" = ")[0]
        word, *rest = line.split()
        if word == "thread":
            thread = rest[0]
            out.append(line)
            continue
        function = getattr(state, word)
        try:
            if thread == "0":
                answer = function(*rest)
            else:
                workers[thread] = workers.get(thread) or Worker()
                answer = workers[thread].do(function, rest)
        except Exception as failure:  # noqa: BLE001 - part of the answer
            failure.__traceback__ = None
            answer = "error " + (str(failure).splitlines() or ["?"])[0][:120]
        if isinstance(answer, list):
            out += [line, *answer]
        else:
            out.append(line if answer is None else f"{line} = {answer}")
    with open(source + ".torch", "w") as file:
        file.write("\n".join(out) + "\n")
    os._exit(0)  # before the play's objects are destroyed: older versions abort at the end of a pool in use


def main():
    warnings.simplefilter("ignore")
    gc.disable()
    for line in sys.stdin:
        source = line.strip()
        child = os.fork()
        if child == 0:
            try:
                play(source)
            except BaseException:  # noqa: BLE001 - the parent continues with the next file
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        print(source if status == 0 else f"failed {status}", flush=True)


main()
