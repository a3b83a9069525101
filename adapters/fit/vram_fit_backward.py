"""Finds the caller of the backward pass. PyTorch's engine runs it on its own threads, which have no Python frames below it. Allocations
there have no stack or, from compiled functions and hooks, one that begins in PyTorch. The caller waits meanwhile, and its stack explains
them."""
import bisect
import functools
import sys
import threading
import time

MADE = ("alloc", "segment_alloc", "segment_map", "oom")
LATE_US = 1000  # tolerance between an entry's time and ours: PyTorch reads a faster clock and converts it


def stack_of(frame):
    """Returns the stack in the form of an entry, innermost first."""
    found = []
    while frame is not None:
        found.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(found)


class Calls:
    """Consecutive calls of the engine. A nested call belongs to the outer one."""

    def __init__(self, recorder):
        self.recorder, self.under_way, self.lock = recorder, 0, threading.Lock()
        self.begun, self.ended, self.stacks, self.frames = [], [], [], {}

    def begin(self, frame):
        with self.lock:
            self.under_way += 1
            if self.under_way > 1 or not self.recorder.is_recording():
                return
            stack = stack_of(frame)
            if stack not in self.frames:
                self.frames[stack] = [{"filename": file, "line": line, "name": name} for file, line, name in stack]
            self.stacks.append(self.frames[stack])
            self.begun.append(time.time_ns() // 1000)
            self.ended.append(None)

    def end(self):
        with self.lock:
            self.under_way -= 1
            if self.under_way == 0 and self.ended and self.ended[-1] is None:
                self.ended[-1] = time.time_ns() // 1000

    def caller(self, time_us):
        """Returns the stack of the call in progress at that time."""
        i = bisect.bisect_right(self.begun, time_us + LATE_US) - 1
        if i > 0 and self.begun[i] > time_us and self.ended[i - 1] is not None and time_us <= self.ended[i - 1]:
            i -= 1
        if i < 0 or (self.ended[i] is not None and time_us > self.ended[i] + LATE_US):
            return None
        return self.stacks[i]

    def complete(self, snapshot):
        """Adds the caller's stack to allocations on the engine's threads."""
        joined = {}
        for device, trace in enumerate(snapshot["device_traces"]):
            given = {}  # by address
            for entry in trace:
                if entry["action"] not in MADE:
                    continue
                given.pop(entry.get("addr"), None)
                own = entry.get("frames")
                if own is None or "time_us" not in entry or (own and "/torch/" not in own[-1]["filename"]):
                    continue
                caller = self.caller(entry["time_us"])
                if caller is None:
                    continue
                # Identical list objects are written once.
                key = id(caller), *((frame["filename"], frame["line"], frame["name"]) for frame in own)
                entry["frames"] = given[entry.get("addr")] = joined.setdefault(key, own + caller)
            self.complete_blocks([segment for segment in snapshot["segments"] if segment["device"] == device], given)

    @staticmethod
    def complete_blocks(segments, given):
        for segment in segments:
            for block in segment["blocks"]:
                if block["state"] != "inactive" and block.get("frames") == [] and block.get("address") in given:
                    block["frames"] = given[block["address"]]


def watch(recorder, torch):
    """Wraps the function through which PyTorch always calls the engine."""
    autograd = getattr(torch, "autograd", None)
    called = getattr(autograd, "_engine_run_backward", None)
    if called is None:
        return
    calls = recorder.backward = Calls(recorder)

    @functools.wraps(called)
    def _engine_run_backward(*args, **kwargs):
        calls.begin(sys._getframe(1))
        try:
            return called(*args, **kwargs)
        finally:
            calls.end()

    autograd._engine_run_backward = _engine_run_backward
