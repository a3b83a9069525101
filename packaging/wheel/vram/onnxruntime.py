"""vram under ONNX Runtime: the functions from which its CUDA provider takes memory.

    import onnxruntime, vram.onnxruntime
    session = onnxruntime.InferenceSession("model.onnx", providers=[("CUDAExecutionProvider", vram.onnxruntime.provider_options())])

docs/in/onnxruntime.md."""
import ctypes

from ._allocator import process_allocator

_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_EMPTY = ctypes.CFUNCTYPE(None)

_sessions = []  # a session may call its functions as long as the process lives
_last_error = None


class _Memory:
    """The memory of one session. Each session has its own pool, because it names no stream. All its work is on one stream
    (use_ep_level_unified_stream), so memory that it frees may serve its own next request at once, but not another session's."""

    def __init__(self, allocator, device):
        self._allocator, self._pool = allocator, allocator.pool(device)
        self.functions = _ALLOCATE(self._allocate), _FREE(self._free), _EMPTY(self._empty)

    def _allocate(self, size):
        """Returns NULL if there is no memory, which ONNX Runtime turns into an exception."""
        return _guarded(self._pool.malloc, size)

    def _free(self, address):
        _guarded(self._allocator.free, address or 0)

    def _empty(self):
        """Called when a session frees weights."""
        _guarded(self._pool.trim)


def _guarded(function, *arguments):
    """Keeps Python exceptions from passing through ONNX Runtime."""
    global _last_error
    try:
        return function(*arguments)
    except Exception as error:
        _last_error = error.with_traceback(None)  # without the traceback, whose frames keep the session
        return None


def provider_options(device=0, allocator=None, **options):
    """Returns options of one session's CUDAExecutionProvider. Make new ones for each session. options: further options of the provider.
    ONNX Runtime does not accept functions for memory together with a stream of the program (user_compute_stream)."""
    if "user_compute_stream" in options:
        raise ValueError("vram.onnxruntime: with a user_compute_stream, ONNX Runtime accepts no external allocator")
    memory = _Memory(allocator or process_allocator(), int(device))
    _sessions.append(memory)
    names = ("gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache")
    addresses = (str(ctypes.cast(function, ctypes.c_void_p).value) for function in memory.functions)
    own = {"device_id": str(int(device)), "use_ep_level_unified_stream": "1", **dict(zip(names, addresses))}
    return {**{name: str(value) for name, value in options.items()}, **own}


def last_error():
    """Returns the last failure as an exception, or None. ONNX Runtime's own exception only says that there was no memory; this one has
    the report."""
    return _last_error
