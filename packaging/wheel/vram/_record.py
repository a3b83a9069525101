"""Records PyTorch's allocations in a block of this program."""
import os
import tempfile

from ._recording import open as open_recording
from ._report import report, show

MOST_EVENTS = 1_000_000


class Recorded:
    """The result of vram.record(). After the block, .path is the recording, and .peak_bytes the most bytes allocated, by device."""

    def __init__(self, path):
        self.path, self.peak_bytes = path, {}

    def open(self):
        return open_recording(self.path)

    def report(self, *options):
        return report(self.path, *options)

    def show(self, **options):
        return show(self.path, **options)


class record:
    """Used as `with vram.record("step.pickle") as recorded: ...`. Writes a recording of PyTorch's allocations in the block when it ends,
    even if it fails. Without a path, writes a new file in the temporary folder. Record programs without PyTorch from outside: `vram run
    -- PROGRAM`."""

    def __init__(self, path=None, max_entries=MOST_EVENTS, stacks="python"):
        self.path, self.max_entries, self.stacks = path, max_entries, stacks

    def __enter__(self):
        try:
            import torch
        except ImportError:
            raise RuntimeError("vram.record() records PyTorch, which is not installed; other programs: vram run -- PROGRAM") from None
        if not torch.cuda.is_available():
            raise RuntimeError("vram.record(): PyTorch has no device here (without a GPU: vram sim -- python ...)")
        torch.cuda.init()  # there are no statistics before
        self.torch = torch
        if self.path is None:
            descriptor, self.path = tempfile.mkstemp(prefix="vram-record-", suffix=".pickle")
            os.close(descriptor)
        self.devices = range(torch.cuda.device_count())
        for device in self.devices:
            torch.cuda.reset_peak_memory_stats(device)
        torch.cuda.memory._record_memory_history(max_entries=self.max_entries, stacks=self.stacks)
        self.recorded = Recorded(os.fspath(self.path))
        return self.recorded

    def __exit__(self, *_failure):
        cuda = self.torch.cuda
        self.recorded.peak_bytes = {device: cuda.max_memory_allocated(device) for device in self.devices}
        try:
            cuda.memory._dump_snapshot(self.recorded.path)
        finally:
            cuda.memory._record_memory_history(enabled=None)
        return False
