"""Uses PyTorch's interface for other allocators (CUDAPluggableAllocator), and handles what PyTorch refuses to all of them.

vram_torch.enable() uses this module if there is no library for the installed PyTorch. Functions that PyTorch refuses but vram supports
are answered by vram. Functions that this interface cannot support are refused at once, with advice.
"""
import ctypes
import functools
import os
import threading
import warnings

# Methods of torch._C._CUDAPluggableAllocator and the symbols they take.
HOOKS = (
    ("set_init_fn", "vram_torch_init"),
    ("set_reset_fn", "vram_torch_reset"),
    ("set_memory_fraction_fn", "vram_torch_memory_fraction"),
    ("set_base_alloc_fn", "vram_torch_base_alloc"),
    ("set_record_stream_fn", "vram_torch_record_stream"),
)
# Methods for private pools. CUDA graphs need all of them.
POOL_HOOKS = (
    ("set_begin_allocate_to_pool", "vram_torch_begin_allocate_to_pool"),
    ("set_end_allocate_to_pool_fn", "vram_torch_end_allocate_to_pool"),
    ("set_release_pool", "vram_torch_release_pool"),
)

# c10::detail::torchCheckFail(const char *, const char *, uint32_t, const char *)
RAISE_SYMBOL = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"

ADVICE = "vram's native library supports it; vram_torch.way() says why it is not in use (docs/guides/torch.md)"


def set_hooks(pluggable, made):
    """Sets the hooks. Returns whether PyTorch accepted those for private pools."""
    hooks = pluggable.allocator()
    pools = all(hasattr(hooks, method) for method, _ in POOL_HOOKS)
    for method, symbol in HOOKS + (POOL_HOOKS if pools else ()):
        if hasattr(hooks, method):
            getattr(hooks, method)(made.address_of(symbol))
    return pools


def set_raise(torch, made):
    """Turns failures into exceptions, thrown by PyTorch's own function; out of memory uses its own class."""
    folder = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "lib")
    try:
        function = getattr(ctypes.CDLL(os.path.join(folder, "libc10.so")), RAISE_SYMBOL)
    except (OSError, AttributeError):
        warnings.warn("vram_torch: this PyTorch cannot raise from an allocator; a failed request returns a tensor without memory", RuntimeWarning)
        return
    made._library.vram_torch_set_raise(ctypes.cast(function, ctypes.c_void_p))
    made._library.vram_torch_use_oom_error(os.fsencode(folder))


def offer_graphs(torch, made):
    """Passes the stream at the start of a capture, because PyTorch's hook passes it only as a C++ object."""
    graph = getattr(torch.cuda, "CUDAGraph", None)
    if graph is None:
        return
    begin = graph.capture_begin

    @functools.wraps(begin)
    def capture_begin(self, *arguments, **named):
        made._library.vram_torch_expect_capture(torch.cuda.current_stream().cuda_stream)
        try:
            return begin(self, *arguments, **named)
        finally:
            made._library.vram_torch_expect_capture(0)

    graph.capture_begin = capture_begin


# --- refused -----------------------------------------------------------------------------------------------------------------------------


def refuse_graphs(torch, error):
    """Refuses graphs: their memory would be reused while the graph still writes to it."""

    def refuse(self, *_arguments, **_named):
        raise error("vram_torch: this PyTorch has no hooks for private pools, which CUDA graphs need (docs/guides/torch.md)")

    graph = getattr(torch.cuda, "CUDAGraph", None)
    if graph is not None:
        graph.__init__ = refuse
        graph.capture_begin = refuse


def _refuse_mempool(torch, error):
    pool = getattr(torch.cuda, "MemPool", None)
    if pool is None:
        return

    def __init__(self, *_arguments, **_named):
        raise error(f"vram_torch: the pluggable interface does not support torch.cuda.MemPool; {ADVICE}")

    pool.__init__ = __init__


def _uses_cudagraphs(torch, named):
    """Returns whether torch.compile() with these arguments saves its memory in checkpoints of pools."""
    if named.get("backend") == "cudagraphs" or (named.get("options") or {}).get("triton.cudagraphs"):
        return True
    mode = named.get("mode")
    if mode is None:
        return False
    try:
        from torch._inductor import list_mode_options
        return bool(list_mode_options(mode).get("triton.cudagraphs"))
    except Exception:  # PyTorch itself reports an invalid mode
        return mode in ("reduce-overhead", "max-autotune")


def _refuse_cudagraph_trees(torch, error):
    compile_before = getattr(torch, "compile", None)
    if compile_before is None:
        return

    @functools.wraps(compile_before)
    def compile(*arguments, **named):
        if _uses_cudagraphs(torch, named):
            raise error('vram_torch: the pluggable interface does not support torch.compile() with CUDA graphs: use mode="default" or '
                        f'"max-autotune-no-cudagraphs"; {ADVICE}')
        return compile_before(*arguments, **named)

    torch.compile = compile


