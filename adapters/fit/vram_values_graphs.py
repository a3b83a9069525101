"""Captured graphs: small values are computed at each launch. During capture, operations and Triton kernels are noted in order, with tensors
that hold no memory, because a graph's pool belongs to the program. After each launch they are repeated on the host, in order. The output
of captured kernels in between that are not noted becomes unknown, in the same order."""
import ctypes
import functools
import sys
import threading
import weakref

CAPTURING = 900  # a result code of the driver: the stream is being captured
EVERYTHING = 2**64 - 1
MOST_PLACES = 64  # per query
UNKNOWN = 2


class Graphs:
    def __init__(self, values):
        self.values, self.torch, self.driver = values, values.torch, values.driver
        self.current, self.local = None, threading.local()  # notes of the graph being captured
        self.notes = weakref.WeakKeyDictionary()
        room = ctypes.c_uint64 * 1
        self.everywhere = room(0), room(EVERYTHING)
        self.places = (ctypes.c_uint64 * MOST_PLACES)(), (ctypes.c_uint64 * MOST_PLACES)()

    # --- during capture ---------------------------------------------------------------------------------------------------

    def begin(self):
        self.driver.captured(None, None, 0)
        self.current = []

    def end(self, graph):
        self.note_others()
        if self.current:
            self.notes[graph] = self.current
        self.current = None

    def note_others(self):
        """Notes the output of other kernels captured since, which is not computed."""
        addresses, sizes = self.places
        while self.current is not None:
            count = self.driver.captured(addresses, sizes, MOST_PLACES)
            self.current += [functools.partial(self.driver.passed, addresses[i], sizes[i]) for i in range(count)]
            if count < MOST_PLACES:
                break

    def note_library(self, tensor):
        """Notes that a library wrote the tensor, which becomes unknown."""
        if not getattr(self.local, "inside", False):
            self.note_others()
            self.current.append(functools.partial(self.values.memory.put, self.view(tensor), None, UNKNOWN))

    def capture(self, call, note):
        """Calls `call` as one captured step. note() takes its result and returns what to do at each launch, or None if nothing is known
        about it."""
        if self.current is None or getattr(self.local, "inside", False):
            return call()
        self.note_others()
        self.local.inside = True
        shields = self.driver.shield(*self.everywhere, 1)
        try:
            made = call()
        finally:
            self.local.inside = False
            self.driver.end(shields)
        step = note(made)
        if step is not None and self.current is not None:
            self.current.append(step)
        return made

    def operation(self, operation, args, kwargs, call):
        def note(made):
            given = self.without_memory((args, kwargs, made))
            return functools.partial(self.again, operation, len(self.current), *given)
        return self.capture(call, note)

    def without_memory(self, value):
        """Returns the value with device tensors replaced by ones without memory."""
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return self.view(value) if value.is_cuda and value.layout is torch.strided else value
        if isinstance(value, (list, tuple)):
            return tuple(self.without_memory(item) for item in value)
        return {name: self.without_memory(item) for name, item in value.items()} if isinstance(value, dict) else value

    def view(self, tensor):
        torch = self.torch
        bytes_of = tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size()
        storage = torch._C._construct_storage_from_data_pointer(tensor.data_ptr(), tensor.device, max(0, bytes_of))
        facts = {"size": tensor.size(), "stride": tensor.stride(), "dtype": tensor.dtype, "device": tensor.device, "storage_offset": 0}
        made = torch._C._construct_CUDA_Tensor_From_Storage_And_Metadata(facts, storage)
        made = torch._neg_view(made) if tensor.is_neg() else made
        return made.conj() if tensor.is_conj() else made

    # --- at a launch ------------------------------------------------------------------------------------------------------

    def launch(self, graph, call):
        steps = self.notes.get(graph)
        made = call()
        device = self.torch._C._cuda_getDevice()
        if steps and self.driver.begin(device, self.values.stream(device)) == 0:
            with self.torch._C.DisableTorchFunction():
                for step in steps:
                    step()
        return made

    def again(self, operation, number, args, kwargs, made):
        """Repeats an operation of the graph on the current memory."""
        module = sys.modules["_vram_values_call"]
        call = module.Call(self.values, operation, args, kwargs)
        call.number = number
        try:
            if call.device is not None and operation.failures < sys.modules["_vram_values"].FAILURES and call.fetch():
                call.compute()
            self.forget(call, made)
            call.finish(made)
        except Exception:
            operation.failures += 1

    def forget(self, call, made):
        """Marks results that are not computed as unknown, before the table is applied."""
        if call.results is None:
            written = [tensor for name, tensor in call.tensors if name in call.written]
            for tensor in (*written, *sys.modules["_vram_values_call"].flat(made)):
                if isinstance(tensor, self.torch.Tensor) and tensor.is_cuda:
                    self.values.memory.put(tensor, None, UNKNOWN)


def watch(graphs):
    """Watches PyTorch's graphs, whichever part of PyTorch captures them."""
    kind = graphs.torch.cuda.graphs.CUDAGraph
    begin, end, replay, reset = kind.capture_begin, kind.capture_end, kind.replay, kind.reset

    @functools.wraps(begin)
    def capture_begin(graph, *args, **kwargs):
        made = begin(graph, *args, **kwargs)
        graphs.begin()
        return made

    @functools.wraps(end)
    def capture_end(graph, *args, **kwargs):
        made = end(graph, *args, **kwargs)
        graphs.end(graph)
        return made

    @functools.wraps(reset)
    def forget(graph, *args, **kwargs):
        graphs.notes.pop(graph, None)
        return reset(graph, *args, **kwargs)

    kind.capture_begin, kind.capture_end, kind.reset = capture_begin, capture_end, forget
    kind.replay = functools.wraps(replay)(lambda graph: graphs.launch(graph, lambda: replay(graph)))
