"""Computes small values: vram's part in a PyTorch program on the simulated device.

If an operation's operands and results are small, it is repeated on the host, and the results are stored where its kernels would have
stored them. The operation itself still runs completely, with its own memory, launches and addresses. This replaces the CUDA kernels,
below autograd, so it covers every thread, compiled programs and tensor subclasses, and costs nothing for operations on the host.

Each byte of device memory is known, likely or unknown; the driver tracks that (simulator/sim/streams/sim_callbacks.h). Results get their
levels from the operands (vram_values_levels.py). Unknown bytes stay as a kernel leaves them: reads return zeros and are listed.
Reductions and searches over unknown values have likely results, from a table (vram_values_table.py). Random numbers, and what depends on
them, are likely: they come from PyTorch's generator for the host, and a GPU draws different ones."""
import ctypes
import functools
import os
import sys
import threading
import warnings

import _vram_shared as shared

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = int(os.environ.get("VRAM_SIM_COMPUTE") or 0)  # bytes of an operand or a result; 0: compute nothing
# A view may span up to this many times LIMIT, and a tensor of integers or bools may have this many elements: more if they route tokens.
SPREAD = 64 if os.environ.get("VRAM_FIT_ROUTE") else 4
FAILURES = 4  # failures of an operation on the host before it is no longer computed
KNOWN, LIKELY, UNKNOWN, UNTOUCHED = range(4)
NOT_SUPPORTED = 801  # a result code of the driver
ALIKE = {1 << KNOWN: KNOWN, 1 << LIKELY: LIKELY, 1 << UNKNOWN: UNKNOWN}  # bit set of an operand's levels -> its level, if it has only one


def part(name):
    return shared.part(f"vram_values_{name}")


class Driver:
    """Functions of the simulated driver (simulator/standins/libcuda/results.c)."""

    def __init__(self):
        library = ctypes.CDLL("libcuda.so.1")
        number, size, pointer = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p
        self.begin, self.end = library.vram_sim_results_begin, library.vram_sim_results_end
        self.look, self.put = library.vram_sim_results_look, library.vram_sim_results_put
        self.forget, self.answer, self.shield = library.vram_sim_results_forget, library.vram_sim_results_answer, library.vram_sim_results_shield
        self.hide = library.vram_sim_check_hide if "VRAM_SIM_CHECK" in os.environ else lambda hidden: None
        self.captured, self.passed = library.vram_sim_results_captured, library.vram_sim_results_pass
        self.captured.argtypes, self.passed.argtypes = (pointer, pointer, ctypes.c_uint), (number, number)
        self.begin.argtypes = (size, number)
        self.look.argtypes = self.put.argtypes = (number, number, size, pointer, pointer)
        self.forget.argtypes = (number, number)
        self.answer.argtypes = (pointer, ctypes.c_uint, ctypes.c_int)
        self.shield.argtypes, self.end.argtypes = (pointer, pointer, ctypes.c_uint), (ctypes.c_uint,)


class Operand:
    """A small device tensor: its elements on the host, in storage order, and their levels (None: all have the worst level)."""

    __slots__ = ("host", "levels", "worst")

    def __init__(self, host, levels, worst):
        self.host, self.levels, self.worst = host, levels, worst


