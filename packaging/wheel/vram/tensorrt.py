"""vram under TensorRT: an allocator for its builder, runtime and execution contexts.

    import vram.tensorrt
    allocator = vram.tensorrt.GpuAllocator()
    runtime.gpu_allocator = allocator          # weights and activations; or builder.gpu_allocator
    context.temporary_allocator = allocator    # what an execution needs for a while

docs/in/tensorrt.md."""
import tensorrt

from ._allocator import free_on, malloc_on, process_allocator

_MOST_ALIGNMENT = 512  # of every address of vram's


class GpuAllocator(tensorrt.IGpuAsyncAllocator):
    """Memory in the order of streams. TensorRT takes 0 and False for a failure and lets no exception through; .last_error has what was wrong."""

    def __init__(self, device=0, allocator=None):
        tensorrt.IGpuAsyncAllocator.__init__(self)
        self._device, self._allocator, self.last_error = device, allocator or process_allocator(), None

    def allocate_async(self, size, alignment, flags, stream):
        # TensorRT's documents have the flags before the stream, its bindings hand them over the other way round. The one flag there is (resizable) is
        # 1, which as a stream is the legacy default one, as 0 is: the larger of the two is the stream in any case.
        return self._allocate(size, alignment, max(int(flags), int(stream)))

    def deallocate_async(self, memory, stream):
        return self._free(memory, int(stream))

    # Before TensorRT 10, and for what it asks for outside of streams.

    def allocate(self, size, alignment, flags):
        return self._allocate(size, alignment, None)

    def deallocate(self, memory):
        return self._free(memory, None)

    def reallocate(self, address, alignment, new_size):
        """TensorRT asks for new memory then."""
        return 0

    def _allocate(self, size, alignment, stream):
        if alignment > _MOST_ALIGNMENT:
            self.last_error = ValueError(f"vram.tensorrt: an alignment of {alignment} bytes, more than {_MOST_ALIGNMENT}")
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
