#!/usr/bin/env python3
"""Tests enable() with a fake torch that records the calls it gets, and calls the adapter's functions as PyTorch does."""
import atexit
import ctypes
import os
import shutil
import sys
import tempfile
import threading
import types
import warnings

import cases
import vram_torch

MIB = 1 << 20
HOOKS = [
    ("set_init_fn", "vram_torch_init"),
    ("set_reset_fn", "vram_torch_reset"),
    ("set_memory_fraction_fn", "vram_torch_memory_fraction"),
    ("set_base_alloc_fn", "vram_torch_base_alloc"),
    ("set_record_stream_fn", "vram_torch_record_stream"),
]
POOL_HOOKS = [
    ("set_begin_allocate_to_pool", "vram_torch_begin_allocate_to_pool"),
    ("set_end_allocate_to_pool_fn", "vram_torch_end_allocate_to_pool"),
    ("set_release_pool", "vram_torch_release_pool"),
]
REDIRECTED = [
    "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "memory_allocated", "max_memory_allocated", "memory_reserved",
    "max_memory_reserved", "reset_peak_memory_stats", "reset_accumulated_memory_stats",
]


class Hooks:
    """Fakes torch._C._CUDAPluggableAllocator: every setter takes an integer."""

    def __init__(self, events, methods):
        for method in methods:
            setattr(self, method, lambda address, name=method: events.append((name, address)))


class Graph:
    """Fakes torch.cuda.CUDAGraph. A test that captures puts PyTorch's actions into `begin`."""

    begin = None

    def capture_begin(self, *arguments, **named):
        return Graph.begin(*arguments, **named) if Graph.begin else None


def refused(*_arguments, **_named):
    raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats.\nC++ stack follows")


def fake_torch(events, initialized=False, methods=tuple(name for name, _ in HOOKS + POOL_HOOKS), cuda="12.4", pluggable=True, change_fails=False):
    """Makes a package torch in a temporary folder, with lib/libc10.so if the build made one."""
    root = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, root)
    folder = os.path.join(root, "torch")
    os.makedirs(os.path.join(folder, "lib"))
    if os.environ.get("FAKE_C10"):
        shutil.copy(os.environ["FAKE_C10"], os.path.join(folder, "lib", "libc10.so"))
    torch, memory = types.ModuleType("torch"), types.ModuleType("torch.cuda.memory")
    torch.__file__ = os.path.join(folder, "__init__.py")
    torch.version = types.SimpleNamespace(cuda=cuda, hip=None)
    torch.cuda = types.ModuleType("torch.cuda")
    torch.cuda.memory = memory
    torch.cuda.is_initialized = lambda: initialized
    torch.cuda.current_device = lambda: 1
    torch.cuda.CUDAGraph = Graph
    torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=0)

    class Pluggable:
        def __init__(self, path, alloc, free):
            events.append(("CUDAPluggableAllocator", path, alloc, free))
            self.hooks = Hooks(events, methods)

        def allocator(self):
            return self.hooks

    def change_current_allocator(allocator):
        events.append(("change_current_allocator", type(allocator).__name__))
        if change_fails:
            raise RuntimeError("Can't swap an already initialized allocator\nException raised from ...")

    if pluggable:
        memory.CUDAPluggableAllocator = Pluggable
    memory.change_current_allocator = change_current_allocator
    for name in REDIRECTED:
        setattr(memory, name, refused)
        setattr(torch.cuda, name, refused)
    sys.modules.update({"torch": torch, "torch.cuda": torch.cuda, "torch.cuda.memory": memory})
    return torch


