"""A fake PyTorch with the parts that adapters/fit uses. It only keeps counts: a tensor is a number of bytes on a device, and the allocator makes one
segment per block."""
import ctypes
import itertools
import os
import pickle  # noqa: F401
import sys
import threading
import time
import types

__version__ = "0.0.fake"
MIB = 1 << 20
_queued, _live, _trace, _clock = [], {}, [], itertools.count(0x700000000000, 64 * MIB)
_stats = {"allocations": 0, "requested": 0, "bytes": 0, "live": 0, "peak": 0, "ooms": 0}
_recording, _idle = [], {}


def _keeps():
    """Segments stay and serve nothing else: FAKE_IDLE MiB at most."""
    return "FAKE_IDLE" in os.environ


def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=0):
    _recording.append((enabled, context, stacks, max_entries))


def _entry(action, address, size):
    frame = sys._getframe(2)
    frames = [{"filename": frame.f_code.co_filename, "line": frame.f_lineno, "name": frame.f_code.co_name}]
    _trace.append({"action": action, "addr": address, "size": size, "stream": 0, "frames": frames, "time_us": time.time_ns() // 1000})


def _start():
    if not cuda.initialized:
        cuda.initialized = True
        for function in _queued:
            function()


def empty(size):
    _start()
    size = (size + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
    limit = int(os.environ.get("FAKE_MEMORY", "0"))
    if limit and _stats["live"] + size > limit:
        _stats["ooms"] += 1
        frames = [{"filename": __file__, "line": 1, "name": "empty"}]
        _trace.append({"action": "oom", "device_free": 0, "size": size, "stream": 0, "frames": frames, "time_us": time.time_ns() // 1000})
        raise MemoryError("CUDA out of memory")
    if os.environ.get("FAKE_KERNELS") and not os.environ.get("FAKE_RUNS") and cuda.get_device_capability(0) != (9, 0):
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
    address = next(_clock)
    _entry("segment_alloc", address, size)
    _entry("alloc", address, size)
    _live[address] = size
    _stats["allocations"] += 1
    _stats["requested"] += size
    # As if a larger free block were not split, for every other block.
    _stats["bytes"] += size + int(os.environ.get("FAKE_REMAINDER", "0")) * (_stats["allocations"] % 2)
    _stats["live"] += size
    _stats["peak"] = max(_stats["peak"], _stats["live"])
    return address


def free(address):
    size = _live.pop(address)
    for action in ("free_requested", "free_completed", "segment_free")[: 2 if _keeps() else 3]:
        _entry(action, address, size)
    if _keeps():
        _idle[address] = size
    _stats["live"] -= size


def _nested(device):
    if device or not cuda.initialized:
        return {}
    requested = {"current": _stats["live"], "peak": _stats["peak"], "allocated": _stats["requested"]}
    every = {"current": _stats["live"], "peak": _stats["peak"], "allocated": _stats["bytes"]}
    idle = int(os.environ.get("FAKE_IDLE", "0")) * MIB  # in segments without blocks
    held = {name: every[name] + idle for name in every}
    segments = 0 if "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") else _stats["allocations"]  # as PyTorch counts them
    return {"segment": {"all": {"allocated": segments}}, "allocation": {"all": {"allocated": _stats["allocations"]}},
            "allocated_bytes": {"all": every}, "requested_bytes": {"all": requested}, "reserved_bytes": {"all": held}, "num_ooms": _stats["ooms"], "num_alloc_retries": 0}


def _snapshot():
    segments = []
    for address, size in (*_live.items(), *_idle.items()):
        used = size if address in _live else 0
        block = {"address": address, "size": size, "requested_size": size, "state": "active_allocated" if used else "inactive", "frames": []}
        segments.append({"device": 0, "address": address, "total_size": size, "allocated_size": used, "active_size": used, "stream": 0,
                         "requested_size": used, "segment_type": "large", "blocks": [block], "is_expandable": False, "segment_pool_id": (0, 0)})
    return {"segments": segments, "device_traces": [list(_trace)], "allocator_settings": {}, "external_annotations": []}


def mem_get_info(device=None):
    _start()
    return 70 << 30, 80 << 30


def reset_peak_memory_stats():
    _stats["peak"] = _stats["live"]


def _capability(device):
    number = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDeviceGetAttribute(ctypes.byref(number), 75, device)
    return number.value, 0


def _lazy_call(function):
    function() if cuda.initialized else _queued.append(function)


cuda = types.SimpleNamespace(initialized=False, _lazy_call=_lazy_call, is_initialized=lambda: cuda.initialized, device_count=lambda: 1,
                             get_arch_list=lambda: os.environ.get("FAKE_KERNELS", "").split(), get_device_capability=_capability,
                             memory_stats_as_nested_dict=_nested,
                             mem_get_info=mem_get_info,
                             memory=types.SimpleNamespace(mem_get_info=mem_get_info, _record_memory_history=_record_memory_history, _snapshot=_snapshot,
                                                          reset_peak_memory_stats=reset_peak_memory_stats),
                             reset_peak_memory_stats=reset_peak_memory_stats)


def _init_process_group(backend=None, rank=-1, world_size=-1):
    """Waits until each rank that runs has made a file in the folder FAKE_STORE."""
    rank, count = rank if rank >= 0 else int(os.environ["RANK"]), world_size if world_size > 0 else int(os.environ["WORLD_SIZE"])
    if "VRAM_SIM_RANKS" in os.environ:
        count = len(os.environ["VRAM_SIM_RANKS"].split(","))
    with open(os.path.join(os.environ["FAKE_STORE"], f"rank{rank}"), "w"):
        pass
    while len([name for name in os.listdir(os.environ["FAKE_STORE"]) if name.startswith("rank")]) < count:
        time.sleep(0.01)


distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: False, init_process_group=_init_process_group)


class Module:
    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


nn = types.SimpleNamespace(Module=Module)


def load(path):
    with open(path, "rb") as file:
        return file.read()


def _engine_run_backward(*sizes):
    """Runs on its own thread and without a stack, as in PyTorch; the gradients come after something that is live meanwhile."""
    def run():
        before = len(_trace)
        passing = empty(32 * MIB)
        made.extend(empty(size) for size in sizes)
        free(passing)
        for entry in _trace[before:]:
            entry["frames"] = []

    made = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return made


autograd = types.SimpleNamespace(_engine_run_backward=_engine_run_backward)


_hooks = []
optimizer = types.ModuleType("torch.optim.optimizer")
optimizer.register_optimizer_step_post_hook = _hooks.append
sys.modules["torch.optim.optimizer"] = optimizer


class Optimizer:
    def step(self):
        for hook in _hooks:
            hook(self, (), {})


optimizer.Optimizer = Optimizer
