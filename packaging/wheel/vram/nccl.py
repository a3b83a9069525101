"""Memory that NCCL sends and receives without a copy: vram's blocks in segments of ncclMemAlloc(), registered with communicators.

    import vram.nccl
    memory = vram.nccl.Memory(device)
    memory.register(comm)                      # ncclComm_t as an integer; segments that come later are registered as they come
    address = memory.malloc(1 << 20, device, stream)

It has the methods of vram.allocator() that plugs call: vram.cupy.enable(memory), vram.cuda_core.MemoryResource(device, memory). docs/in/nccl.md."""
import ctypes
import threading

from ._allocator import LEGACY_STREAM, Error, process_allocator


class Memory:
    """A pool of one device. library: NCCL's file; None: libnccl.so.2, from the process or the loader's search path."""

    def __init__(self, device=0, allocator=None, library=None):
        self._nccl = ctypes.CDLL(library or "libnccl.so.2")
        self._nccl.ncclGetErrorString.restype = ctypes.c_char_p
        self._device, self._allocator = device, allocator or process_allocator()
        self._comms, self._segments, self.last_error = set(), {}, None  # segment -> (bytes, {communicator: registration})
        self._lock = threading.RLock()  # guards both; while it is held, only NCCL may be called, not the allocator
        self._pool = self._allocator.pool(device, (self._take, self._give))
        self.record_stream, self.free = self._allocator.record_stream, self._allocator.free
        self.memory_stats, self.mem_get_info = self._allocator.memory_stats, self._allocator.mem_get_info

    def malloc(self, size_bytes, device=None, stream=LEGACY_STREAM):
        """Returns an address in a registered segment. Another device than the pool's is an error."""
        if device not in (None, self._device):
            raise Error(f"vram.nccl: this memory is on device {self._device}, not {device}")
        return self._pool.malloc(size_bytes, stream)

    def register(self, comm):
        """Registers all segments, present and future, with a communicator of the device (ncclCommRegister)."""
        with self._lock:
            self._comms.add(comm)
            try:
                for address in self._segments:
                    self._enter(comm, address)
            except Error:
                self.deregister(comm)
                raise

    def deregister(self, comm):
        """Ends the registration. Call it before the communicator is destroyed, while it has no operation in progress."""
        with self._lock:
            self._comms.discard(comm)
            for _, registrations in self._segments.values():
                self._leave(comm, registrations)

    def segments(self):
        """Returns [(address, bytes)] of NCCL's segments, for ncclCommWindowRegister(), which all ranks call together."""
        with self._lock:
            return [(address, size) for address, (size, _) in sorted(self._segments.items())]

    def trim(self):
        """Deregisters wholly free segments and returns them to NCCL."""
        self._pool.trim()

    def _enter(self, comm, address):
        size, registrations = self._segments[address]
        handle = ctypes.c_void_p()
        self._must("ncclCommRegister", ctypes.c_void_p(comm), ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.byref(handle))
        registrations[comm] = handle

    def _leave(self, comm, registrations):
        if comm in registrations:
            self._must("ncclCommDeregister", ctypes.c_void_p(comm), registrations.pop(comm))

    def _must(self, name, *arguments):
        result = getattr(self._nccl, name)(*arguments)
        if result != 0:
            raise Error(f"vram.nccl: {name}: {(self._nccl.ncclGetErrorString(result) or b'').decode(errors='replace')}")

    # These are called under the device's locks, with its context current, and must not raise.

    def _take(self, size):
        address = ctypes.c_void_p()
        with self._lock:
            try:
                self._must("ncclMemAlloc", ctypes.byref(address), ctypes.c_size_t(size))
                self._segments[address.value] = size, {}
                for comm in self._comms:
                    self._enter(comm, address.value)
                return address.value
            except Exception as error:
                self.last_error = error.with_traceback(None)
                if address.value is not None:
                    self._give(address.value, size)
                return 0

    def _give(self, address, _size):
        with self._lock:
            _, registrations = self._segments.pop(address)
            for call in [*((self._leave, comm, registrations) for comm in list(registrations)), (self._must, "ncclMemFree", ctypes.c_void_p(address))]:
                try:
                    call[0](*call[1:])
                except Exception as error:
                    self.last_error = error.with_traceback(None)