def one_line(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except vram_torch.Error as error:
        assert str(error) and "\n" not in str(error), repr(error)
        return str(error)
    raise AssertionError("no Error")


class Caller:
    """The build's libc10.so: calls addresses through std::function, and catches what they throw."""

    def __init__(self):
        if not os.environ.get("FAKE_C10"):
            cases.skip("no C++ compiler: what throws is not tried")
        self.library = ctypes.CDLL(os.environ["FAKE_C10"])
        self.library.fake_malloc.restype = self.library.fake_base_alloc.restype = ctypes.c_void_p

    def call(self, name, address, *arguments):
        """Returns (result, text of the exception)."""
        text = ctypes.create_string_buffer(4096)
        result = getattr(self.library, name)(ctypes.c_uint64(address), *arguments, text, ctypes.c_size_t(len(text)))
        return result, text.value.decode()

    def malloc(self, address, size, device=0, stream=None):
        return self.call("fake_malloc", address, ctypes.c_size_t(size), device, ctypes.c_void_p(stream))


def symbol(made, name):
    return ctypes.cast(getattr(ctypes.CDLL(made.path), name), ctypes.c_void_p).value


def test_order_and_addresses():
    events = []
    fake_torch(events)
    made = vram_torch.enable()
    expected = [("CUDAPluggableAllocator", made.path, "vram_torch_malloc", "vram_torch_free")]
    expected += [(method, symbol(made, name)) for method, name in HOOKS + POOL_HOOKS]
    expected += [("change_current_allocator", "Pluggable")]
    assert events == expected, events
    assert os.path.isabs(made.path) and os.path.exists(made.path)
    assert vram_torch.is_enabled()
    assert vram_torch.enable() is made and vram_torch.allocator() is made and len(events) == len(expected)


def test_an_older_torch_has_fewer_hooks():
    events = []
    fake_torch(events, methods=("set_reset_fn", "set_something_else"))
    made = vram_torch.enable()
    assert [event[0] for event in events] == ["CUDAPluggableAllocator", "set_reset_fn", "change_current_allocator"]
    assert events[1][1] == symbol(made, "vram_torch_reset")


@cases.environment(VRAM_ALLOC_CONF="max_split_size_mb:64")
def test_redirected():
    torch = fake_torch([])
    vram_torch.enable(conf="max_split_size_mb:128")
    os.environ["VRAM_SIM"] = "memory=1GiB,devices=2"  # replaces the GPU, from the first use on
    made = vram_torch.allocator()
    made.malloc(3 * MIB, device=1)
    assert made.configuration() == "max_split_size_mb:128"
    for module in (torch.cuda, torch.cuda.memory):
        assert module.memory_allocated() == 3 * MIB  # on the current device, 1
        assert module.memory_allocated(0) == module.memory_allocated("cuda:0") == 0
        assert module.memory_stats()["reserved_bytes.all.current"] == 20 * MIB
        assert module.memory_stats_as_nested_dict(device=1)["segment"]["large_pool"]["current"] == 1
        assert "device ID  1" in module.memory_summary(abbreviated=True)
        module.reset_peak_memory_stats()
        module.reset_accumulated_memory_stats()
        assert module.max_memory_allocated() == module.max_memory_reserved() - 17 * MIB == 3 * MIB


def test_not_redirected():
    torch = fake_torch([])
    vram_torch.enable(redirect=False)
    assert torch.cuda.memory_stats is refused and torch.cuda.memory.memory_allocated is refused


def test_graphs_are_refused_without_hooks_for_pools():
    events = []
    torch = fake_torch(events, methods=[name for name, _ in HOOKS + POOL_HOOKS[:2]])
    early = torch.cuda.CUDAGraph()
    assert early.capture_begin() is None
    vram_torch.enable()
    assert "graphs" in one_line(early.capture_begin)
    assert "graphs" in one_line(torch.cuda.CUDAGraph)


class Pools:
    """Calls the hooks for private pools as PyTorch does."""

    def __init__(self, events):
        self.caller, self.address = Caller(), dict(event[:2] for event in events)

    def pool(self, name, hook, device, identity):
        first, second = (ctypes.c_uint64(number) for number in identity)
        return self.caller.call(name, self.address[hook], device, first, second)[1]

    def begin(self, identity, device=0):
        return self.pool("fake_begin_pool", "set_begin_allocate_to_pool", device, identity)

    def end(self, identity, device=0):
        return self.pool("fake_end_pool", "set_end_allocate_to_pool_fn", device, identity)

    def release(self, identity, device=0):
        return self.pool("fake_end_pool", "set_release_pool", device, identity)


@cases.environment(VRAM_LIBCUDA=os.environ.get("SIMCUDA", ""))
def test_a_graph_has_memory_of_its_own():
    events = []
    torch = fake_torch(events)
    made, hooks = vram_torch.enable(), Pools(events)
    made.free(made.malloc(3 * MIB, stream=0))
    cuda = ctypes.CDLL(os.environ["SIMCUDA"])
    context, streams = ctypes.c_uint64(0), (ctypes.c_void_p * 3)()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
    for index in range(3):
        assert cuda.cuStreamCreate(ctypes.byref(streams, index * ctypes.sizeof(ctypes.c_void_p)), 1) == 0
    captured, joined, aside = streams
    torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=captured)

    def begin():
        assert hooks.begin((1, 0)) == ""
        assert cuda.cuStreamBeginCapture_v2(ctypes.c_void_p(captured), 0) == 0

    Graph.begin = begin
    torch.cuda.CUDAGraph().capture_begin()
    event = ctypes.c_void_p()
    assert cuda.cuEventCreate(ctypes.byref(event), 2) == 0
    assert cuda.cuEventRecord(event, ctypes.c_void_p(captured)) == 0
    assert cuda.cuStreamWaitEvent(ctypes.c_void_p(joined), event, 0) == 0
    inside = [made.malloc(3 * MIB, stream=captured), made.malloc(3 * MIB, stream=joined)]
    outside = made.malloc(3 * MIB, stream=aside)
    made.record_stream(inside[0], joined)
    made.free(inside[0])  # deferred: an event would become a node of the graph
    made.free(made.malloc(MIB, stream=aside))
    assert made.memory_stats()["active_bytes.all.current"] == 9 * MIB
    assert cuda.cuEventRecord(event, ctypes.c_void_p(joined)) == 0
    assert cuda.cuStreamWaitEvent(ctypes.c_void_p(captured), event, 0) == 0
    graph = ctypes.c_void_p()
    assert cuda.cuStreamEndCapture(ctypes.c_void_p(captured), ctypes.byref(graph)) == 0
    assert hooks.end((1, 0)) == ""
    count = ctypes.c_size_t(0)
    assert cuda.cuGraphGetNodes(graph, None, ctypes.byref(count)) == 0 and count.value == 0
    made.free(inside[1])
    made.free(outside)
    made.empty_cache()  # the graph still exists, so its memory stays
    assert made.memory_reserved() == 40 * MIB and made.memory_allocated() == 0
    later = made.malloc(3 * MIB, stream=captured)
    assert later not in inside  # the graph's memory is not reused outside it
    made.free(later)
    assert made._library.vram_torch_pool_count() == 1
    hooks.release((1, 0))
    made.empty_cache()
    assert made.memory_reserved() == 0 and made._library.vram_torch_pool_count() == 0
    made.check()


