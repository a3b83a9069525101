"""Recordings of programs with and without leaks, each with the truth, made event by event without a GPU or PyTorch.

    made.py FOLDER      writes FOLDER/NAME.json for every case

Truths: leak, no_leak, one_step (layers of one pass, which cannot be judged), few_steps, no_steps.
"""
import json
import os
import random
import sys

MIB = 1 << 20
KEEP = ("train.py", 31, "remember")
MODEL = [("model.py", 10 + i, "forward") for i in range(6)]


class Program:
    """Writes events as an allocator would: one address per allocation, and the block freed first is reused first."""

    def __init__(self, marks=True, seed=1):
        self.events, self.annotations, self.free_addresses, self.next = [[], []], [], {}, 0x700000000000
        self.time, self.marked, self.random = 0, marks, random.Random(seed)

    def frames(self, site, outer):
        where = [site] + (outer or [("train.py", 20, "train_step"), ("train.py", 60, "main")])
        return [{"filename": file, "line": line, "name": name} for file, line, name in where]

    def alloc(self, size, site, outer=None, device=0, stream=0):
        pool = self.free_addresses.setdefault((size, device, stream), [])
        address = pool.pop() if pool else self.next
        if address == self.next:
            self.next += (size + (2 << 20)) & ~((1 << 20) - 1)
        self.write("alloc", address, size, device, stream, self.frames(site, outer))
        return (address, size, device, stream)

    def free(self, *blocks):
        for address, size, device, stream in blocks:
            for action in ("free_requested", "free_completed"):
                self.write(action, address, size, device, stream, [])
            self.free_addresses[(size, device, stream)].append(address)

    def write(self, action, address, size, device, stream, frames):
        self.time += 10
        self.events[device].append({"action": action, "addr": address, "size": size, "stream": stream, "time_us": self.time, "frames": frames})

    def step(self, name="train_step"):
        self.time += 10
        if self.marked:
            self.annotations.append({"stage": "STEP", "name": name, "device": -1, "time_us": self.time})
        self.time += 10

    def weights(self, count=6, size=40 * MIB, device=0):
        return [self.alloc(size, ("model.py", 3, "__init__"), [("train.py", 50, "build")], device) for _ in range(count)]

    def work(self, scale=1.0, device=0, stream=0):
        """A forward and a backward pass, which free everything they allocate."""
        kept = [self.alloc(int((i + 1) * 2 * MIB * scale), site, device=device, stream=stream) for i, site in enumerate(MODEL)]
        for i, block in reversed(list(enumerate(kept))):
            grad = self.alloc(int((i + 1) * MIB * scale), ("autograd.py", 40 + i, "backward"), device=device, stream=stream)
            self.free(block, grad)

    def recording(self):
        events = [trace for trace in self.events if trace] or [[]]
        live, segments = {}, []
        for device, trace in enumerate(events):
            for event in trace:
                if event["action"] == "alloc":
                    live[(device, event["addr"])] = event
                elif event["action"] == "free_completed":
                    live.pop((device, event["addr"]), None)
        for (device, address), event in live.items():
            block = {"address": address, "size": event["size"], "requested_size": event["size"], "state": "active_allocated", "frames": event["frames"]}
            segments.append({"device": device, "address": address, "total_size": event["size"], "stream": event["stream"], "segment_type": "large", "blocks": [block]})
        return {"segments": segments, "device_traces": events, "external_annotations": self.annotations}


def loop(steps, each, marks=True, ends=False, seed=1):
    """A training loop. `each(program, step)` is the step's additional work, and may return a factor for the size of the ordinary work."""
    program = Program(marks, seed)
    weights = program.weights()
    for step in range(steps):
        program.step()
        scale = each(program, step)
        program.work(1.0 if scale is None else scale)
    program.step()
    if ends:
        program.free(*weights)
    return program.recording()


def keeps(size, every=1, since=0):
    """Keeps a block in one of every `every` steps, as a growing list does."""
    def each(program, step):
        if step >= since and step % every == every - 1:
            program.alloc(size(step) if callable(size) else size, KEEP)
    return each


