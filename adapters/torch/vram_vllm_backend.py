"""The back end that vram_vllm registers. vLLM's get_mem_allocator_instance() then returns vram's CuMemAllocator."""
import gc
import os

import torch
import vram_cumem
import vram_torch
from vllm.device_allocator.cumem import CuMemAllocator
from vllm.device_allocator.sleep_mode_backend import SleepModeBackend

_whole = False  # whether all of the worker's memory can sleep, not only what has a tag


def begin(config):
    """Makes vram the worker's allocator. Call it before the worker uses its device.

    A worker that is alone makes all of its memory of pages, so that graphs, workspaces and buffers sleep too. Ranks of one model map each
    other's buffers, and the driver cannot share pages that sleep; there only what has a tag sleeps.
    """
    global _whole
    _whole = config.parallel_config.world_size == 1
    vram_torch.enable(conf=_with_pages() if _whole else None)
    CuMemAllocator.instance = vram_cumem.CuMemAllocator.get_instance()


def _with_pages():
    given = next((os.environ[name] for name in vram_torch.OPTION_VARIABLES if name in os.environ), "")
    return ",".join(filter(None, [given.strip(" ,"), "sleepable:True"]))


class VramBackend(SleepModeBackend):
    """Suspends weights, cache and, if the worker is alone, everything else that PyTorch allocated, at unchanged addresses."""

    def suspend(self, level=1):
        gc.collect()
        lost = ("kv_cache",) if level == 1 else ("kv_cache", "weights")
        vram_torch.sleep({tag: "discard" if tag in lost else "keep" for tag in vram_torch.tags_of()})
        if _whole:
            vram_torch.sleep({None: "keep"}, on_request="wake")
        else:
            vram_torch.empty_cache()
        self._state = "SUSPENDED"

    def resume(self, tags=None):
        self._state = "RESUMING"
        vram_cumem.CuMemAllocator.get_instance().wake_up(tags)
        vram_torch.wake_untagged()
        self._state = "SUSPENDED" if vram_torch.sleepers() else "RUNNING"

    def discard(self, tags):
        vram_cumem.CuMemAllocator.get_instance().discard(tags)
        self._state = "SUSPENDED"

    @classmethod
    def is_supported(cls):
        return vram_torch.is_enabled() or not torch.cuda.is_initialized()

    @classmethod
    def preserves_communicators(cls):
        return True  # they are not touched

    @classmethod
    def preserves_compiled_artifacts(cls):
        return True  # the process and its context stay

    @classmethod
    def preserves_graphs_with_communicators(cls):
        return True  # addresses and communicators stay

    @classmethod
    def supports_durable_storage(cls):
        return False
