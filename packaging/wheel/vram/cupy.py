"""vram under CuPy: the function that allocates its arrays.

    import vram.cupy
    vram.cupy.enable()             # arrays from here on; those before stay where they are

docs/in/cupy.md."""
import cupy

from ._allocator import Block, process_allocator

_allocator = None  # None: the allocator of the process


def allocate(size):
    """For cupy.cuda.set_allocator() and cupy.cuda.using_allocator(): allocates memory of the current device for use on the current
    stream. As with CuPy's own pool, it is freed with its last array: work queued on that stream by then may still use it. The program
    must wait for other streams itself."""
    device, size = cupy.cuda.device.get_device_id(), int(size)
    try:
        block = Block(size, device, cupy.cuda.get_current_stream().ptr, _allocator)
    except MemoryError as error:
        held = (_allocator or process_allocator()).memory_stats(device)["reserved_bytes.all.current"]
        raise cupy.cuda.memory.OutOfMemoryError(size, held) from error
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(block.address, size, block, device), 0)


def enable(allocator=None):
    """Replaces CuPy's memory pool on all devices. allocator: used instead of vram.allocator(), such as vram_torch.allocator(), whose
    cache PyTorch shares."""
    global _allocator
    _allocator = allocator
    cupy.cuda.set_allocator(allocate)


def disable():
    """Returns to CuPy's own pool."""
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)
