"""vram under ONNX Runtime: the functions that its CUDA provider takes its memory from.

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
    """The memory of one session: a pool of its own, for a session says no stream. All its work is on one (use_ep_level_unified_stream), so memory that
    it let go of may serve its next request at once, but nobody else's."""

    def __init__(self, allocator, device):
        self._allocator, self._pool = allocator, allocator.pool(device)
        self.functions = _ALLOCATE(self._allocate), _FREE(self._free), _EMPTY(self._empty)

    def _allocate(self, size):
        """NULL where there is none, of which ONNX Runtime makes an exception."""
        return _guarded(self._pool.malloc, size)

    def _free(self, address):
        _guarded(self._allocator.free, address or 0)

    def _empty(self):
        """Called when a session lets go of weights."""
        _guarded(self._pool.trim)


def _guarded(function, *arguments):
    """No exception of Python's may go through ONNX Runtime."""
    global _last_error
    try:
        return function(*arguments)
    except Exception as error:
        _last_error = error.with_traceback(None)  # whose frames have the session
        return None


def provider_options(device=0, allocator=None, **options):
    """Options of one session's CUDAExecutionProvider; make new ones for each session. options: others of the provider. A stream of the program's own
    (user_compute_stream) and functions for memory exclude each other in ONNX Runtime."""
    if "user_compute_stream" in options:
        raise ValueError("vram.onnxruntime: ONNX Runtime takes no memory from others with a user_compute_stream")
    memory = _Memory(allocator or process_allocator(), int(device))
    _sessions.append(memory)
    names = ("gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache")
    addresses = (str(ctypes.cast(function, ctypes.c_void_p).value) for function in memory.functions)
    own = {"device_id": str(int(device)), "use_ep_level_unified_stream": "1", **dict(zip(names, addresses))}
    return {**{name: str(value) for name, value in options.items()}, **own}


def last_error():
    """What failed last, as an exception: after ONNX Runtime's own says only that there was no memory, this one has the report. None: nothing did."""
    return _last_error
