"""Reads, reports, shows and makes recordings of GPU memory in Python.

    import vram
    print(vram.report("snapshot.pickle"))            # what `vram report` says; .data has it as a dictionary
    recording = vram.open("snapshot.pickle")         # events and blocks as NumPy arrays and Arrow tables, not copied
    vram.show("snapshot.pickle")                     # the page, in Jupyter
    with vram.record("step.pickle") as recorded:     # what PyTorch does in here
        step()
    vram.allocator()                                 # the library's allocator; vram.cupy, vram.numba, ... put it under other libraries (docs/in)

`vram` on the command line is the whole command; docs/guides/install.md says which parts of it run where."""
from ._allocator import Allocator, Error, OutOfMemory, process_allocator as allocator
from ._command import Failed, main, run
from ._recording import Recording, open
from ._record import record
from ._report import Page, Report, report, show
from ._version import __version__

__all__ = ["Allocator", "Error", "Failed", "OutOfMemory", "Page", "Recording", "Report", "__version__", "allocator", "main", "open", "record", "report", "run",
           "show"]