def window(length, size=MIB):
    """Keeps the most recent blocks only."""
    held = []
    def each(program, step):
        held.append(program.alloc(size, KEEP))
        if len(held) > length:
            program.free(held.pop(0))
    return each


def epochs(length, size=MIB):
    """Keeps a block per step, and frees all at the end of an epoch."""
    held = []
    def each(program, step):
        held.append(program.alloc(size, KEEP))
        if (step + 1) % length == 0:
            program.free(*held)
            held.clear()
    return each


def released_at_end(steps, marks=True):
    program, held = Program(marks), []
    program.weights()
    for _ in range(steps):
        program.step()
        held.append(program.alloc(MIB, KEEP))
        program.work()
    program.step()
    program.free(*held)
    return program.recording()


def two_devices(leaking):
    program = Program()
    program.weights(device=0), program.weights(device=1)
    for _ in range(40):
        program.step()
        program.work(device=0)
        program.work(device=1)
        if leaking:
            program.alloc(MIB, KEEP, device=1)
        program.work(0.5, device=0)
    program.step()
    return program.recording()


def accumulation(marks, micro=4):
    """Gradients are made in the first of several micro-steps, and freed after the last."""
    grads = []
    def each(program, step):
        if step % micro == 0:
            program.free(*grads)
            grads[:] = [program.alloc(40 * MIB, ("autograd.py", 90, "accumulate")) for _ in range(6)]
    return loop(48, each, marks)


def evaluation(marks, leak=False):
    """In every tenth step, gathers the outputs of an evaluation and frees them."""
    def each(program, step):
        if step % 10 == 9:
            outputs = []
            for _ in range(8):
                outputs.append(program.alloc(3 * MIB, ("eval.py", 8, "evaluate"), [("train.py", 66, "main")]))
            program.free(*outputs)
            if leak:
                program.alloc(2 * MIB, KEEP)
    return loop(60, each, marks)


