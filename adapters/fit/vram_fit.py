"""vram's part in a Python program under `vram fit`. It records PyTorch's memory history from the first use of a device, observes steps, and
ends the program when they repeat. It writes the recording, and facts for the command, into the folder VRAM_FIT.

VRAM_FIT_STEPS is `auto` (until three consecutive steps are alike), a number, or `0` (to the end of the program). Nothing here may
disturb the program: an error is written to the facts, and the program continues."""
import atexit
import contextlib
import fcntl
import functools
import importlib.util
import mmap
import os
import pickle
import resource
import signal
import struct
import sys
import threading
import time

import _vram_shared as shared

FOLDER = os.environ.get("VRAM_FIT", "")
# Set if the program sees more ranks than run (vram_fit_fold.py).
RANKS = os.environ.get("VRAM_SIM_RANKS", "")
MAX_ENTRIES = 1_000_000  # of a device's history; PyTorch needs about 1 KiB for each
ALIKE = 3  # consecutive steps
STANDING = 100  # steps without a new peak, if steps are never alike
WAIT_SECONDS = 300.0 if RANKS else 60.0  # for the other ranks at the end of a step; stages of a folded job have few processors
# The file shared by all processes and the command (cli/fit_run.c): a head of 64 bytes, then a row of 64 bytes per rank.
ROW_BYTES, ROWS = 64, 1024
ALONE = 8  # in the head: ranks no longer wait for each other
FINISHED = 16  # in the head: enough was recorded; the command ends the program
ENDING = 24  # in the head: the command ends the program; each process with device memory writes its recording
PLAYING = 32  # in the head: an engine plays the requests
BEGUN = time.monotonic()
HERE = os.path.dirname(os.path.abspath(__file__))


def part(name):
    return shared.part(f"vram_fit_{name}")


def remove_own_frames(snapshot):
    """Removes the frames of our wrappers around the program's functions."""
    def clean(entry):
        frames = entry.get("frames")
        if frames and any(frame["filename"].startswith(HERE) for frame in frames):
            entry["frames"] = [frame for frame in frames if not frame["filename"].startswith(HERE)]

    for trace in snapshot["device_traces"]:
        for entry in trace:
            clean(entry)
    for segment in snapshot["segments"]:
        clean(segment)
        for block in segment["blocks"]:
            clean(block)