class Memory:
    """Access to tensors' elements in device memory."""

    def __init__(self, torch):
        self.torch, self.driver, self.local = torch, Driver(), threading.local()
        self.alike = [torch._VF.full((SPREAD * LIMIT,), level, dtype=torch.uint8, device="cpu") for level in (KNOWN, LIKELY, UNKNOWN)]

    @staticmethod
    def extent(tensor):
        """Returns the number of elements from the first to the last, inclusive."""
        if tensor.is_contiguous() or tensor.numel() == 0:
            return tensor.numel()
        return 1 + sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride()))

    @staticmethod
    def is_large(tensor, elements):
        """Returns whether this number of elements of the tensor's type is too large. Masks, indices and lengths decide more than real numbers, and
        an audio clip or a long batch has a mask of megabytes."""
        if tensor.is_floating_point() or tensor.is_complex():
            return elements * tensor.element_size() > LIMIT
        return elements > SPREAD * LIMIT

    def fetch(self, tensor):
        """Returns an Operand; None if the tensor is not small or cannot be read."""
        torch, width = self.torch, tensor.element_size()
        elements = tensor.numel()
        if elements * width > LIMIT and self.is_large(tensor, elements) or tensor.layout is not torch.strided or tensor.is_quantized:
            return None
        extent = self.extent(tensor)
        if extent > SPREAD * LIMIT or extent * width > SPREAD * LIMIT and self.is_large(tensor, extent):
            return None
        host = torch._VF.empty(extent, dtype=tensor.dtype, device="cpu")
        room = self.room(extent * width)
        found = self.driver.look(tensor.data_ptr(), extent, width, host.data_ptr(), room.data_ptr()) if extent else 1 << KNOWN
        if found < 0:
            return None
        host = self.seen_as(tensor, host.as_strided(tensor.size(), tensor.stride()))
        if found in ALIKE:
            return Operand(host, None, ALIKE[found])
        levels = room[:extent].clone().as_strided(tensor.size(), tensor.stride())
        return Operand(host, levels, int(levels.max()))

    def room(self, size):
        """Returns this thread's buffer for the levels of an operand of that many bytes."""
        room = getattr(self.local, "room", None)
        if room is None or room.numel() < size:
            room = self.local.room = self.torch._VF.empty(max(size, SPREAD * LIMIT + 16), dtype=self.torch.uint8, device="cpu")
        return room

    def seen_as(self, tensor, values):
        """Converts between a tensor's values and memory, in both directions: the tensor may be a conjugate or negative view."""
        values = values.conj() if tensor.is_conj() else values
        return self.torch._neg_view(values) if tensor.is_neg() else values

    def lay(self, tensor, values, filler):
        """Returns the values in the order of the tensor's memory, from its first element to its last."""
        if tensor.is_contiguous() and values.is_contiguous() and values.shape == tensor.shape:
            return values
        laid = self.torch._VF.full((self.extent(tensor),), filler, dtype=values.dtype, device="cpu")
        laid.as_strided(tensor.size(), tensor.stride()).copy_(values)
        return laid

    def put(self, tensor, values, levels):
        """Stores values. levels is one level for all elements, or a tensor of levels. values None means unknown."""
        torch, width, extent = self.torch, tensor.element_size(), self.extent(tensor)
        if extent == 0 or tensor.layout is not torch.strided:
            return
        if values is None or extent > SPREAD * LIMIT or extent * width > SPREAD * LIMIT and self.is_large(tensor, extent):
            self.driver.forget(tensor.data_ptr(), extent * width)
            return
        whole = extent == tensor.numel()
        if isinstance(levels, int) and whole:
            levels = None if levels == KNOWN else self.alike[levels]
        else:
            levels = torch._VF.full((), levels, dtype=torch.uint8, device="cpu") if isinstance(levels, int) else levels
            levels = self.lay(tensor, levels.expand(tensor.size()), UNTOUCHED)
        if tensor.is_conj() or tensor.is_neg() or values.is_conj() or values.is_neg():
            values = self.seen_as(tensor, values).resolve_conj().resolve_neg()
        values = self.lay(tensor, values.to(tensor.dtype), 0)
        self.driver.put(tensor.data_ptr(), extent, width, values.data_ptr(), None if levels is None else levels.data_ptr())