class LaunchedGraph(Graph):
    """Also launches, and counts that."""

    launches = 0

    def pool(self):
        return (1, 0)

    def replay(self):
        self.launches += 1


@cases.environment(VRAM_LIBCUDA=os.environ.get("SIMCUDA", ""), VRAM_ALLOC_CONF="lend_graph_pools:True")
def test_a_graph_lends_its_memory_between_launches():
    events = []
    torch = fake_torch(events)
    torch.cuda.CUDAGraph, torch.cuda.current_device = type("CUDAGraph", (LaunchedGraph,), {}), lambda: 0
    made, hooks = vram_torch.enable(), Pools(events)
    made.free(made.malloc(MIB, stream=0))
    cuda = ctypes.CDLL(os.environ["SIMCUDA"])
    context, stream = ctypes.c_uint64(0), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
    torch.cuda.current_stream = lambda device=None: types.SimpleNamespace(cuda_stream=stream.value)

    def begin():
        assert hooks.begin((1, 0)) == ""
        assert cuda.cuStreamBeginCapture_v2(stream, 0) == 0

    Graph.begin = begin
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    made.free(made.malloc(30 * MIB, stream=stream.value))
    captured = ctypes.c_void_p()
    assert cuda.cuStreamEndCapture(stream, ctypes.byref(captured)) == 0
    assert hooks.end((1, 0)) == ""
    graph.replay()
    made.set_memory_fraction(40 * MIB / made.mem_get_info()[1])
    loan = made.malloc(28 * MIB, stream=0)
    assert "lent" in one_line(graph.replay) and graph.launches == 1
    made.free(loan)
    graph.replay()
    assert graph.launches == 2
    made.check()


