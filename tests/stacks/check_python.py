#!/usr/bin/env python3
"""Compares the library's stacks of this interpreter with those of traceback at the same place.

Usage: check_python.py --library libvram.so [--bench]

The library is called through ctypes, which releases the interpreter's lock (CDLL) or keeps it (PyDLL): both ways must give the
same frames. With --bench, prints the cost of a Python frame instead.
"""
import argparse
import ctypes
import functools
import sys
import threading
import time
import traceback

PYTHON, C, ALL = 1, 2, 3


class Frame(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("filename", ctypes.c_char_p), ("line", ctypes.c_int64)]


class Stacks:
    def __init__(self, library):
        self.library = library
        library.vram_stack_frames.restype = ctypes.c_size_t
        library.vram_stack_take.restype = ctypes.c_uint32
        self.table = ctypes.c_void_p()
        if library.vram_stacks_create(None, ctypes.byref(self.table)) != 0:
            raise SystemExit("vram_stacks_create failed")

    def frames(self, number):
        room = (Frame * 2048)()
        count = self.library.vram_stack_frames(self.table, number, room, len(room))
        return [(f.name.decode(), f.filename.decode(), f.line) for f in room[:count]]


def expected():
    """Returns the frames of the caller and its callers, as traceback names them, innermost first."""
    return [(f.name, f.filename, f.lineno) for f in reversed(traceback.extract_stack()[:-1])]


# On the same line, so that the line numbers agree.
def look(stacks, kind):
    return stacks.library.vram_stack_take(stacks.table, kind, 0), expected()


def plain(stacks, kind):
    return look(stacks, kind)


def by_generator(stacks, kind):
    def generator():
        yield look(stacks, kind)

    return next(generator())


def by_comprehension(stacks, kind):
    return [look(stacks, kind) for _ in range(1)][0]


def by_sort(stacks, kind):
    """Python, C, Python."""
    found = []

    def key(_):
        found.append(
            look(stacks, kind)
        )
        return 0

    sorted([1], key=key)
    return found[0]


def by_method(stacks, kind):
    class Thing:
        def __repr__(self):
            self.found = functools.partial(look, stacks)(kind)
            return "thing"

    thing = Thing()
    repr(thing)
    return thing.found


def by_callback(stacks, kind):
    """Python, C code of ctypes, Python."""
    found = []
    kind_of_callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    callback = kind_of_callback(lambda a, b: found.append(look(stacks, kind)) or 0)
    array = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(array, 2, 4, callback)
    return found[0]


def by_exception(stacks, kind):
    try:
        raise ValueError
    except ValueError:
        return look(stacks, kind)


def by_recursion(stacks, kind, depth=60):
    return by_recursion(stacks, kind, depth - 1) if depth else look(stacks, kind)


def by_import_of_text(stacks, kind):
    space = {"look": look, "stacks": stacks, "kind": kind}
    exec(compile("\n\ndef caf\u00e9():\n    return look(\n        stacks, kind)\nfound = caf\u00e9()\n", "<\u0442\u0435\u043a\u0441\u0442>", "exec"), space)
    return space["found"]


def by_thread(stacks, kind):
    found = []
    thread = threading.Thread(target=lambda: found.append(look(stacks, kind)))
    thread.start()
    thread.join()
    return found[0]


WAYS = [plain, by_generator, by_comprehension, by_sort, by_method, by_callback, by_exception, by_recursion, by_import_of_text, by_thread]


def check(stacks, how):
    failures = 0
    for way in WAYS:
        number, wanted = way(stacks, PYTHON)
        if stacks.frames(number) != wanted:
            failures += 1
            print(f"{how}, {way.__name__}: {stacks.frames(number)}\ninstead of {wanted}")
        number, wanted = way(stacks, ALL)
        merged = stacks.frames(number)
        files = {f[1] for f in wanted}
        python = [f for f in merged if f[1] in files]
        limit = len(python) if way is by_recursion else len(wanted)  # 128 frames may not reach the outermost
        if python != wanted[:limit] or not python or len(merged) <= len(python):
            failures += 1
            print(f"{how}, {way.__name__}, merged: {python}\ninstead of {wanted}")
        if way is by_callback:  # C frames are between the Python frames that called each other through them
            names = [f[0] for f in merged]
            inner, outer = names.index("<lambda>"), names.index("by_callback")
            if not any("qsort" in n or "msort" in n for n in names[inner:outer]):
                failures += 1
                print(f"{how}: the frames of qsort are not between those of Python: {names}")
    return failures


def new_code_at_old_addresses(stacks):
    """Functions are created and deleted, mostly at the same addresses. Each must keep its own name and line."""
    failures = 0
    for i in range(300):
        space = {"look": look, "stacks": stacks, "PYTHON": PYTHON}
        text = "\n" * (i % 7) + f"def f{i % 11}():\n    return look(stacks, PYTHON)\n" + f"found = f{i % 11}()\n"
        exec(compile(text, f"<text {i % 5}>", "exec"), space)
        number, wanted = space["found"]
        del space
        if stacks.frames(number) != wanted:
            failures += 1
    if failures:
        print(f"{failures} of 300 stacks had the frames of other code objects")
    return failures


def bench(stacks):
    """Returns the cost per Python frame: the slope between two depths, which cancels the cost of ctypes."""

    def at_depth(depth, kind):
        if depth:
            return at_depth(depth - 1, kind)
        take, table, best = stacks.library.vram_stack_take, stacks.table, 1e18
        for _ in range(300):
            start = time.perf_counter_ns()
            for _ in range(100):
                take(table, kind, 0)
            best = min(best, (time.perf_counter_ns() - start) / 100)
        return best

    def walk_in_python(depth):
        if depth:
            return walk_in_python(depth - 1)
        best = 1e18
        for _ in range(300):
            start = time.perf_counter_ns()
            frame, found = sys._getframe(), []
            while frame is not None:
                found.append((frame.f_code, frame.f_lasti))
                frame = frame.f_back
            best = min(best, time.perf_counter_ns() - start)
        return best

    version = sys.version.split()[0]
    print(f"Python {version}, ns per frame: python frames {(at_depth(90, PYTHON) - at_depth(20, PYTHON)) / 70:.1f},"
          f" merged with C {(at_depth(40, ALL) - at_depth(10, ALL)) / 30:.1f} (per Python frame),"
          f" code and lasti walked in Python {(walk_in_python(90) - walk_in_python(20)) / 70:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--bench", action="store_true")
    arguments = parser.parse_args()
    if arguments.bench:
        return bench(Stacks(ctypes.PyDLL(arguments.library)))
    failures = 0
    for how, load in (("lock given up", ctypes.CDLL), ("lock kept", ctypes.PyDLL)):
        stacks = Stacks(load(arguments.library))
        failures += check(stacks, how)
        failures += new_code_at_old_addresses(stacks)
    print(f"Python {sys.version.split()[0]}: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