class Values:
    def __init__(self, torch):
        self.torch, self.memory = torch, Memory(torch)
        self.driver = self.memory.driver
        self.local = threading.local()
        self.cuda = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
        self.stream = torch._C._cuda_getCurrentRawStream
        self.generator = torch.Generator()
        self.libraries, self.taken = {}, set()  # by namespace
        self.stopped = False  # no further values are computed
        self.rehearsals = 0  # under way: an engine runs its model on made-up inputs, and kernels of Triton are not computed
        self.graphs = part("graphs").Graphs(self)
        self.begin, self.plain = part("call").begin, torch._C.DisableTorchFunction

    def run(self, operation, args, kwargs):
        """Runs an operation that may be small; PyTorch calls this. Operations that it calls itself are also computed, because they may
        decide sizes."""
        local = self.local
        if operation.failures >= FAILURES or self.stopped or getattr(local, "counted", False) or getattr(local, "idle", False):
            return operation.call(self.cuda, *args, **kwargs)
        if self.graphs.current is not None and self.torch._C._cuda_isCurrentStreamCapturing():
            return self.graphs.operation(operation, args, kwargs, functools.partial(operation.call, self.cuda, *args, **kwargs))
        call = self.without_harm(operation, self.begin, self, operation, args, kwargs)
        if call is None:
            return operation.call(self.cuda, *args, **kwargs)
        if call.results is None:
            out = operation.call(self.cuda, *args, **kwargs)
        else:
            local.counted = operation.counted is not None
            shields = call.shield()
            try:
                out = operation.call(self.cuda, *args, **kwargs)
            finally:
                local.counted = False
                self.driver.end(shields)
        self.without_harm(operation, call.finish, out)
        return out

    def forgetting(self, operation):
        """Returns a function that calls a library's operation and then marks its results unknown. They may be computed afterwards."""
        call, handed_on = operation.call, operation.handed_on

        def called(*args, **kwargs):
            made = call(*args, **kwargs)
            own = made if isinstance(made, (list, tuple)) else (made,)
            for place, tensor in enumerate((*own, *operation.updates(args[1:], kwargs)) if operation.updated else own):
                if place != handed_on and isinstance(tensor, self.torch.Tensor) and tensor.is_cuda and tensor.layout is self.torch.strided:
                    if self.graphs.current is None:
                        self.memory.put(tensor, None, UNKNOWN)
                    else:
                        self.graphs.note_library(tensor)
            return made
        return called

    def without_harm(self, operation, function, *args):
        """Calls the function, whose reads of the host's memory are not the program's. The program continues even if it fails."""
        self.driver.hide(1)
        try:
            with self.plain():
                return function(*args)
        except Exception as error:
            operation.failures = FAILURES
            sys.stderr.write(f"vram sim: aten::{operation.name} is no longer computed: {error!r}\n")
            return None
        finally:
            self.driver.hide(0)

    def install(self):
        for name in ("levels", "table", "route", "sparse"):
            part(name)
        self.take_operations()
        if hasattr(self.torch.library, "get_kernel"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                part("sparse").install(self)
        load = self.torch.ops.load_library

        @functools.wraps(load)
        def load_library(path):
            try:
                load(path)
            finally:
                self.take_operations()

        self.torch.ops.load_library = load_library

    def take_operations(self):
        """Replaces all operations that exist and have not been replaced: libraries bring their own."""
        operations = part("operations")
        place = self.in_place_of_kernels if hasattr(self.torch.library, "get_kernel") else self.in_front_of_kernels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in operations.names(self.torch):
                if name not in self.taken:
                    self.taken.add(name)
                    space, name = name.split("::")
                    packet, _, overload = name.partition(".")
                    op = getattr(getattr(getattr(self.torch.ops, space), packet), overload or "default")
                    if not op.is_view:
                        place(op, operations.Operation, self.library(space))

    def library(self, space):
        if space not in self.libraries:
            self.libraries[space] = self.torch.library.Library(space, "IMPL")
        return self.libraries[space]

    def in_place_of_kernels(self, op, kind, library):
        operation = kind(self.torch, op, self.torch.library.get_kernel(op, "CUDA").call_boxed)
        operation.call = self.forgetting(operation) if operation.by_library else operation.call
        library.impl(op, kernel_of(self, operation), "CUDA", allow_override=True)

    def in_front_of_kernels(self, op, kind, library):
        """Installs the operation as its BackendSelect kernel, which runs right before the device's kernel, for all devices. Before 2.9 a
        replaced CUDA kernel could not be called any more."""
        torch = self.torch
        operation = kind(torch, op, op.redispatch)
        operation.call = self.forgetting(operation) if operation.by_library else operation.call
        library.impl(op, chooser_of(torch, op, operation, kernel_of(self, operation)), "BackendSelect", with_keyset=True)


def chooser_of(torch, op, operation, kernel):
    """Calls our function for CUDA, and PyTorch's own for other devices."""
    below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
    cuda, redispatch, tensors, numbers = torch._C.DispatchKey.CUDA, op.redispatch, operation.tensors, (int, float, complex)
    makes = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "BackendSelect")  # the operation creates a tensor on the device given by an argument

    def keys_of(device):
        return torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, torch._C._dispatch_key_for_device(torch.device(device or "cpu").type)))

    def chooser(keys, *args, **kwargs):
        try:
            keys = keys_of(kwargs.get("device")) if makes else keys & below
            if keys.highestPriorityTypeId() == cuda:
                return kernel(*args, **kwargs)
            for place in tensors:
                if place < len(args) and isinstance(args[place], numbers):
                    args = operation.with_tensors(args)
            return redispatch(keys, *args, **kwargs)
        except BaseException as error:
            args = kwargs = None  # as in kernel_of()
            raise error.with_traceback(None)

    shared.leave_to_python(torch, chooser.__code__)
    return chooser


def kernel_of(values, operation):
    """Returns the function that replaces an operation's kernels. Nearly all its calls are large, so that case is fast."""
    kind, call, cuda, run, row = values.torch.Tensor, operation.call, values.cuda, values.run, operation.row is not None
    tensors, numbers, most = operation.tensors, (int, float, complex), SPREAD * LIMIT  # most: of integers

    def kernel(*args, **kwargs):
        try:
            for place in tensors:
                if place < len(args) and isinstance(args[place], numbers):
                    args = operation.with_tensors(args)
            if not row:
                for value in args:
                    if isinstance(value, kind):
                        if value.numel() > LIMIT and (value.is_floating_point() or value.numel() > most):
                            return call(cuda, *args, **kwargs)
                    elif type(value) is list:
                        for item in value:
                            if isinstance(item, kind) and item.numel() > LIMIT and (item.is_floating_point() or item.numel() > most):
                                return call(cuda, *args, **kwargs)
            return run(operation, args, kwargs)
        except BaseException as error:
            args = kwargs = value = item = None  # drop them, because the frame stays with the error
            raise error.with_traceback(None)

    shared.leave_to_python(values.torch, kernel.__code__)
    return kernel


