"""vLLM's sleep mode with vram: use `from vram_cumem import CuMemAllocator` instead of `from vllm.device_allocator.cumem import
CuMemAllocator`. Expandable segments may be on. See docs/guides/sleep.md.
"""
import contextlib
import gc

import vram_torch

__all__ = ["CuMemAllocator", "cumem_available"]

cumem_available = True
DEFERRABLE_TAGS = ("weights", "kv_cache")  # as in vLLM: wake_up(tags) always wakes all others


class CuMemAllocator:
    """The process's one object: get_instance(). Behaves like vLLM's unless stated otherwise."""

    instance = None
    default_tag = "default"

    @staticmethod
    def get_instance():
        if CuMemAllocator.instance is None:
            vram_torch.enable()
            CuMemAllocator.instance = CuMemAllocator()
        return CuMemAllocator.instance

    def __init__(self):
        self.current_tag = CuMemAllocator.default_tag
        self._graph_pool = None

    @contextlib.contextmanager
    def use_memory_pool(self, tag=None):
        """Gives tensors created inside this tag."""
        tag = CuMemAllocator.default_tag if tag is None else tag
        assert isinstance(tag, str)
        before, self.current_tag = self.current_tag, tag
        try:
            with vram_torch.tagged(tag):
                yield
        finally:
            self.current_tag = before

    @contextlib.contextmanager
    def cudagraph_pool(self):
        """Returns the id of a pool for torch.cuda.graph(), suspended with the tag "cudagraph"."""
        import torch

        if self._graph_pool is None:
            self._graph_pool = torch.cuda.MemPool()
            vram_torch.tag_pool(self._graph_pool, "cudagraph")
        before, self.current_tag = self.current_tag, "cudagraph"
        try:
            yield self._graph_pool.id
        finally:
            self.current_tag = before

    def sleep(self, offload_tags=None):
        """Suspends all tags. Moves the bytes of `offload_tags` (default: the default tag) to the host and discards the others."""
        if offload_tags is None:
            offload_tags = (CuMemAllocator.default_tag,)
        elif isinstance(offload_tags, str):
            offload_tags = (offload_tags,)
        assert isinstance(offload_tags, tuple)
        gc.collect()
        levels = {tag: "keep" if tag in offload_tags else "discard" for tag in vram_torch.tags_of()}
        if levels:
            vram_torch.sleep(levels)
        vram_torch.empty_cache()

    def discard(self, tags):
        """Suspends these tags and discards their bytes."""
        tags = (tags,) if isinstance(tags, str) else tuple(tags)
        levels = {tag: "discard" for tag in vram_torch.tags_of() if tag in tags}
        if levels:
            vram_torch.sleep(levels)

    def wake_up(self, tags=None):
        """Resumes these tags and, in any case, all except "weights" and "kv_cache"; None resumes everything."""
        gc.collect()
        vram_torch.empty_cache()
        asleep = [sleeper.tag for sleeper in vram_torch.sleepers()]
        wanted = [tag for tag in asleep if tag and (tags is None or tag in tags or tag not in DEFERRABLE_TAGS)]
        if wanted:
            vram_torch.wake(list(dict.fromkeys(wanted)))

    def get_current_usage(self):
        """Returns the bytes in the pools of all tags, suspended or not."""
        made = vram_torch.allocator()
        held = 0
        for number in vram_torch.tagged_devices():
            for tag in vram_torch.tags_of(number):
                with contextlib.suppress(vram_torch.Error):  # of a graph's pool
                    held += made.tag_bytes(tag, number)
        return held + sum(sleeper.away_bytes for sleeper in vram_torch.sleepers())

    def release_pools(self):
        """Releases the pool for graphs."""
        self._graph_pool = None

    def close(self):
        self.release_pools()
