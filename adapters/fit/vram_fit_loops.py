"""Finds steps of programs that do not train. A step is a call of a model by the program itself, or all calls of models within one call of a
library, such as `generate()` or a pipeline. When steps repeat, the program has shown its needs.

A library call is complete, so three alike (or three alike series of them) suffice. A direct call of a model may be one of many that
together make an image or a text, and the last of them may need more memory. So a hundred consecutive calls must pass without a new peak."""
import functools
import os
import sys
import threading

import _vram_shared as shared

STANDING = 100
ALIKE = 3
LONGEST = 64  # calls per series
INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "<frozen")


class Call:
    """A call of a library function by the program. It is stored as the frame's trace function, the only place in a frame that ends with the
    call. Python calls it if another tracer is active; it traces nothing."""

    def __call__(self, frame, event, argument):
        return None


def is_installed(frame):
    return any(part in frame.f_code.co_filename for part in INSTALLED)


def call_of(frame):
    """Returns the library call in progress that the program made: a Call, None for the model itself, False if unknown."""
    called = None
    while frame is not None and is_installed(frame):
        called, frame = frame, frame.f_back
    if called is None:
        return None
    if frame is None or not (called.f_trace is None or isinstance(called.f_trace, Call)):
        return False
    if called.f_trace is None:
        called.f_trace = Call()
    return called.f_trace


class Loops:
    def __init__(self, recorder, step):
        self.recorder, self.step = recorder, step
        self.thread = threading.main_thread().ident
        self.inside = False
        self.reset()

    def reset(self):
        self.call, self.before, self.steps, self.whole, self.standing = None, None, [], [], 0
        self.highest = (0, 0)
        self.begun = False

    def is_counting(self):
        recorder, serving = self.recorder, self.recorder.serving
        serves = serving.values or serving.inside  # an engine is ready, or tries its largest batch
        return not self.inside and threading.get_ident() == self.thread and recorder.is_recording() and not recorder.trains and not serves

    def begin_call(self, frame):
        """Begins an outermost call of a model. It ends the previous step unless it belongs to the same library call."""
        call = call_of(frame)
        if call is False:
            self.reset()
            return
        if self.begun and (call is None or call is not self.call):
            self.end_step(self.call is not None)
        self.begun, self.call = True, call

    def end_step(self, whole):
        recorder = self.recorder
        sums, peaks = recorder.sums(), recorder.highest_now()
        recorder.end_call(sums)
        self.standing = 0 if any(new > old for new, old in zip(peaks, self.highest)) else self.standing + 1
        self.highest = tuple(map(max, peaks, self.highest))
        if self.before is not None:
            self.steps.append(self.step(sums, self.before))
            self.whole.append(whole)
            del self.steps[: -ALIKE * LONGEST], self.whole[: -ALIKE * LONGEST]
        self.before = sums
        wanted = os.environ.get("VRAM_FIT_STEPS", "auto")
        if wanted.isdigit() and int(wanted) and recorder.steps >= int(wanted):
            recorder.stop("asked")
        if wanted == "auto" and sums["allocations"]:
            self.maybe_stop()

    def maybe_stop(self):
        length = self.series()
        if length and any(self.whole[-length:]):
            self.recorder.stop_together("calls")
        if self.standing >= STANDING:
            self.recorder.stop_together("calls" if length else "plateau")

    def series(self):
        """Returns the length of the series of calls that came three times in a row and allocated something; 0 if there is none."""
        steps = self.steps
        for length in range(1, min(LONGEST, len(steps) // ALIKE) + 1):
            last = steps[-length:]
            if all(steps[-i * length - length : -i * length] == last for i in range(1, ALIKE)) and any(step.allocations for step in last):
                return length
        return 0


def watch(recorder, torch, step):
    """Wraps the call of torch.nn.Module. During a call the class has its original method; our one frame is removed from the recorded stacks."""
    module = getattr(getattr(torch, "nn", None), "Module", None)
    if module is None:
        return
    loops, called = Loops(recorder, step), module.__call__
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or bool  # bool() is False

    @functools.wraps(called)
    def __call__(self, *args, **kwargs):
        # torch.compile() traces this method for a module with hooks that a compiled one calls, and knows the answer without a call.
        if is_compiling() or not loops.is_counting():
            return called(self, *args, **kwargs)
        loops.inside, module.__call__ = True, called
        try:
            loops.begin_call(sys._getframe(1))
        except Exception as error:
            recorder.notes.append(f"calls: {error!r}")
        try:
            return called(self, *args, **kwargs)
        finally:
            loops.inside, module.__call__ = False, __call__

    module.__call__ = __call__
    shared.leave_to_python(torch, __call__.__code__)
