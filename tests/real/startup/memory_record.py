"""What PyTorch says of its memory when a process ends: history, state and counters, into $VRAM_REAL_MEMORY, for same_memory.py.

Recorded is what every process that initialises CUDA does; a process is known by its name and rank."""
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
    # Python collects garbage, and tensors in it, by counts of objects, to which vram's modules add: from here on they are the same.
    gc.collect()
    gc.freeze()
    gc.collect()
    # The end of an autocast region frees what it had cast in the order of a hash of host addresses, another one in each run.
    torch.set_autocast_cache_enabled(False)

    def record():
        pinned = {"record_pinned_host_memory": True} if os.environ.get("VRAM_REAL_PINNED") else {}
        torch.cuda.memory._record_memory_history(max_entries=2_000_000, stacks="python", **pinned)
        # At the end of a worker of multiprocessing, too, which runs no handlers of atexit.
        multiprocessing.util.Finalize(None, end, exitpriority=1000)

    def end():
        if os.getpid() == process:
            _write(torch, folder)

    torch.cuda._lazy_call(record)
    atexit.register(end)
