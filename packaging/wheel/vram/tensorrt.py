"""vram under TensorRT: an allocator for its builder, runtime and execution contexts.

    import vram.tensorrt
    allocator = vram.tensorrt.GpuAllocator()
    runtime.gpu_allocator = allocator          # weights and activations; or builder.gpu_allocator
    context.temporary_allocator = allocator    # what an execution needs for a while

docs/in/tensorrt.md."""
import tensorrt

from ._allocator import free_on, malloc_on, process_allocator

_MOST_ALIGNMENT = 512  # the alignment of all vram's addresses


class GpuAllocator(tensorrt.IGpuAsyncAllocator):
    """Stream-ordered memory. TensorRT expects 0 or False for a failure and lets no exception through; .last_error has the reason."""

    def __init__(self, device=0, allocator=None):
        tensorrt.IGpuAsyncAllocator.__init__(self)
        self._device, self._allocator, self.last_error = device, allocator or process_allocator(), None

    def allocate_async(self, size, alignment, flags, stream):
        # TensorRT's documents have the flags before the stream, but its bindings pass them the other way round. The only flag (resizable)
        # is 1. As a stream, 1 is the legacy default stream, like 0, so the larger of the two numbers is always the stream.
        return self._allocate(size, alignment, max(int(flags), int(stream)))

    def deallocate_async(self, memory, stream):
        return self._free(memory, int(stream))

    # For TensorRT before 10, and for its requests without a stream.

    def allocate(self, size, alignment, flags):
        return self._allocate(size, alignment, None)

    def deallocate(self, memory):
        return self._free(memory, None)

    def reallocate(self, address, alignment, new_size):
        """Returns 0: TensorRT then requests new memory."""
        return 0

    def _allocate(self, size, alignment, stream):
        if alignment > _MOST_ALIGNMENT:
            self.last_error = ValueError(f"vram.tensorrt: an alignment of {alignment} bytes exceeds the maximum of {_MOST_ALIGNMENT}")
            return 0
        return self._guarded(malloc_on, 0, self._allocator, int(size), self._device, stream)

    def _free(self, memory, stream):
        return self._guarded(free_on, False, self._allocator, int(memory), stream) is None

    def _guarded(self, function, failed, *arguments):
        try:
            return function(*arguments)
        except Exception as error:
            self.last_error = error.with_traceback(None)
            return failed
