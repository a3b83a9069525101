"""Writes what PyTorch reports about its memory at the end of a process (history, state and counters) into $VRAM_REAL_MEMORY, for
same_memory.py. Every process that initializes CUDA is recorded, under its name and rank."""
import atexit
import gc
import json
import multiprocessing
import os
import pickle


def _name():
    return "-".join([multiprocessing.current_process().name, os.environ.get("RANK", "0")])


def _write(torch, folder):
    if not torch.cuda.is_initialized():
        return
    devices = range(torch.cuda.device_count())
    stats = [torch.cuda.memory_stats(device) for device in devices]
    host = torch.cuda.host_memory_stats() if hasattr(torch.cuda, "host_memory_stats") else {}
    snapshot = torch.cuda.memory._snapshot()
    with open(os.path.join(folder, _name() + ".json"), "w") as file:
        json.dump({"stats": stats, "host": {key: value for key, value in host.items() if "time" not in key}}, file)
    with open(os.path.join(folder, _name() + ".pickle"), "wb") as file:
        pickle.dump(snapshot, file)


def begin(torch, folder):
    process = os.getpid()
    # Python's garbage collector, which also frees tensors, runs by counts of objects. vram's modules add objects; from here on the counts
    # are equal.
    gc.collect()
    gc.freeze()
    gc.collect()
    # The end of an autocast region frees its casts in the order of a hash of host addresses, which differs in each run.
    torch.set_autocast_cache_enabled(False)

    def record():
        pinned = {"record_pinned_host_memory": True} if os.environ.get("VRAM_REAL_PINNED") else {}
        torch.cuda.memory._record_memory_history(max_entries=2_000_000, stacks="python", **pinned)
        # Also at the end of a multiprocessing worker, which does not run atexit handlers.
        multiprocessing.util.Finalize(None, end, exitpriority=1000)

    def end():
        if os.getpid() == process:
            _write(torch, folder)

    torch.cuda._lazy_call(record)
    atexit.register(end)
