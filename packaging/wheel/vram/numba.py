"""vram under numba-cuda: a plugin for external memory management.

    import vram.numba
    vram.numba.enable()            # before the first use of the device; or NUMBA_CUDA_MEMORY_MANAGER=vram.numba in the environment

Arrays on devices use vram's memory; pinned and managed memory stays numba's. docs/in/numba.md."""
import ctypes

from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError

from ._allocator import Block, process_allocator

_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_allocator = None  # None: the allocator of the process


class MemoryManager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
    """The memory manager of one context. Numba names no stream, neither for a request nor for its end, so blocks have no stream."""

    interface_version = 1

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.blocks = set()

    @property
    def device(self):
        device = self.context.device  # the driver's own number, even if another library made the context
        return int(getattr(device, "id", device))

    def initialize(self):
        # The amount of pinned memory that numba keeps before it frees some is a share of the device's memory.
        if self.deallocations.memory_capacity <= 0:
            self.deallocations.memory_capacity = self.get_memory_info().total

    def memalloc(self, size):
        block = self._attempt_allocation(lambda: self._block(size))
        self.blocks.add(block)

        def finalizer():
            self.blocks.discard(block)
            block.release()

        return cuda.MemoryPointer(self.context, ctypes.c_void_p(block.address), size, finalizer=finalizer)

    def _block(self, size):
        try:
            return Block(size, self.device, allocator=_allocator)
        except MemoryError as error:
            raise CudaAPIError(_OUT_OF_MEMORY, str(error)) from error

    def get_memory_info(self):
        """Returns the driver's free bytes. The cached bytes are in vram.allocator().memory_stats()."""
        return cuda.MemoryInfo(*(_allocator or process_allocator()).mem_get_info(self.device))

    def reset(self):
        """The context ends. All its memory is freed, even that of arrays that still exist."""
        super().reset()
        blocks, self.blocks = self.blocks, set()
        for block in blocks:
            block.release()


def enable(allocator=None):
    """Replaces numba's allocator, for devices that were not used before. allocator: used instead of vram.allocator(), such as
    vram_torch.allocator(), whose cache PyTorch shares."""
    global _allocator
    _allocator = allocator
    cuda.set_memory_manager(MemoryManager)


_numba_memory_manager = MemoryManager
