"""Recordings as tables."""
import os
import tempfile
import weakref

from . import _command, _library
from ._table import Table

PACKED = {b"\x1f\x8b": 2, b"\xfd7zXZ\0": 6, b"(\xb5/\xfd": 4}


def open(path):
    """Reads a recording: a snapshot of PyTorch (pickle, JSON, HTML), or vram's own file or page. It may be packed by gzip, xz or zstd."""
    path = os.fspath(path)
    if not needs_command(path):
        return Recording(path, _library.library().read(path))
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "recording.vram")
        try:
            _command.run("convert", path, "-o", plain)
        except _command.Failed as failed:
            raise _library.Unreadable(str(failed)) from None
        return Recording(path, _library.library().read(plain))


def needs_command(path):
    """Returns whether it is packed, or in a page."""
    try:
        with io_open(path) as file:
            head = file.read(4096)
    except OSError:
        if "#" not in path:
            raise
        return True  # one of several recordings in a page
    return any(head.startswith(magic) for magic in PACKED) or head.lstrip()[:1] == b"<"


def io_open(path):
    import builtins
    return builtins.open(path, "rb")


class Recording:
    """A recording. Tables: events, segments, blocks, frames, stacks. Each column is the recording's own array, not a copy."""

    def __init__(self, path, handle):
        self.path, self._handle, self._kept = path, handle, {}
        self._library = _library.library()
        self._close = weakref.finalize(self, self._library.close, handle)

    @property
    def devices(self):
        """The numbers of its GPUs."""
        count = self._library.device_count(self._handle)
        return [device for device in range(count) if not self._library.is_host(self._handle, device)]

    def events(self, device=None):
        """Returns the events of a device, in order: action, address, size_bytes, stream, time_us, stack, ... Without `device`: those of
        the device with the most events."""
        if device is None:
            device = max(self.devices, key=lambda one: len(self._table(_library.EVENTS, one)), default=0)
        return self._table(_library.EVENTS, device)

    @property
    def segments(self):
        """Returns the segments that were held from the driver at the end."""
        return self._table(_library.SEGMENTS)

    @property
    def blocks(self):
        """Returns the blocks of the segments at the end. Those of segment i begin at its first_block."""
        return self._table(_library.BLOCKS)

    @property
    def frames(self):
        """The distinct lines of programs: name, filename, line."""
        return self._table(_library.FRAMES)

    @property
    def stacks(self):
        """The distinct stacks: where their frames begin in stack_frames."""
        return self._table(_library.STACKS)

    @property
    def stack_frames(self):
        return self._table(_library.STACK_FRAMES)

    def stack(self, number):
        """Returns the frames of a stack, innermost first: (name, filename, line)."""
        first = self.stacks.column("first_frame")
        begin, end = int(first[number]), int(first[number + 1])
        frames, table = self.stack_frames.column("frame"), self.frames
        names, files, lines = table.column("name"), table.column("filename"), table.column("line")
        numbers = [int(frames[i]) for i in range(begin, end)]
        return [(self.string(int(names[i])), self.string(int(files[i])), int(lines[i])) for i in numbers]

    def string(self, number):
        return self._library.string(self._handle, number).decode("utf-8", "replace")

    def strings(self):
        """All distinct strings, by number. Made once."""
        if "strings" not in self._kept:
            self._kept["strings"] = [self.string(i) for i in range(self._library.string_count(self._handle))]
        return self._kept["strings"]

    def report(self):
        from ._report import report
        return report(self.path)

    def show(self, **options):
        from ._report import show
        return show(self.path, **options)

    def _table(self, table, device=0):
        return Table(self, self._library.columns(self._handle, table, device))

    def __repr__(self):
        events = ", ".join(f"device {device}: {len(self.events(device)):,} events" for device in self.devices)
        return f"<vram.Recording {self.path!r}: {events or 'no events'}, {len(self.segments):,} segments, {len(self.blocks):,} blocks>"