def layers(count, keeps_what, backward=False, frees=False):
    """One pass through the layers, without steps. keeps_what: the blocks of each layer that stay."""
    program = Program(False)
    outer = [("model.py", 80, "forward"), ("train.py", 9, "<module>")]
    program.weights(count // 4)
    program.alloc(2 * MIB, ("model.py", 70, "embed"), [("model.py", 78, "forward"), ("train.py", 9, "<module>")])
    held = []
    for _ in range(count):
        blocks = [program.alloc((i + 1) * MIB, ("model.py", 30 + i, "linear"), outer) for i in range(7)]
        held += [block for i, block in enumerate(blocks) if i in keeps_what]
        program.free(*(block for i, block in enumerate(blocks) if i not in keeps_what))
    if backward:
        for block in reversed(held):
            grad = program.alloc(MIB, ("autograd.py", 40, "backward"), [("train.py", 11, "<module>")])
            program.free(block, grad)
    elif frees:
        program.free(*held)
    return program.recording()


def cat(steps, marks=True):
    """Replaces one buffer by a larger one in every step."""
    held = []
    def each(program, step):
        held.append(program.alloc((step + 1) * MIB, KEEP))
        if len(held) > 1:
            program.free(held.pop(0))
    return loop(steps, each, marks)


def warm_up(steps, grows):
    def each(program, step):
        if step < grows:
            program.alloc(5 * MIB, ("optimizer.py", 20, "init_state"))
    return loop(steps, each)


def cache(steps, limit, evicts=False):
    """A cache that grows to a limit; then it stays at the limit, or replaces its oldest entry."""
    held = []
    def each(program, step):
        if len(held) == limit and not evicts:
            return
        held.append(program.alloc(2 * MIB, ("cache.py", 12, "get")))
        if len(held) > limit:
            program.free(held.pop(0))
    return loop(steps, each)


def side_streams(leak):
    """Each step copies on another stream; the copy is freed a step later."""
    pending = []
    def each(program, step):
        program.free(*pending)
        pending[:] = [program.alloc(8 * MIB, ("data.py", 5, "prefetch"), stream=7)]
        if leak:
            program.alloc(MIB, KEEP, stream=7)
    return loop(40, each)


def late_among_borrowed():
    """A buffer handed on to the next step is allocated at the site of blocks that, from the middle of the steps on, stay."""
    handed_on = []
    def each(program, step):
        program.free(*handed_on)
        handed_on[:] = [program.alloc(4 * MIB, KEEP)]
        if step >= 30:
            program.alloc(MIB, KEEP)
    return loop(60, each)


def lengths(pattern, marks=True, leak=0):
    def each(program, step):
        if leak:
            program.alloc(leak, KEEP)
        return pattern(program, step)
    return loop(40, each, marks)


def requests_of(step_count, marks, leak=False):
    """A server with requests of random lengths, whose caches live for several decoding steps."""
    program, running = Program(marks, 5), []
    program.weights()
    for step in range(step_count):
        program.step("decode step")
        if step % 3 == 0:
            running.append((step + 4 + program.random.randrange(6), program.alloc((1 + program.random.randrange(8)) * MIB, ("cache.py", 40, "reserve"))))
        program.work(0.3)
        for end, block in [pair for pair in running if pair[0] <= step]:
            program.free(block)
        running = [pair for pair in running if pair[0] > step]
        if leak and step % 3 == 0:
            program.alloc(64 << 10, KEEP)
    program.step("decode step")
    return program.recording()


def shrinking_grows(program, step):
    return 1.0 + program.random.random()


def fragmented(program, step):
    """Odd sizes that never fit the holes of earlier ones: reserved memory grows, live memory does not."""
    blocks = [program.alloc(MIB + 512 * (step * 7 + i), ("data.py", 30 + i, "pad")) for i in range(5)]
    program.free(*blocks)


def doubles(program, step):
    """A pool that doubles whenever it is full, and never shrinks."""
    if step & (step - 1) == 0:
        program.alloc((step + 1) * MIB, KEEP)


def few(steps, size=MIB):
    return loop(steps, keeps(size))


CASES = {
    # Real leaks.
    "fixed_each_step": ("leak", lambda: loop(40, keeps(MIB))),
    "fixed_each_step_unmarked": ("leak", lambda: loop(40, keeps(MIB), marks=False)),
    "small_each_step": ("leak", lambda: loop(100, keeps(512))),
    "small_each_step_unmarked": ("leak", lambda: loop(100, keeps(512), marks=False)),
    "growing_items": ("leak", lambda: loop(40, keeps(lambda step: (step + 1) * 64 << 10))),
    "random_items": ("leak", lambda: loop(60, keeps(lambda step: (1 + step * 37 % 11) << 18))),
    "every_third": ("leak", lambda: loop(60, keeps(MIB, every=3))),
    "every_tenth": ("leak", lambda: loop(120, keeps(10 * MIB, every=10))),
    "every_tenth_unmarked": ("leak", lambda: loop(120, keeps(10 * MIB, every=10), marks=False)),
    "starts_at_half": ("leak", lambda: loop(60, keeps(MIB, since=30))),
    "starts_at_two_thirds": ("leak", lambda: loop(60, keeps(MIB, since=40))),
    "starts_late_unmarked": ("leak", lambda: loop(60, keeps(MIB, since=30), marks=False)),
    "starts_late_among_borrowed": ("leak", late_among_borrowed),
    "one_of_two_devices": ("leak", lambda: two_devices(True)),
    "with_evaluations": ("leak", lambda: evaluation(True, leak=True)),
    "with_evaluations_unmarked": ("leak", lambda: evaluation(False, leak=True)),
    "with_lengths": ("leak", lambda: lengths(lambda program, step: 1 + step % 5, leak=MIB)),
    "with_random_lengths": ("leak", lambda: lengths(shrinking_grows, leak=MIB)),
    "with_growing_lengths": ("leak", lambda: lengths(lambda program, step: 1 + step / 40, leak=MIB)),
    "with_random_lengths_unmarked": ("leak", lambda: lengths(shrinking_grows, marks=False, leak=MIB)),
    "on_a_side_stream": ("leak", lambda: side_streams(True)),
    "in_a_server": ("leak", lambda: requests_of(120, True, leak=True)),
    "program_that_ends": ("leak", lambda: loop(40, keeps(MIB), ends=True)),
    "eight_steps": ("leak", lambda: few(8)),
    "four_hundred_steps": ("leak", lambda: loop(400, keeps(MIB))),
    # No leak, although memory changes from step to step.
    "steady": ("no_leak", lambda: loop(40, lambda program, step: None)),
    "steady_unmarked": ("no_leak", lambda: loop(40, lambda program, step: None, marks=False)),
    "growing_batches": ("no_leak", lambda: lengths(lambda program, step: 1 + step / 10)),
    "growing_batches_unmarked": ("no_leak", lambda: lengths(lambda program, step: 1 + step / 10, marks=False)),
    "random_batches": ("no_leak", lambda: lengths(shrinking_grows)),
    "random_batches_unmarked": ("no_leak", lambda: lengths(shrinking_grows, marks=False)),
    "cycling_batches": ("no_leak", lambda: lengths(lambda program, step: 1 + step % 8)),
    "replaced_by_larger": ("no_leak", lambda: cat(40)),
    "replaced_by_larger_unmarked": ("no_leak", lambda: cat(40, marks=False)),
    "last_five": ("no_leak", lambda: loop(40, window(5))),
    "last_twenty": ("no_leak", lambda: loop(100, window(20))),
    "epochs_of_ten": ("no_leak", lambda: loop(45, epochs(10))),
    "epochs_of_forty": ("no_leak", lambda: loop(110, epochs(40))),
    "epochs_unmarked": ("no_leak", lambda: loop(45, epochs(10), marks=False)),
    "warm_up_of_one": ("no_leak", lambda: warm_up(30, 1)),
    "warm_up_of_eight": ("no_leak", lambda: warm_up(40, 8)),
    "cache_that_fills": ("no_leak", lambda: cache(60, 12)),
    "cache_that_evicts": ("no_leak", lambda: cache(60, 12, evicts=True)),
    "accumulation": ("no_leak", lambda: accumulation(True)),
    "accumulation_unmarked": ("no_leak", lambda: accumulation(False)),
    "accumulation_of_eight": ("no_leak", lambda: accumulation(True, 8)),
    "evaluations": ("no_leak", lambda: evaluation(True)),
    "evaluations_unmarked": ("no_leak", lambda: evaluation(False)),
    "two_devices": ("no_leak", lambda: two_devices(False)),
    "side_stream": ("no_leak", lambda: side_streams(False)),
    "server": ("no_leak", lambda: requests_of(120, True)),
    "fragmentation": ("no_leak", lambda: loop(40, fragmented)),
    "freed_after_the_last": ("no_leak", lambda: released_at_end(40)),
    "freed_after_the_last_unmarked": ("no_leak", lambda: released_at_end(40, marks=False)),
    "buffer_that_doubles": ("no_leak", lambda: loop(70, doubles)),
    # Cannot be judged.
    "layers_that_keep": ("one_step", lambda: layers(32, {0, 3})),
    "layers_that_keep_all": ("one_step", lambda: layers(48, set(range(7)))),
    "layers_freed_at_the_end": ("one_step", lambda: layers(32, {0, 1, 2}, frees=True)),
    "layers_and_backward": ("one_step", lambda: layers(32, {0, 3}, backward=True)),
    "layers_of_inference": ("one_step", lambda: layers(64, set())),
    "two_steps": ("few_steps", lambda: few(2)),
    "four_steps": ("few_steps", lambda: few(4)),
}


def main():
    for name, (_, make) in CASES.items():
        with open(os.path.join(sys.argv[1], name + ".json"), "w", encoding="utf-8") as file:
            json.dump(make(), file)


if __name__ == "__main__":
    main()