@contextlib.contextmanager
def own_turn():
    """Lets at most two ranks of a folded job at a time hold their histories as Python objects (a gigabyte or more each)."""
    if not RANKS:
        yield
        return
    with open(os.path.join(FOLDER, f"turn{int(os.environ.get('LOCAL_RANK', 0)) % 2}"), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def running_ranks(world):
    return part("fold").running_ranks(world)


class Control:
    """Words of 64 bits in shared memory. Each row has one writer."""

    def __init__(self):
        with open(os.environ["VRAM_FIT_CONTROL"], "r+b") as file:
            self.map = mmap.mmap(file.fileno(), (ROWS + 1) * ROW_BYTES)

    def get(self, at):
        return struct.unpack_from("<Q", self.map, at)[0]

    def put(self, at, value):
        struct.pack_into("<Q", self.map, at, value)

    def row(self, rank, word):
        """Returns the place of a rank's word. If ranks are folded, only those that run have rows, in their order."""
        running = running_ranks(int(RANKS.partition(":")[0])) if RANKS else ()
        place = running.index(rank) if rank in running else rank
        return (1 + place % ROWS) * ROW_BYTES + 8 * word


class Step:
    """The allocations of one step. Steps that allocate alike are equal."""

    def __init__(self, sums, before):
        self.allocations = sums["allocations"] - before["allocations"]
        self.bytes = sums["bytes"] - before["bytes"]
        self.live = sums["live"]
        self.reserved = sums["reserved"]

    def __eq__(self, other):
        return vars(self) == vars(other)


class Recorder:
    def __init__(self):
        self.torch = None
        self.process = 0
        self.control = None
        self.marker = None  # the optimizer whose calls count as steps
        self.backward = None
        self.counts, self.notes = {}, []
        self.trains = False  # the program made an optimizer
        self.free_read = None  # the call site that read how much memory is free
        self.kinds = None  # of ranks, where rank 0 runs alone to find them (vram_fit_kinds.py)
        self.initialised = [0.0, 0, 0]  # on the CPU: seconds, bytes, bytes left uninitialised
        self.serving = part("engines").Serving(self)
        self.reset()

    def reset(self):
        self.steps, self.marks, self.seen, self.before = 0, [], [], None
        self.outside, self.written, self.ended = {}, False, "exit"
        self.writing, self.segments = threading.RLock(), []
        self.exits_well = False  # by os._exit(0), maybe while an exception is being handled
        self.peaks = {}  # by device: allocated and reserved, including peaks that the program has reset since
        self.ready, self.attempts = 0, 0
        self.highest, self.highest_step = 0, 0
        self.step_peaks = part("peaks").Peaks(self)
        self.begun_us = time.time_ns() // 1000
        self.first_use = (time.monotonic() - BEGUN, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        self.serving.reset()

    def is_recording(self):
        return self.process == os.getpid() and not self.written

    def say(self, text):
        print("vram fit: " + text, file=sys.stderr, flush=True)

    # --- start -----------------------------------------------------------------------------------------------------------

    def begin(self):
        """Starts recording when PyTorch initialises CUDA, even in a child of a process that had imported PyTorch."""
        if self.process == os.getpid():
            return
        self.process = os.getpid()
        self.reset()
        with contextlib.suppress(OSError), open(os.path.join(FOLDER, f"{self.process}.begun"), "w"):
            pass
        try:
            self.record()
            self.control = Control()
            threading.Thread(target=self.wait_for_end, name="vram fit", daemon=True).start()
        except Exception as error:
            self.notes.append(f"record: {error!r}")
        self.hook_end()

    def record(self):
        memory = self.torch.cuda.memory
        self.own_record = memory._record_memory_history
        self.own_record("all", context="alloc", stacks="python", max_entries=MAX_ENTRIES)

        def record_memory_history(enabled="all", *args, **kwargs):
            """Replaces the program's own call: recording has begun, and continues when the program stops it."""

        memory._record_memory_history = record_memory_history
        self.keep_peaks(memory)

    def watch_free_memory(self, memory):
        """Notes where the program first reads how much memory is free, which may be its first use of a device."""
        read = getattr(memory, "mem_get_info", None)
        if read is None:
            return

        @functools.wraps(read)
        def mem_get_info(*args, **kwargs):
            if self.free_read is None:
                frame = sys._getframe(1)
                while frame.f_back is not None and "/torch/" in frame.f_code.co_filename:
                    frame = frame.f_back
                self.free_read = f"{frame.f_code.co_filename}:{frame.f_lineno}:{frame.f_code.co_name}"
            return read(*args, **kwargs)

        mem_get_info._torchdynamo_disable = True
        memory.mem_get_info = mem_get_info
        if getattr(self.torch.cuda, "mem_get_info", None) is read:
            self.torch.cuda.mem_get_info = mem_get_info

    def keep_peaks(self, memory):
        """Keeps the peaks that the program resets. The program sees them reset."""
        for name in ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"):
            reset = getattr(memory, name, None)
            if reset is None:
                continue

            @functools.wraps(reset)
            def wrapper(*args, reset=reset, **kwargs):
                self.see_peaks()
                return reset(*args, **kwargs)

            setattr(memory, name, wrapper)
            if getattr(self.torch.cuda, name, None) is reset:
                setattr(self.torch.cuda, name, wrapper)

    def see_peaks(self):
        if self.process != os.getpid():
            return
        for device in range(self.torch.cuda.device_count()):
            stats = self.stats(device)
            if stats:
                before = self.peaks.get(device, (0, 0))
                now = stats["allocated_bytes"]["all"]["peak"], stats["reserved_bytes"]["all"]["peak"]
                self.peaks[device] = tuple(map(max, before, now))

    def wait_for_end(self):
        """Writes the recording when the command asks, because not every program gives its processes time to write before they end."""
        while not self.written and not self.control.get(ENDING):
            time.sleep(0.05)
        self.write()

    def hook_end(self):
        import multiprocessing.util

        atexit.register(self.write)
        # Children of multiprocessing exit without atexit.
        multiprocessing.util.Finalize(None, self.write, exitpriority=-100)
        leave = os._exit

        def _exit(status):
            self.exits_well = status == 0
            self.write()
            leave(status)

        os._exit, self.leave = _exit, leave
        try:
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self.terminated)
        except ValueError:
            pass  # not in the main thread

    def terminated(self, number, frame):
        self.write()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    # --- steps -----------------------------------------------------------------------------------------------------------

    def after_step(self, optimizer, args, kwargs):
        if self.process != os.getpid() or self.written:
            return
        key = id(optimizer)
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.marker is None or self.counts[key] > self.counts.get(self.marker, 0) + ALIKE:
            self.marker = key
        if key == self.marker:
            try:
                self.end_step()
            except Exception as error:
                self.notes.append(f"step: {error!r}")

    def end_step(self):
        sums = self.sums()
        self.steps += 1
        self.marks.append(time.time_ns() // 1000)
        if self.before is not None:
            self.seen.append(Step(sums, self.before))
        self.before = sums
        self.see_outside()
        rank, world = self.place()
        if self.control is not None:
            self.control.put(self.control.row(rank, 1), self.process)
            self.control.put(self.control.row(rank, 2), sums["peak"])
        wanted = os.environ.get("VRAM_FIT_STEPS", "auto")
        if sums["peak"] > self.highest:
            self.highest, self.highest_step = sums["peak"], self.steps
        self.standing = self.steps - self.highest_step >= STANDING
        if wanted == "auto" and not self.ready and not self.is_alike():
            self.standing = self.standing or self.step_peaks.repeat()
            self.ready = self.steps if self.standing else 0
        elif wanted == "auto" and not self.ready:
            self.ready = self.steps
        if self.control is not None:
            self.control.put(self.control.row(rank, 3), self.ready)  # set before the number of steps, which shows other processes that it is valid
            self.control.put(self.control.row(rank, 0), self.steps)
        self.maybe_stop(wanted, world)

    def end_call(self, sums):
        """Ends a step of a program without an optimizer."""
        self.steps += 1
        self.marks.append(time.time_ns() // 1000)
        self.see_outside()
        if self.control is not None:
            rank, _ = self.place()
            for word, value in ((1, self.process), (2, sums["peak"]), (3, self.ready), (0, self.steps)):
                self.control.put(self.control.row(rank, word), value)

    def stop_together(self, why):
        """Ends a program without an optimizer whose steps repeat, if this step is the last of all ranks."""
        rank, world = self.place()
        self.ready = self.ready or self.steps
        if self.control is not None:
            self.control.put(self.control.row(rank, 3), self.ready)
        if self.together(world):
            self.stop(why)

    def begin_playing(self):
        """Records that this process plays the requests, even if it uses no device."""
        self.control = self.control or Control()
        self.control.put(PLAYING, 1)

    def finish(self, why):
        """Ends this process's recording. The command ends the other processes."""
        self.ended = why
        if self.control is not None:
            self.write()
            self.control.put(FINISHED, 1)

    def refuse(self):
        """Ends a program that cannot be folded. It may not have used a device."""
        self.control = self.control or Control()
        self.finish("exit")

    def maybe_stop(self, wanted, world):
        if wanted == "auto" and self.together(world):
            self.stop("plateau" if self.standing else "steps")
        elif wanted.isdigit() and int(wanted) and self.steps >= int(wanted):
            self.wait_for(world)
            self.stop("asked")

    def is_alike(self):
        if len(self.seen) < ALIKE or any(step != self.seen[-1] for step in self.seen[-ALIKE:]) or self.seen[-1].allocations == 0:
            return False
        self.attempts += 1
        if self.attempts > 4 and self.steps % 16:
            return False
        with own_turn():
            return self.history_repeats(self.seen[-1].allocations)

    def history_repeats(self, count):
        """Compares the sizes of the steps one by one, after their sums agree."""
        for trace in self.torch.cuda.memory._snapshot()["device_traces"]:
            sizes = [entry["size"] for entry in trace if entry["action"] == "alloc"]
            if not sizes:
                continue
            if len(self.traced()) > 1:
                count = max(1, min(count, len(sizes) // ALIKE))  # several devices share the steps, so the sums must suffice
                continue
            parts = [sizes[len(sizes) - (i + 1) * count : len(sizes) - i * count] for i in range(ALIKE)]
            if len(sizes) < ALIKE * count or any(part != parts[0] for part in parts):
                return False
        return True

    def together(self, world):
        """Returns whether this step is the last one of all ranks. All decide by the same rows, so they agree."""
        if world <= 1 or self.control is None:
            return bool(self.ready)
        if self.ready == 0 or not self.wait_for(world):
            return False
        rows = [self.control.get(self.control.row(other, 3)) for other in running_ranks(world)]
        return all(0 < row <= self.steps for row in rows)

    def wait_for(self, world):
        """Waits until all ranks have ended this step, with a time limit, since a rank may need another's next step first."""
        if world <= 1 or self.control is None:
            return True
        until = time.monotonic() + WAIT_SECONDS
        while any(self.control.get(self.control.row(other, 0)) < self.steps for other in running_ranks(world)):
            if self.control.get(ALONE) or time.monotonic() > until:
                self.control.put(ALONE, 1)
                return False
            time.sleep(0.002)
        return True

    def stop(self, why):
        self.ended = why
        self.write()
        for file in (sys.stdout, sys.stderr):
            try:
                file.flush()
            except Exception:
                pass
        self.end_children()
        self.leave(0)

    @staticmethod
    def end_children():
        """Ends the daemon children of multiprocessing, as it does when a program exits normally."""
        import multiprocessing

        for child in multiprocessing.active_children():
            if child.daemon:
                child.terminate()

    # --- facts -----------------------------------------------------------------------------------------------------------

    def place(self):
        """Returns the rank and the number of ranks."""
        distributed = self.torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return int(os.environ.get("RANK", 0) or 0), 1

    def traced(self):
        return [device for device in range(self.torch.cuda.device_count()) if self.stats(device)["reserved_bytes"]["all"]["allocated"]]

    def stats(self, device):
        return self.torch.cuda.memory_stats_as_nested_dict(device)

    def sums(self):
        sums = dict.fromkeys(("allocations", "bytes", "live", "reserved", "peak"), 0)
        for device in range(self.torch.cuda.device_count()):
            stats = self.stats(device)
            if not stats:
                continue
            sums["allocations"] += stats["allocation"]["all"]["allocated"]
            # Use requested sizes: sizes of blocks depend on which block is free and may never repeat.
            asked = stats.get("requested_bytes", stats["allocated_bytes"])["all"]
            sums["bytes"] += asked["allocated"]
            sums["live"] += asked["current"]
            sums["reserved"] += stats["reserved_bytes"]["all"]["current"]
            sums["peak"] = max(sums["peak"], stats["reserved_bytes"]["all"]["peak"])
        return sums

    def highest_now(self):
        """Returns the peaks over all devices: allocated and reserved."""
        self.see_peaks()
        return tuple(map(max, zip(*self.peaks.values()))) if self.peaks else (0, 0)

    def see_outside(self):
        """Measures what this process uses on its devices outside the allocator's segments: the driver's figure less the reserved bytes."""
        path = os.environ.get("VRAM_SIM_SESSION")
        if not path:
            return
        with open(path, "rb") as file:
            data = file.read()
        _, joined = struct.unpack_from("<QQ", data, 0)
        row_bytes = 16 + 8 * 64
        for row in range(min(joined, 256)):
            process, = struct.unpack_from("<q", data, 16 + row * row_bytes)
            if process != self.process:
                continue
            for device in range(self.torch.cuda.device_count()):
                stats = self.stats(device)
                ordinal = self.ordinal(device)
                used, = struct.unpack_from("<Q", data, 16 + row * row_bytes + 16 + 8 * ordinal)
                reserved = stats["reserved_bytes"]["all"]["current"] if stats else 0
                if used > reserved:
                    self.outside[device] = max(self.outside.get(device, 0), used - reserved)

    @staticmethod
    def ordinal(device):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        return int(visible[device]) if device < len(visible) and visible[device].strip().isdigit() else device

    # --- end -------------------------------------------------------------------------------------------------------------

    def write(self):
        with self.writing:
            if self.written or self.process != os.getpid():
                return
            self.written = True
            self.write_all()

    def write_early(self):
        """Writes a recording when an engine is ready. Its workers are killed when the program ends; if they write no other recording, this
        one is used."""
        with self.writing:
            if self.is_recording():
                self.write_all(f"{self.process}.early.pickle", f"{self.process}.early")

    def write_all(self, recording=None, facts=None):
        try:
            self.see_outside()
            with own_turn():
                self.write_recording(recording or f"{self.process}.pickle")
        except Exception as error:
            self.notes.append(f"write: {error!r}")
        try:
            if self.kinds is not None:
                self.kinds.write(FOLDER)
        except Exception as error:
            self.notes.append(f"kinds: {error!r}")
        try:
            self.write_facts(facts or f"{self.process}.facts")
        except Exception:
            pass  # the command reports that there is no recording

    def write_recording(self, name):
        snapshot = self.torch.cuda.memory._snapshot()
        if not isinstance(snapshot, dict):
            return
        self.segments = snapshot["segments"]
        remove_own_frames(snapshot)
        if self.backward is not None:
            self.backward.complete(snapshot)
        marks = snapshot.setdefault("external_annotations", [])
        for device in self.traced():
            marks += [{"device": device, "stage": "STEP", "name": f"step {i + 1}", "time_us": at} for i, at in enumerate(self.marks)]
        with open(os.path.join(FOLDER, name), "wb") as file:
            pickle.dump(snapshot, file)

    def write_failure(self):
        """Called at the end of every process. One that used a device has written its failure with its recording."""
        if self.process == os.getpid():
            return
        lines, rank = part("failure").lines_before_a_device(), part("fold").own_rank()
        if lines:
            self.put_facts(f"{os.getpid()}.facts", lines)
        elif rank is not None:
            self.put_facts(f"{os.getpid()}.left", [rank])

    def lacks_kernels(self):
        """Returns whether this PyTorch has no kernels for a device: neither machine code for its generation nor code that can be compiled
        for any device."""
        built = [flag.split("_") for flag in self.torch.cuda.get_arch_list()]
        built = [(kind, int(number.rstrip("af")[:-1]), int(number.rstrip("af")[-1])) for kind, number in built]
        has = [self.torch.cuda.get_device_capability(device) for device in range(self.torch.cuda.device_count())]
        return bool(built) and any(not any((major, minor) <= own and (kind == "compute" or major == own[0]) for kind, major, minor in built) for own in has)

    def write_facts(self, name):
        rank, world = self.place()
        self.see_peaks()
        lines = [f"process {self.process}", f"rank {rank}", f"world {world}", f"torch {self.torch.__version__}", f"ended {self.ended}", f"steps {self.steps}"]
        lines.append(f"used {self.begun_us} {time.time_ns() // 1000}")
        for device in self.traced():
            stats = self.stats(device)
            lines.append(
                f"device {device} {self.ordinal(device)} {self.peaks[device][0]} {self.peaks[device][1]}"
                f" {self.outside.get(device, 0)} {stats.get('num_ooms', 0)} {stats.get('num_alloc_retries', 0)}"
            )
        lines += [f"context {self.ordinal(device)} {used}" for device, used in self.outside.items() if device not in self.traced()]
        seconds, size = self.first_use
        lines.append(f"host {seconds:.1f} {size} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024} {self.initialised[0]:.1f} {self.initialised[1]} {self.initialised[2]}")
        lines += [f"stepped {self.marks[-2]}"] if len(self.marks) > 1 else []
        lines += [f"last_step {self.marks[-1]}"] if self.marks else []
        lines += ["free_read " + " ".join(self.free_read.split())[:400]] if self.free_read else []
        route = sys.modules.get("_vram_values_route")
        lines += route.lines() if route is not None else []
        lines += self.serving.lines(self.segments)
        lines += part("failure").lines() if self.ended == "exit" and not self.exits_well else []
        lines += ["note " + note.replace("\n", " ") for note in self.notes]
        try:
            lines += ["built " + " ".join(self.torch.cuda.get_arch_list())] + ["kernels none"] * self.lacks_kernels()
        except Exception as error:
            lines.append(f"note kernels: {error!r}".replace("\n", " "))
        self.put_facts(name, lines)

    @staticmethod
    def put_facts(name, lines):
        path = os.path.join(FOLDER, name)
        with open(path + ".new", "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(path + ".new", path)


RECORDER = Recorder()


def torch_is_there(torch):
    """Called when PyTorch is imported. CUDA is not initialised yet, and may never be."""
    RECORDER.torch = torch
    torch.cuda._lazy_call(RECORDER.begin)
    RECORDER.watch_free_memory(torch.cuda.memory)
    os.register_at_fork(after_in_child=lambda: torch.cuda._lazy_call(RECORDER.begin) if not torch.cuda.is_initialized() else None)
    part("loops").watch(RECORDER, torch, Step)
    part("backward").watch(RECORDER, torch)
    part("engines").watch_captures(RECORDER.serving, torch)
    part("weights").watch_torch(RECORDER, torch)
    part("join").watch(torch, RECORDER)
    optimizer = sys.modules.get("torch.optim.optimizer")
    hook = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if hook is not None:

        def after_step(optimizer, args, kwargs):
            RECORDER.after_step(optimizer, args, kwargs)

        after_step._torchdynamo_disable = True
        hook(after_step)
    watch_optimizers(getattr(optimizer, "Optimizer", None))
    if RANKS and torch.distributed.is_available():
        part("fold").watch(torch, RECORDER)


def watch_optimizers(kind):
    """Notes that the program makes an optimizer. Its steps are then the optimizer's, not calls of models."""
    if kind is None:
        return
    make = kind.__init__

    @functools.wraps(make)
    def __init__(self, *args, **kwargs):
        RECORDER.trains = True
        make(self, *args, **kwargs)

    kind.__init__ = __init__


class Finder:
    """An import finder, first in sys.meta_path. `wanted` maps a module to the function to call after its import."""

    def __init__(self, wanted):
        self.wanted, self.under_way = wanted, set()

    def find_spec(self, name, path=None, target=None):
        """Also called if the program only asks whether the module exists."""
        if name not in self.wanted or name in self.under_way:
            return None
        self.under_way.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.under_way.discard(name)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                self.imported(name, module)

            spec.loader.exec_module = exec_module
        return spec

    def imported(self, name, module):
        after = self.wanted.pop(name, None)
        try:
            if after is not None:
                after(module)
        except Exception as error:
            RECORDER.notes.append(f"import of {name}: {error!r}")


def watch_imports():
    if RANKS:
        part("fold").take_rank()
    part("join").note_rank()
    atexit.register(RECORDER.write_failure)
    part("failure").watch_threads()
    engines, parts = part("engines").modules(RECORDER, RECORDER.serving), (part("weights"), part("kernels"), part("requests"), part("runtime"))
    mpi = {"mpi4py.MPI": part("fold").refuse_mpi} if RANKS else {}
    sys.meta_path.insert(0, Finder({"torch": torch_is_there, **mpi, **engines, **{name: after for each in parts for name, after in each.modules(RECORDER).items()}}))
