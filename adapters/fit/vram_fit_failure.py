"""Describes the uncaught exception that ends the program: its message, and the frames where it was raised.

Python stores such an exception in `sys` before printing it, however the program prints it. Children of multiprocessing, and programs
that turn an exception into an exit code, end while the exception is being handled. A thread ends without effect on the exit code."""
import functools
import os
import sys
import threading
import time
import traceback

MOST_FRAMES, MOST_BYTES = 24, 400  # a line of facts has at most 511 bytes
INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen")
IN_THREADS = []  # the first exception that ended a thread of the program
LAUNCHERS = ("ChildFailedError", "CalledProcessError", "SignalException")  # they say only that a rank failed


def exception():
    """Returns the exception that ends the program; None if there is none, or if it is unknown."""
    found = getattr(sys, "last_value", None) or sys.exc_info()[1]
    if isinstance(found, SystemExit):
        found = found.__context__ if found.code not in (None, 0) else None
    return found or (IN_THREADS[0] if IN_THREADS else None)


def watch_threads():
    """Keeps the first exception that ends a thread of the program. Threads of packages may fail without effect on it."""
    hook = threading.excepthook

    @functools.wraps(hook)
    def excepthook(args):
        try:
            files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(args.exc_traceback)]
            if args.exc_value is not None and not IN_THREADS and any(not any(part in file for part in INSTALLED) for file in files):
                IN_THREADS.append(args.exc_value)
        finally:
            hook(args)

    threading.excepthook = excepthook


def cut(text):
    """Returns the text as one line, cut to the length that the command reads."""
    return " ".join(text.split()).encode("utf-8", "backslashreplace")[:MOST_BYTES].decode("utf-8", "ignore")


def frames_of(found):
    """Returns the frames, innermost first, as "FUNCTION at FILE:LINE", the form used for places of reads."""
    frames, trace = [], found.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not os.path.basename(code.co_filename).startswith("vram_values"):  # these replace PyTorch's kernels
            frames.append(f"{code.co_name} at {code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    return frames[::-1][:MOST_FRAMES]


def remedy(text):
    """Returns what avoids a failure that is ours: PyTorch (until 2.12) cannot pass tensors with names of dimensions to functions in Python."""
    return " (--values none avoids this)" if "Named tensors are currently unsupported" in text else ""


def lines():
    """Returns lines for the process's facts."""
    found = exception()
    if found is None:
        return []
    text = str(found)
    what = type(found).__name__ + (": " + text if text else "")
    place = ["failed_in thread"] if IN_THREADS and found is IN_THREADS[0] else []
    return [f"failed_at {time.time_ns() // 1000}", *place, "failed " + cut(what) + remedy(text), *("frame " + cut(frame) for frame in frames_of(found))]


def own_rank():
    import _vram_shared

    return _vram_shared.part("vram_fit_fold").own_rank()


def lines_before_a_device():
    """Returns the facts of a process that ends before it used a device: a rank, or a program with PyTorch. Other processes may fail without
    effect on the program."""
    found = exception()
    if found is None or type(found).__name__ in LAUNCHERS or ("torch" not in sys.modules and own_rank() is None):
        return []
    rank = own_rank() or ""
    return [f"process {os.getpid()}", f"rank {rank if rank.isdigit() else 0}", "ended exit", *lines()]