def test_a_capture_that_does_not_begin_leaves_nothing():
    torch = fake_torch([])
    made = vram_torch.enable()
    os.environ["VRAM_SIM"] = "memory=1GiB"
    torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=77)

    def begin():
        raise KeyError("before the hook")

    Graph.begin = begin
    try:
        torch.cuda.CUDAGraph().capture_begin()
    except KeyError:
        pass
    hook = made._library.vram_torch_begin_allocate_to_pool
    made._library.vram_torch_begin_allocate_to_pool.argtypes = [ctypes.c_int, PoolId, ctypes.c_void_p]
    hook(0, PoolId(0, 1), None)
    inside = made.malloc(3 * MIB)  # by this thread, on any stream
    made._library.vram_torch_end_allocate_to_pool.argtypes = [ctypes.c_int, PoolId]
    made._library.vram_torch_end_allocate_to_pool(0, PoolId(0, 1))
    made.free(inside)
    assert made.malloc(3 * MIB) != inside


class PoolId(ctypes.Structure):
    _fields_ = [("first", ctypes.c_uint64), ("second", ctypes.c_uint64)]


def test_pools_belong_to_threads_and_are_counted():
    events = []
    fake_torch(events)
    made, hooks = vram_torch.enable(), Pools(events)
    os.environ["VRAM_SIM"] = "memory=1GiB,devices=2"
    assert hooks.begin((0, 5)) == "" and hooks.begin((0, 5), device=1) == "" and hooks.begin((0, 5)) == ""
    assert made._library.vram_torch_pool_count() == 2
    inside = made.malloc(3 * MIB)
    other = []
    thread = threading.Thread(target=lambda: other.append(made.malloc(3 * MIB)))
    thread.start()
    thread.join()
    made.free(inside)
    made.free(other[0])
    assert made.malloc(3 * MIB) == inside and hooks.end((0, 5)) == "" and hooks.end((0, 5)) == ""
    assert made.malloc(3 * MIB) == other[0]
    assert "vram_torch_end_allocate_to_pool|" in hooks.end((0, 5)) and "vram_torch_end_allocate_to_pool|" in hooks.end((9, 9))
    hooks.release((0, 5))
    assert made._library.vram_torch_pool_count() == 2
    hooks.release((0, 5))
    hooks.release((0, 5), device=1)
    assert made._library.vram_torch_pool_count() == 1  # its route is open
    assert hooks.end((0, 5), device=1) == "" and made._library.vram_torch_pool_count() == 0
    hooks.release((7, 7))
    assert "vram_torch_begin_allocate_to_pool|" in hooks.begin((0, 6), device=9)
    assert made._library.vram_torch_pool_count() == 0
    made.check()


def test_the_hooks_work_as_pytorch_calls_them():
    caller, events = Caller(), []
    fake_torch(events)
    made = vram_torch.enable()
    address = dict(event[:2] for event in events)
    malloc, free = symbol(made, "vram_torch_malloc"), symbol(made, "vram_torch_free")
    os.environ["VRAM_SIM"] = "memory=1GiB,manual"
    assert caller.call("fake_init", address["set_init_fn"], 1) == (None, "") or made.last_error() == ""
    block, thrown = caller.malloc(malloc, 3 * MIB)
    assert block and not thrown and made.memory_allocated() == 3 * MIB
    size = ctypes.c_size_t(0)
    base = caller.library.fake_base_alloc(ctypes.c_uint64(address["set_base_alloc_fn"]), ctypes.c_void_p(block + MIB), ctypes.byref(size))
    assert (base, size.value) == (block, 20 * MIB)
    assert caller.call("fake_record_stream", address["set_record_stream_fn"], ctypes.c_void_p(block), ctypes.c_void_p(2))[1] == ""
    caller.library.fake_free(ctypes.c_uint64(free), ctypes.c_void_p(block), ctypes.c_size_t(3 * MIB), 0, None)
    assert made.memory_allocated() == 0 and made.memory_stats()["active_bytes.all.current"] == 3 * MIB
    assert caller.call("fake_reset", address["set_reset_fn"])[1] == ""
    assert made.memory_reserved() == 0
    assert caller.call("fake_fraction", address["set_memory_fraction_fn"], ctypes.c_double(0.5), 0)[1] == ""
    kind, function, file, line, text = caller.malloc(malloc, 600 * MIB)[1].split("|")
    assert (kind, function, file, line) == ("OutOfMemoryError", "vram_torch_malloc", "vram_torch.c", "0")
    assert text == ("CUDA out of memory. Tried to allocate 600.00 MiB. GPU 0 has a total capacity of 1024.00 MiB of which 1024.00 MiB is free. " +
                    vram_torch.last_oom()) and "512.00 MiB" in text
    assert caller.malloc(malloc, 400 * MIB)[1] == ""  # the thrown exception changed nothing
    assert caller.malloc(malloc, 0) == (None, "")
    assert "vram_torch_memory_fraction" in caller.call("fake_fraction", address["set_memory_fraction_fn"], ctypes.c_double(2), 0)[1]
    made.check()


