"""The library's caching allocator in Python. The plugs for other libraries (vram.cupy, vram.numba, ...) are built on it.

    import vram
    mine = vram.allocator()                    # the one of this process, made at the first call
    address = mine.malloc(1 << 20, stream=s)   # device 0; s: an integer, as CUDA has it
    mine.free(address)                         # work that is queued on s may still use it
    print(mine.memory_stats()["allocated_bytes.all.peak"])
    mine.snapshot("now.pickle")                # for `vram report`; mine.record() before has the events in it, too"""
import ctypes
import json
import os
import sys
import threading

from . import _places

_OUT_OF_MEMORY, _REJECTED = 4, 5  # enum vram_status
_STATS_BYTES, _OOM_BYTES = 8192, 1024  # larger than struct vram_stats and struct vram_oom, which are only passed on
# The legacy default stream has two handles. Memory without a stream belongs to the second one, and is used on the first.
LEGACY_STREAM, LEGACY_HANDLE, PER_THREAD_STREAM = 0, 1, 2

_POINTER, _TEXT, _SIZE, _U32, _U64, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int
_FUNCTIONS = {  # result, arguments
    "vram_create": (_INT, _POINTER, _POINTER, _POINTER),
    "vram_malloc": (_INT, _POINTER, _U32, _U64, _U64, _POINTER),
    "vram_free": (_INT, _POINTER, _U64),
    "vram_record_stream": (_INT, _POINTER, _U64, _U64),
    "vram_allocated_size": (_U64, _POINTER, _U64),
    "vram_empty_cache": (_INT, _POINTER),
    "vram_configure": (_INT, _POINTER, _TEXT, _POINTER),
    "vram_set_option": (_INT, _POINTER, _TEXT, _TEXT, _POINTER),
    "vram_set_memory_limit": (_INT, _POINTER, _U32, _U64),
    "vram_get_stats": (_INT, _POINTER, _U32, _POINTER),
    "vram_stats_json": (_SIZE, _POINTER, _TEXT, _SIZE),
    "vram_memory_info": (_INT, _POINTER, _U32, _POINTER, _POINTER),
    "vram_device_count": (_INT, _POINTER, _POINTER),
    "vram_last_oom": (ctypes.c_bool, _POINTER),
    "vram_oom_text": (_SIZE, _POINTER, _TEXT, _SIZE),
    "vram_history_start_text": (_INT, _POINTER, _TEXT, _POINTER),
    "vram_snapshot_save": (_INT, _POINTER, _POINTER, _TEXT, _POINTER),
    "vram_check": (_INT, _POINTER, _POINTER),
    "vram_status_text": (_TEXT, _INT),
    "vram_pool_create": (_INT, _POINTER, _U32, _POINTER, _POINTER),
    "vram_pool_malloc": (_INT, _POINTER, _U64, _U64, _POINTER),
    "vram_pool_empty_cache": (_INT, _POINTER),
    "vram_pool_release": (None, _POINTER),
}


_ALLOCATE = ctypes.CFUNCTYPE(_U64, _U64, _U32, _U64, _POINTER)
_DEALLOCATE = ctypes.CFUNCTYPE(None, _U64, _U64, _U32, _U64, _POINTER)
_thread = threading.local()


class _PoolOptions(ctypes.Structure):
    _fields_ = [("allocate", _ALLOCATE), ("deallocate", _DEALLOCATE), ("user", _POINTER), ("switches", ctypes.c_bool * 4), ("tag", _TEXT),
                ("first", _U64), ("second", _U64)]


class Error(RuntimeError):
    """The allocator refused a call. str() is one line."""


class OutOfMemory(Error, MemoryError):
    """A device has no room for a request. str() is the report."""


class _Detail(ctypes.Structure):
    _fields_ = [("status", _INT), ("driver_result", ctypes.c_int32), ("offset", _U64), ("message", ctypes.c_char * 512)]


class _CreateInfo(ctypes.Structure):
    _fields_ = [("driver", _POINTER), ("conf", _TEXT), ("tie_break", _INT), ("ignore_environment", ctypes.c_bool)]


def _load():
    path = _places.shared_library()
    if path is None:
        raise Error("this wheel has no native code, so it has no allocator; install the wheel for Linux, or set VRAM_LIBRARY to the path of libvram.so")
    try:
        c = ctypes.CDLL(path)
    except OSError as error:
        raise Error(f"cannot load the library ({error})") from None
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(c, name)
        function.restype, function.argtypes = result, arguments
    return c


