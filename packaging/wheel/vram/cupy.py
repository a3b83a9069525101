"""vram under CuPy: the function that gives arrays their memory.

    import vram.cupy
    vram.cupy.enable()             # arrays from here on; those before stay where they are

docs/in/cupy.md."""
import cupy

from ._allocator import Block, process_allocator

_allocator = None  # None: the process's


def allocate(size):
    """For cupy.cuda.set_allocator() and cupy.cuda.using_allocator(): memory of the current device for use on the current stream, given back, as by
    CuPy's own pool, with its last array: what is queued on that stream by then may still use it; other streams are the program's to wait for."""
    device, size = cupy.cuda.device.get_device_id(), int(size)
    try:
        block = Block(size, device, cupy.cuda.get_current_stream().ptr, _allocator)
    except MemoryError as error:
        held = (_allocator or process_allocator()).memory_stats(device)["reserved_bytes.all.current"]
        raise cupy.cuda.memory.OutOfMemoryError(size, held) from error
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(block.address, size, block, device), 0)


def enable(allocator=None):
    """Puts vram in the place of CuPy's memory pool, on all devices. allocator: another than vram.allocator(), as vram_torch.allocator(), whose cache
    PyTorch has."""
    global _allocator
    _allocator = allocator
    cupy.cuda.set_allocator(allocate)


def disable():
    """Back to CuPy's own pool."""
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)