def _has_cuda_tensor(torch, value, depth=4):
    if isinstance(value, torch.Tensor):
        return value.is_cuda
    if depth == 0 or not isinstance(value, (list, tuple, set, dict)):
        return False
    return any(_has_cuda_tensor(torch, item, depth - 1) for item in (value.values() if isinstance(value, dict) else value))


def _refuse_sharing(torch, error):
    """Refuses when a tensor is put into a queue. A refusal in the queue's feeder thread would let the receiver wait forever."""
    import multiprocessing.queues

    words = f"vram_torch: the pluggable interface cannot send a CUDA tensor to another process: send tensor.cpu(); {ADVICE}"
    put = multiprocessing.queues.Queue.put

    @functools.wraps(put)
    def checked_put(self, value, *arguments, **named):
        if _has_cuda_tensor(torch, value):
            raise error(words)
        return put(self, value, *arguments, **named)

    def share(self, *_arguments, **_named):
        raise error(words)

    multiprocessing.queues.Queue.put = checked_put
    storage = getattr(torch, "UntypedStorage", None)
    if storage is not None and hasattr(storage, "_share_cuda_"):
        storage._share_cuda_ = share


def refuse(torch, error):
    """Makes each call that this interface cannot support raise an error that names an alternative."""
    _refuse_mempool(torch, error)
    _refuse_cudagraph_trees(torch, error)
    if hasattr(torch, "Tensor"):
        _refuse_sharing(torch, error)


# --- functions that vram answers -------------------------------------------------------------------------------------------------------

# Functions of torch.cuda and torch.cuda.memory, and their replacements in vram_torch.
ANSWERS = {name: name for name in (
    "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "memory_allocated", "max_memory_allocated", "memory_reserved",
    "max_memory_reserved", "reset_peak_memory_stats", "reset_accumulated_memory_stats")}
ANSWERS.update(_record_memory_history="record_memory_history", _snapshot="_snapshot_of", _dump_snapshot="_dump_snapshot_to",
               memory_snapshot="memory_snapshot", get_per_process_memory_fraction="memory_fraction", _set_memory_metadata="set_memory_metadata",
               _get_memory_metadata="memory_metadata", _annotate_tensor="annotate_tensor")
# Functions of torch.accelerator and torch.accelerator.memory, which query another place than torch.cuda does.
ACCELERATOR_ANSWERS = {name: name for name in (
    "memory_stats", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "empty_cache")}
ACCELERATOR_ANSWERS.update(reset_peak_memory_stats="reset_peak_memory_stats", reset_accumulated_memory_stats="reset_accumulated_memory_stats")


def _put(modules, answers, source):
    for module in modules:
        for name, answer in answers.items():
            if module is not None and hasattr(module, name):
                setattr(module, name, getattr(source, answer))


# Observers run in the thread whose request failed. Each is kept as long as the process.
_observers = []
_observers_lock = threading.Lock()


class _Oom(ctypes.Structure):
    """The first members of struct vram_oom, for observers."""

    _fields_ = [("device", ctypes.c_uint32)] + [(name, ctypes.c_uint64) for name in (
        "stream", "requested_bytes", "rounded_bytes", "segment_bytes", "device_total_bytes", "device_free_bytes", "limit_bytes")]


def _attach_observer(made):
    """Replaces torch._C._cuda_attach_out_of_memory_observer: observers get (device, allocated, device total, device free)."""
    kind = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Oom), ctypes.c_void_p)

    def attach(observer):
        def call(oom, _user):
            facts = oom.contents
            total = min(facts.limit_bytes, facts.device_total_bytes)
            observer(facts.device, facts.segment_bytes, total, facts.device_free_bytes)

        function = kind(call)
        with _observers_lock:
            _observers.append(function)
        made.add_oom_observer(function)

    return attach


def redirect(torch, made, source):
    """Makes this allocator answer PyTorch's memory queries, which would fail or return nothing now. `source` is the module vram_torch."""
    _put((torch.cuda, torch.cuda.memory), ANSWERS, source)
    accelerator = getattr(torch, "accelerator", None)
    _put((accelerator, getattr(accelerator, "memory", None)), ACCELERATOR_ANSWERS, source)
    bindings = getattr(torch, "_C", None)
    for name in ("_cuda_attach_out_of_memory_observer", "_cudaCachingAllocator_attachOutOfMemoryObserver"):
        if hasattr(bindings, name):
            setattr(bindings, name, _attach_observer(made))