class _Guarded:
    """The library, for allocators that call Python functions under its locks. Garbage that Python would collect meanwhile is freed when
    the thread's outermost call has ended."""

    def __init__(self, c):
        self._c = c

    def __getattr__(self, name):
        function = getattr(self._c, name)

        def call(*arguments):
            outermost, _thread.inside = not getattr(_thread, "inside", False), True
            try:
                return function(*arguments)
            finally:
                _thread.inside = not outermost
                garbage, _thread.garbage = (getattr(_thread, "garbage", []), []) if outermost else ([], getattr(_thread, "garbage", []))
                for allocator, address in garbage:
                    allocator.free(address)

        return call


class Allocator:
    """A separate allocator. Addresses and streams are integers. Failures raise Error, a lack of memory OutOfMemory. Any thread may call
    any method. conf: an option string (docs/reference/options.md); None: the first of VRAM_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF,
    PYTORCH_ALLOC_CONF."""

    def __init__(self, conf=None):
        self._c, self._process, self._handle, self._kept = _load(), os.getpid(), _POINTER(), []
        info, detail = _CreateInfo(conf=None if conf is None else conf.encode()), _Detail()
        if self._c.vram_create(ctypes.byref(info), ctypes.byref(self._handle), ctypes.byref(detail)) != 0:
            raise Error("vram: " + detail.message.decode(errors="replace"))

    def _must(self, status, detail=None):
        if status in (_OUT_OF_MEMORY, _REJECTED):
            raise OutOfMemory(self._oom_text())
        if status != 0:
            said = detail.message if detail is not None and detail.message else self._c.vram_status_text(status)
            raise Error("vram: " + said.decode(errors="replace"))

    def _oom_text(self):
        oom, text = ctypes.create_string_buffer(_OOM_BYTES), ctypes.create_string_buffer(4096)
        if self._c.vram_last_oom(oom):
            self._c.vram_oom_text(oom, text, len(text))
        return text.value.decode(errors="replace") or "out of memory"

    # Memory

    def malloc(self, size_bytes, device=0, stream=LEGACY_STREAM):
        """Returns the address of new memory for use on `stream`, or 0 for 0 bytes."""
        address = _U64()
        self._must(self._c.vram_malloc(self._handle, device, size_bytes, stream, ctypes.byref(address)))
        return address.value

    def free(self, address):
        """Frees memory; work that is queued on its stream may still use it. Ignores 0, and memory that a parent process allocated."""
        if getattr(_thread, "inside", False):
            _thread.garbage = [*getattr(_thread, "garbage", []), (self, address)]
        elif self._process == os.getpid():
            self._must(self._c.vram_free(self._handle, address))

    def record_stream(self, address, stream):
        """Notes that the memory is also used on `stream`: it is not reused before that stream has passed the moment of its free."""
        self._must(self._c.vram_record_stream(self._handle, address, stream))

    def size_of(self, address):
        """Returns the size in bytes of the live memory at the address, or 0."""
        return self._c.vram_allocated_size(self._handle, address)

    def empty_cache(self):
        """Returns all unused memory to the driver."""
        self._must(self._c.vram_empty_cache(self._handle))

    def pool(self, device=0, functions=None):
        """Returns a private pool, whose memory serves no other request of the process. functions: a pair that provides its segments:
        allocate(size_bytes), which returns an address or 0, and deallocate(address, size_bytes). They are called under locks and must
        not call the allocator."""
        return Pool(self, device, functions)

    # Settings and answers

    def configure(self, conf):
        detail = _Detail()
        self._must(self._c.vram_configure(self._handle, conf.encode(), ctypes.byref(detail)), detail)

    def set_option(self, key, value):
        """Changes one option and keeps all others. value: as in an option string, or a bool or number; None: the default."""
        detail = _Detail()
        text = None if value is None else str(value).encode()
        self._must(self._c.vram_set_option(self._handle, key.encode(), text, ctypes.byref(detail)), detail)

    def set_memory_limit(self, limit_bytes, device=0):
        """Limits the bytes of the device's memory that the allocator may hold; None: no limit."""
        self._must(self._c.vram_set_memory_limit(self._handle, device, (1 << 64) - 1 if limit_bytes is None else limit_bytes))

    def memory_stats(self, device=0):
        """Returns the counters under PyTorch's names ("allocated_bytes.all.current")."""
        stats, text = ctypes.create_string_buffer(_STATS_BYTES), ctypes.create_string_buffer(1 << 16)
        self._must(self._c.vram_get_stats(self._handle, device, stats))
        self._c.vram_stats_json(stats, text, len(text))
        return json.loads(text.value)

    def mem_get_info(self, device=0):
        """Returns (free, total) bytes of the device, from the driver."""
        free, total = _U64(), _U64()
        self._must(self._c.vram_memory_info(self._handle, device, ctypes.byref(free), ctypes.byref(total)))
        return free.value, total.value

    def device_count(self):
        count = _U32()
        self._must(self._c.vram_device_count(self._handle, ctypes.byref(count)))
        return count.value

    def record(self, words="all"):
        """Configures the memory history, in the syntax of the variable VRAM_HISTORY ("all,stacks=python,max_entries=100000"); "off" ends
        it."""
        detail = _Detail()
        self._must(self._c.vram_history_start_text(self._handle, words.encode(), ctypes.byref(detail)), detail)

    def snapshot(self, path):
        """Writes the allocated blocks, and the history kept by record(), for `vram report` and PyTorch's tools. ".json" and ".vram"
        select other formats."""
        detail = _Detail()
        self._must(self._c.vram_snapshot_save(self._handle, None, os.fsencode(path).replace(b"%", b"%%"), ctypes.byref(detail)), detail)

    def check(self):
        """Raises Error if the allocator's state violates an invariant."""
        detail = _Detail()
        self._must(self._c.vram_check(self._handle, ctypes.byref(detail)), detail)


