"""torch_memory_saver with vram: use `from vram_memory_saver import torch_memory_saver` instead of `from torch_memory_saver import
torch_memory_saver`. Nothing is preloaded, and expandable segments may be on. See docs/guides/sleep.md.
"""
import contextlib
import os

import vram_torch

__all__ = ["TorchMemorySaver", "configure_subprocess", "torch_memory_saver"]

_DEFAULT = "default"
_LEVELS = {True: "keep", False: "discard"}  # by enable_cpu_backup


def _pool_tag(tag, backup):
    return f"{tag}/{_LEVELS[backup]}"


class TorchMemorySaver:
    """The process's one object, torch_memory_saver. Behaves like the original unless stated otherwise."""

    def __init__(self):
        self._regions = {}  # tag -> set of enable_cpu_backup

    def _enable(self):
        vram_torch.enable()

    @contextlib.contextmanager
    def region(self, tag=_DEFAULT, enable_cpu_backup=False, enable_disk_backup=False, cpu_backup_backend=None):
        """Tensors created inside can be paused under this tag. With enable_cpu_backup their bytes are kept in the host's pinned memory."""
        _check(enable_cpu_backup, enable_disk_backup, cpu_backup_backend)
        self._enable()
        self._regions.setdefault(tag, set()).add(bool(enable_cpu_backup))
        with vram_torch.tagged(_pool_tag(tag, bool(enable_cpu_backup))):
            yield

    @contextlib.contextmanager
    def cuda_graph(self, cuda_graph, pool=None, stream=None, capture_error_mode="global", tag=_DEFAULT, enable_cpu_backup=False,
                   cpu_backup_backend=None):
        """torch.cuda.graph() with memory that can be paused, from a pool with the tag. `pool` must be a torch.cuda.MemPool, or None."""
        import torch

        _check(enable_cpu_backup, False, cpu_backup_backend)
        self._enable()
        if pool is None:
            pool = torch.cuda.MemPool()
            self._graph_pools = [*getattr(self, "_graph_pools", ()), pool]
        self._regions.setdefault(tag, set()).add(bool(enable_cpu_backup))
        vram_torch.tag_pool(pool, _pool_tag(tag, bool(enable_cpu_backup)))
        with torch.cuda.graph(cuda_graph, pool=pool.id, stream=stream, capture_error_mode=capture_error_mode):
            yield

    @contextlib.contextmanager
    def disable(self, dispose_mem_pool_after_use=True):
        """Within a region: tensors created here are not paused."""
        del dispose_mem_pool_after_use
        self._enable()
        with vram_torch.untagged():
            yield

    def _tags(self, tag):
        if tag is not None and tag not in self._regions:
            return []
        wanted = self._regions if tag is None else {tag: self._regions[tag]}
        return [(_pool_tag(name, backup), _LEVELS[backup]) for name, backups in wanted.items() for backup in sorted(backups)]

    def pause(self, tag=None):
        """Releases the memory of a tag, or of all, to the driver. Ignores unknown tags, like the original."""
        self._enable()
        levels = dict(self._tags(tag))
        if levels:
            vram_torch.sleep(levels)

    def resume(self, tag=None):
        """Restores memory at the same addresses."""
        self._enable()
        tags = [name for name, _ in self._tags(tag)]
        if tags:
            vram_torch.wake(tags)

    @property
    def enabled(self):
        return True

    @property
    def hook_mode(self):
        raise AttributeError("hook_mode is write-only")

    @hook_mode.setter
    def hook_mode(self, hook_mode):
        if hook_mode not in ("preload", "torch"):
            raise ValueError(f"invalid hook_mode {hook_mode!r}; expected preload or torch")  # both are equivalent here

    @property
    def memory_margin_bytes(self):
        raise NotImplementedError("memory_margin_bytes is write-only")

    @memory_margin_bytes.setter
    def memory_margin_bytes(self, value):
        import torch

        self._enable()
        total = vram_torch.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction(max(0.0, 1 - value / total))

    @property
    def retain_cpu_backup(self):
        return False

    @retain_cpu_backup.setter
    def retain_cpu_backup(self, value):
        if value:
            raise NotImplementedError("vram frees the host's copy when memory wakes")

    def get_cpu_backup(self, x, zero_copy=False):
        """Returns the bytes of a paused tensor as a CPU tensor, a copy even with zero_copy; None if they are not kept."""
        import torch

        del zero_copy
        assert x.is_cuda and x.is_contiguous(), f"{x.device=} {x.shape=} {x.stride()=}"
        try:
            data = vram_torch.allocator().kept(x.data_ptr(), x.nbytes)
        except vram_torch.Error:
            return None
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(x.dtype).view(x.shape)

    def set_disk_backup_dir(self, path):
        raise NotImplementedError(f"vram keeps suspended bytes in host memory, not on disk ({path})")


def _check(enable_cpu_backup, enable_disk_backup, cpu_backup_backend):
    if enable_disk_backup:
        raise NotImplementedError("vram keeps suspended bytes in host memory, not on disk")
    if cpu_backup_backend is not None and not enable_cpu_backup:
        raise ValueError("cpu_backup_backend requires enable_cpu_backup=True")
    if cpu_backup_backend not in (None, "pinned"):
        raise NotImplementedError(f"vram supports only the cpu_backup_backend 'pinned', not {cpu_backup_backend!r}")


@contextlib.contextmanager
def configure_subprocess():
    """Does nothing: processes started inside need no preloaded library."""
    yield os.environ


torch_memory_saver = TorchMemorySaver()
