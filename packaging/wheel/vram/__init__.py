"""Recordings of GPU memory in Python: read, reported, shown, made.

    import vram
    print(vram.report("snapshot.pickle"))            # what `vram report` says; .data has it as a dictionary
    recording = vram.open("snapshot.pickle")         # events and blocks as NumPy arrays and Arrow tables, not copied
    vram.show("snapshot.pickle")                     # the page, in Jupyter
    with vram.record("step.pickle") as recorded:     # what PyTorch does in here
        step()

`vram` on the command line is the whole command; docs/guides/install.md says what of it runs where."""
from ._command import Failed, main, run
from ._recording import Recording, open
from ._record import record
from ._report import Page, Report, report, show
from ._version import __version__

__all__ = ["Failed", "Page", "Recording", "Report", "__version__", "main", "open", "record", "report", "run", "show"]