@cases.environment(VRAM_LIBCUDA="/no/such/libcuda.so.1")
def test_a_missing_driver_is_said_when_cuda_is_initialised():
    caller, events = Caller(), []
    fake_torch(events)
    vram_torch.enable()
    thrown = caller.call("fake_init", dict(event[:2] for event in events)["set_init_fn"], 1)[1]
    assert thrown.startswith("vram_torch_init|") and "/no/such/libcuda.so.1" in thrown


def test_no_way_to_raise_is_a_warning():
    torch = fake_torch([])
    shutil.rmtree(os.path.join(os.path.dirname(torch.__file__), "lib"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vram_torch.enable()
    assert [entry.category for entry in caught] == [RuntimeWarning] and "raise" in str(caught[0].message)


def unchanged(torch, events):
    assert not vram_torch.is_enabled()
    assert events == [] and torch.cuda.memory_stats is refused and torch.cuda.CUDAGraph().capture_begin() is None


def test_no_torch():
    sys.modules["torch"] = None
    assert "cannot import torch" in one_line(vram_torch.enable)
    assert not vram_torch.is_enabled()


def test_torch_without_pluggable_allocators():
    events = []
    torch = fake_torch(events, pluggable=False)
    assert "2.0" in one_line(vram_torch.enable)
    unchanged(torch, events)


def test_torch_without_cuda():
    events = []
    torch = fake_torch(events, cuda=None)
    assert "without CUDA" in one_line(vram_torch.enable)
    unchanged(torch, events)


def test_cuda_in_use():
    events = []
    torch = fake_torch(events, initialized=True)
    assert "already initialised" in one_line(vram_torch.enable)
    unchanged(torch, events)


@cases.environment(VRAM_SIM="memory=1GiB")
def test_simulated_device():
    events = []
    torch = fake_torch(events)
    assert "VRAM_SIM" in one_line(vram_torch.enable)
    unchanged(torch, events)


def test_wrong_options():
    events = []
    torch = fake_torch(events)
    assert "'max_split_mb'" in one_line(vram_torch.enable, conf="max_split_mb:1")
    os.environ["PYTORCH_ALLOC_CONF"] = "max_split_size_mb:none"
    assert "max_split_size_mb" in one_line(vram_torch.enable)
    assert "VRAM_ALLOC_CONF" not in os.environ
    unchanged(torch, events)
    os.environ["VRAM_ALLOC_CONF"] = ""  # the first option string that is set applies
    vram_torch.enable()


def test_no_library():
    events = []
    torch = fake_torch(events)
    assert "/no/such" in one_line(vram_torch.enable, library="/no/such/libvram_torch.so")
    unchanged(torch, events)


def test_pytorch_refuses_the_change():
    events = []
    torch = fake_torch(events, change_fails=True)
    assert "Can't swap" in one_line(vram_torch.enable, conf="max_split_size_mb:128")
    assert not vram_torch.is_enabled() and torch.cuda.memory_stats is refused
    assert "VRAM_ALLOC_CONF" not in os.environ


if __name__ == "__main__":
    cases.main(__file__, globals())