class Pool:
    """A private pool. Its memory goes back to the driver after release() and its last free."""

    def __init__(self, allocator, device, functions=None):
        self._allocator, self._handle, options = allocator, _POINTER(), _PoolOptions()
        if functions is not None:
            allocate, deallocate = functions
            options.allocate = _ALLOCATE(lambda size, _device, _stream, _user: allocate(size))
            options.deallocate = _DEALLOCATE(lambda address, size, _device, _stream, _user: deallocate(address, size))
            if not isinstance(allocator._c, _Guarded):
                allocator._c = _Guarded(allocator._c)
            allocator._kept.append(options)  # the library calls them as long as the pool has memory
        self._c = allocator._c
        allocator._must(self._c.vram_pool_create(allocator._handle, device, ctypes.byref(options), ctypes.byref(self._handle)))

    def malloc(self, size_bytes, stream=LEGACY_STREAM):
        """Like Allocator.malloc(). Free with Allocator.free()."""
        address = _U64()
        self._allocator._must(self._c.vram_pool_malloc(self._handle, size_bytes, stream, ctypes.byref(address)))
        return address.value

    def trim(self):
        """Returns wholly free segments to the driver."""
        self._allocator._must(self._c.vram_pool_empty_cache(self._handle))

    def release(self):
        handle, self._handle = self._handle, None
        if handle is not None and self._allocator._process == os.getpid():
            self._c.vram_pool_release(handle)


def malloc_on(source, size_bytes, device, stream):
    """malloc() of an Allocator for a stream as another library names it. None means no stream, for a library that does not say where
    memory is used. Such memory may be used on any stream at once. It is reused after all streams that wait for the legacy default stream
    have passed its free. The same holds for memory of a thread's own default stream, whose handle is another stream in each thread."""
    if stream not in (None, PER_THREAD_STREAM):
        return source.malloc(size_bytes, device, LEGACY_STREAM if stream == LEGACY_HANDLE else stream)
    address = source.malloc(size_bytes, device, LEGACY_HANDLE)
    if address:
        source.record_stream(address, LEGACY_STREAM)
    return address


def free_on(source, address, stream):
    """free() on a stream, which may differ from the memory's own: work that is queued there now may still use the memory. None: on its
    own stream."""
    if address and stream is not None:
        source.record_stream(address, LEGACY_STREAM if stream in (LEGACY_HANDLE, PER_THREAD_STREAM) else stream)
    source.free(address)


class Block:
    """Memory that is freed with this object, or earlier by release(). stream: as for malloc_on(). allocator: may be another one with the
    same methods, such as vram_torch.allocator()."""
    __slots__ = ("address", "size_bytes", "_allocator", "__weakref__")

    def __init__(self, size_bytes, device=0, stream=None, allocator=None):
        self._allocator, self.address, self.size_bytes = None, 0, size_bytes
        source = allocator or process_allocator()
        self.address = malloc_on(source, size_bytes, device, stream)
        self._allocator = source

    def release(self):
        source, self._allocator = self._allocator, None
        if source is not None and self.address and not sys.is_finalizing():
            source.free(self.address)

    __del__ = release


_made, _lock = None, threading.Lock()


def process_allocator():
    """Returns the allocator of this process that all plugs share. The first call makes it, with the options of the environment."""
    global _made
    with _lock:
        if _made is None or _made._process != os.getpid():
            _made = Allocator()
        return _made