def own_code():
    """Yields the code objects of the functions and methods of these modules."""
    for name in ("_vram_values", "_vram_values_call", "_vram_values_levels", "_vram_values_table", "_vram_values_route", "_vram_values_operations", "_vram_values_layers", "_vram_values_sparse"):
        for holder in [sys.modules[name], *(value for value in vars(sys.modules[name]).values() if isinstance(value, type))]:
            for value in list(vars(holder).values()):
                code = getattr(value, "__code__", None)
                if code is not None and code.co_filename.startswith(HERE):
                    yield code


COMPUTED = 2  # calls of a measured function, of thousands


def measured(function):
    """Returns a function for a measurement. Only the first calls are computed; the others have the same results, and change nothing."""
    calls = 0

    def call():
        nonlocal calls
        calls += 1
        if calls <= COMPUTED or not BEGUN:
            return function()
        values = BEGUN[0]
        before, values.local.idle = getattr(values.local, "idle", False), True
        shields = values.driver.shield(*values.graphs.everywhere, 1)
        try:
            return function()
        finally:
            values.driver.end(shields)
            values.local.idle = before
    return call


def watch_measurements(testing):
    """Triton's measurements repeat a function until some virtual time has passed."""
    for name in ("do_bench", "do_bench_cudagraph"):
        if hasattr(testing, name):
            setattr(testing, name, of_measured(getattr(testing, name)))


def watch_inductor(benchmarking):
    own = getattr(benchmarking, "InductorBenchmarker", None)
    if own is not None:
        measure = own.benchmark_gpu

        @functools.wraps(measure)
        def benchmark_gpu(self, _callable, *args, **kwargs):
            return measure(self, measured(_callable), *args, **kwargs)

        own.benchmark_gpu = benchmark_gpu


def of_measured(measure):
    @functools.wraps(measure)
    def do_bench(fn, *args, **kwargs):
        return measure(measured(fn), *args, **kwargs)
    return do_bench


BEGUN = []  # this process's Values


def stop():
    """Stops computing values. Memory that kernels write from now on is unknown, and reads of it are listed."""
    for values in BEGUN:
        values.stopped = True


def rehearse(more):
    """Begins a rehearsal (1) or ends one (-1). Operations are still computed, because they may decide sizes. Kernels of Triton, each of which takes
    seconds in all, are computed only for what graphs replay later."""
    for values in BEGUN:
        values.rehearsals += more


def begin(torch):
    """Called when PyTorch is imported. The operations are replaced when it initialises CUDA."""
    if LIMIT <= 0 or not hasattr(torch, "library"):
        return

    def install():
        try:
            values = Values(torch)
            if values.driver.begin(0, 0) == NOT_SUPPORTED:
                return  # the simulator keeps no written bytes, or the host can access them all
            values.install()
            part("graphs").watch(values.graphs)
            part("triton").begin(values)
            BEGUN.append(values)
            for code in own_code():
                shared.leave_to_python(torch, code)
        except Exception as error:
            sys.stderr.write(f"vram sim: small operations are not computed: {error!r}\n")

    torch.cuda._lazy_call(install)
    shared.when_imported("triton.testing", watch_measurements)
    shared.when_imported("torch._inductor.runtime.benchmarking", watch_inductor)
    if not os.environ.get("VRAM_FIT"):  # under `vram fit` the recorder does it
        remove_own_frames(torch)


def remove_own_frames(torch):
    """Removes the frames of our replaced kernels from the snapshots that a program takes."""
    memory = torch.cuda.memory
    taken = memory._snapshot

    @functools.wraps(taken)
    def _snapshot(*args, **kwargs):
        snapshot = taken(*args, **kwargs)
        if isinstance(snapshot, dict):
            entries = [entry for trace in snapshot["device_traces"] for entry in trace]
            for segment in snapshot["segments"]:
                entries += [segment, *segment["blocks"]]
            for entry in entries:
                frames = entry.get("frames")
                if frames and any(frame["filename"].startswith(HERE) for frame in frames):
                    entry["frames"] = [frame for frame in frames if not frame["filename"].startswith(HERE)]
        return snapshot

    memory._snapshot = _snapshot


def watch_imports():
    """Called by sitecustomize: begins when PyTorch is imported, if values are computed."""
    if LIMIT > 0:
        shared.when_imported("torch", begin)
