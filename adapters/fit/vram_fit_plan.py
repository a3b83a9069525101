"""Keeps an engine's plan for its next start, for `vram fit --write-plan`. The command takes the files from the folder `plan` of the run.

vLLM: its start-up plan, and its option for the size of the cache. vLLM's own code writes the plan, in each of its workers, after all requests
were served. SGLang: its options for the share of the device and for the sizes of its graphs.

vLLM's plan has the cache's bytes of this run, and the free memory that a device must have. The free memory is what the engine asked for (the
share gpu_memory_utilization), which vLLM itself requires at its start. It is less than the memory that was free here, because a real device
may have a few MiB less."""
import contextlib
import copy
import functools
import os

import _vram_shared as shared

FOLDER, OPTIONS = "plan", "options"


@contextlib.contextmanager
def replaced(owner, **values):
    """Sets attributes for a while. Those that did not exist are removed again."""
    before = {name: vars(owner)[name] for name in values if name in vars(owner)}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name in values:
            delattr(owner, name)
        for name, value in before.items():
            setattr(owner, name, value)


def save_in_worker(worker, folder, cache_bytes):
    """Called in each worker of vLLM. Returns whether a plan was written."""
    try:
        from vllm.v1.worker import startup_plan
    except ImportError:
        return False  # before 0.33
    snapshot = copy.copy(worker.init_snapshot)
    snapshot.free_memory = int(worker.requested_memory)
    with replaced(startup_plan.envs, VLLM_ENABLE_STARTUP_PLAN=True, VLLM_CACHE_ROOT=folder), replaced(worker, init_snapshot=snapshot):
        startup_plan.maybe_save_startup_plan(worker, cache_bytes)
    return True


def write_vllm(core, folder):
    """Called in vLLM's engine core."""
    folder = os.path.join(folder, FOLDER)
    os.makedirs(folder, exist_ok=True)
    cache_bytes = sum(each.size for each in core.scheduler.kv_cache_config.kv_cache_tensors)
    core.model_executor.collective_rpc(save_in_worker, args=(folder, cache_bytes))
    with open(os.path.join(folder, OPTIONS), "w", encoding="ascii") as file:
        file.write(f"--kv-cache-memory-bytes {cache_bytes}\n")


def sglang_options(arguments):
    """Returns the options that SGLang settled at this start: the share of the device, and the batches for which it captured graphs."""
    setting = functools.partial(shared.part("vram_fit_engines").sglang_setting, arguments)
    options, graphs = [f"--mem-fraction-static {setting('mem_fraction_static')}"], setting("cuda_graph_config")
    sizes = setting("cuda_graph_bs") if graphs is None else graphs.decode.bs
    if sizes and not setting("disable_cuda_graph"):
        options.append(" ".join(["--cuda-graph-bs" if graphs is None else "--cuda-graph-bs-decode", *map(str, sizes)]))
    return " ".join(options)


def write_sglang(scheduler, folder):
    """Called in SGLang's scheduler."""
    folder = os.path.join(folder, FOLDER)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, OPTIONS), "w", encoding="ascii") as file:
        file.write(sglang_options(scheduler.server_args) + "\n")
