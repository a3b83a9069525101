"""Reports to the checker of `vram check`: the blocks of PyTorch's caching allocator, by the callbacks that PyTorch has for its own sanitizer."""
import builtins
import ctypes
import functools
import importlib
import threading

import _vram_shared as shared


def reporters():
    """The functions of the simulated driver that receive the beginning and the end of a block; None if another driver is loaded."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        begin, end = driver.vram_sim_check_block, driver.vram_sim_check_block_end
    except (OSError, AttributeError):
        return None
    begin.argtypes, end.argtypes = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64), (ctypes.c_uint64,)
    begin.restype, end.restype = ctypes.c_int, None
    return begin, end


class Sizes:
    """Looks up the sizes of PyTorch's blocks. It has to list all blocks for that, so it stops after a number of them."""

    UNKNOWN = 2**64 - 1
    MOST_BLOCKS = 20_000_000

    def __init__(self, torch):
        self.torch, self.listed = torch, 0

    def of(self, address):
        found = self.UNKNOWN
        if self.listed < self.MOST_BLOCKS:
            for segment in self.torch.cuda.memory_snapshot():
                self.listed += len(segment["blocks"])
                if segment["address"] <= address < segment["address"] + segment["total_size"]:
                    found = next((block["size"] for block in segment["blocks"] if block["address"] == address), found)
        return found


def trace_of(torch):
    """PyTorch's module of callbacks and the function that switches them on: both were renamed in 2.4. None before 2.0."""
    for name, switch in (("torch.cuda._gpu_trace", "_activate_gpu_trace"), ("torch.utils._cuda_trace", "_activate_cuda_trace")):
        if hasattr(torch._C, switch):
            return importlib.import_module(name), getattr(torch._C, switch)
    return None


class GraphPools:
    """Knows whether a thread allocates in a pool whose memory captured graphs use. CUDA graph trees put the inputs of a graph there, before its
    capture, and its launches use them although they were freed."""

    def __init__(self, torch):
        self.ids, self.local = set(), threading.local()
        self.wrap(torch.cuda.CUDAGraph, "capture_end", after=lambda graph: self.ids.add(tuple(graph.pool())))
        for name in ("_cuda_beginAllocateToPool", "_cuda_beginAllocateCurrentStreamToPool", "_cuda_beginAllocateCurrentThreadToPool"):
            for holder in (torch._C, torch.cuda.memory):
                self.wrap(holder, name, after=lambda device, pool: self.enter(tuple(pool)))
        for holder in (torch._C, torch.cuda.memory):
            self.wrap(holder, "_cuda_endAllocateToPool", after=lambda device, pool: self.enter(None))

    @staticmethod
    def wrap(holder, name, after):
        function = getattr(holder, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def wrapped(*arguments):
            result = function(*arguments)
            after(*arguments)
            return result

        setattr(holder, name, wrapped)

    def enter(self, pool):
        self.local.pool = pool

    def are_used(self):
        return getattr(self.local, "pool", None) in self.ids


def made_callbacks(callbacks):
    """Returns PyTorch's registry of callbacks for allocations, which had another name before 2.1."""
    return getattr(callbacks, "MemoryAllocationCallbacks", None) or callbacks.CUDAMemoryAllocationCallbacks


def keep_exceptions(registry, modules):
    """Keeps an exception that is pending when PyTorch calls the callbacks of a registry (CallbackRegistry). A tensor that is freed at that moment
    would lose it; so PyTorch's non-reentrant checkpoints would fail. PyTorch imports one of the modules, calls fire_callbacks(), and drops the
    result: the exception is taken at the first and is pending again after the last (check_errors.c)."""
    driver, python, local = ctypes.PyDLL("libcuda.so.1"), ctypes.pythonapi, threading.local()
    take, own_import, fire = driver.vram_sim_check_error_take, builtins.__import__, registry.fire_callbacks
    take.argtypes, take.restype = (), ctypes.c_void_p
    restore = ctypes.cast(driver.vram_sim_check_error_restore, ctypes.c_void_p)
    capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", python))

    @functools.wraps(own_import)
    def importing(name, *arguments, **options):
        if name in modules:
            local.error = take()
        return own_import(name, *arguments, **options)

    @functools.wraps(fire)
    def fire_callbacks(self, *arguments, **options):
        error, local.error = getattr(local, "error", None), None
        fire(self, *arguments, **options)
        return capsule(error, None, restore) if error else None

    builtins.__import__, registry.fire_callbacks = importing, fire_callbacks


def begin(torch):
    """Called with the module torch right after its import, before its first allocation."""
    functions, trace = reporters(), trace_of(torch) if torch.backends.cuda.is_built() else None
    if functions is None or trace is None:
        return
    allocated, freed = functions
    callbacks, activate = trace
    keep_exceptions(type(made_callbacks(callbacks)), ("torch.cuda", callbacks.__name__))
    pools, sizes = GraphPools(torch), Sizes(torch)
    current_stream, current_device = torch._C._cuda_getCurrentRawStream, torch._C._cuda_getDevice

    def begin_block(address):
        # The callback does not get the size. A block reaches at most to the next one, and that is nearly always enough.
        of_graphs, stream = pools.are_used(), current_stream(current_device())
        if allocated(address, 0, of_graphs, stream):
            allocated(address, sizes.of(address), of_graphs, stream)

    callbacks.register_callback_for_memory_allocation(begin_block)
    callbacks.register_callback_for_memory_deallocation(freed)
    activate()
    follow_backward(torch)


def follow_backward(torch):
    """Lets the stacks of the engine's threads go on with that of the backward pass's caller."""
    driver, called = ctypes.CDLL("libcuda.so.1"), getattr(torch.autograd, "_engine_run_backward", None)
    if called is None:
        return
    driver.vram_sim_check_call.argtypes, driver.vram_sim_check_call.restype = (), ctypes.c_uint32
    driver.vram_sim_check_return.argtypes, driver.vram_sim_check_return.restype = (ctypes.c_uint32,), None

    @functools.wraps(called)
    def _engine_run_backward(*arguments, **options):
        before = driver.vram_sim_check_call()
        try:
            return called(*arguments, **options)
        finally:
            driver.vram_sim_check_return(before)

    torch.autograd._engine_run_backward = _engine_run_backward


def begin_sleep(vram_torch):
    """Reports when vram's allocator moves memory to the host and back. Its copies take several blocks at once."""
    moves = ctypes.CDLL("libcuda.so.1").vram_sim_check_moves if reporters() else None

    def moving(function):
        @functools.wraps(function)
        def moved(*arguments, **options):
            moves(1)
            try:
                return function(*arguments, **options)
            finally:
                moves(0)
        return moved

    for name in ("sleep", "wake") if moves else ():
        setattr(vram_torch.Allocator, name, moving(getattr(vram_torch.Allocator, name)))


def watch_imports():
    """Called by sitecustomize."""
    shared.when_imported("torch", begin)
    shared.when_imported("vram_torch", begin_sleep)
