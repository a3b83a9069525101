"""Why the program ends, where it ends by an exception that nothing caught: what it says, and the frames at which it was raised.

Python keeps such an exception in `sys` before it is printed, whatever the program does for printing it. A child of multiprocessing, and a program that
turns an exception into an exit code, end while the exception is under way."""
import os
import sys

MOST_FRAMES, MOST_BYTES = 24, 400  # a line of facts has 511 bytes at most


def exception():
    """The one that ends the program; None: there is none, or nothing knows of it."""
    found = getattr(sys, "last_value", None) or sys.exc_info()[1]
    if isinstance(found, SystemExit):
        found = found.__context__ if found.code not in (None, 0) else None
    return found


def cut(text):
    """One line, as long as the command reads."""
    return " ".join(text.split()).encode("utf-8", "backslashreplace")[:MOST_BYTES].decode("utf-8", "ignore")


def frames_of(found):
    """Innermost first, "FUNCTION at FILE:LINE", as the places of reads have them."""
    frames, trace = [], found.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not os.path.basename(code.co_filename).startswith("vram_values"):  # in the place of PyTorch's kernels
            frames.append(f"{code.co_name} at {code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    return frames[::-1][:MOST_FRAMES]


def lines():
    """For the facts of the process."""
    found = exception()
    if found is None:
        return []
    text = str(found)
    what = type(found).__name__ + (": " + text if text else "")
    return ["failed " + cut(what), *("frame " + cut(frame) for frame in frames_of(found))]
