"""vram under RMM, and so under cuDF, cuML and whatever else takes RMM's current resource.

    import vram.rmm
    vram.rmm.enable()              # on all devices, before anything else of RAPIDS allocates

docs/in/rmm.md."""
import rmm.mr

from ._allocator import free_on, malloc_on, process_allocator


def memory_resource(device=0, allocator=None):
    """A resource of RMM's for one device: memory in the order of streams. Freed on another stream than it was asked for on, it is given out again when
    that has passed this point, too."""
    source = allocator or process_allocator()

    def allocate(size, stream):
        return malloc_on(source, int(size), device, _handle(stream))  # a MemoryError becomes RMM's std::bad_alloc

    def deallocate(address, size, stream):
        free_on(source, int(address), _handle(stream))

    _kept.append((allocate, deallocate))  # buffers that are garbage together with their resource call them still
    return rmm.mr.CallbackMemoryResource(allocate, deallocate)


_kept = []


def _handle(stream):
    return int(stream.__cuda_stream__()[1])


def enable(devices=None, allocator=None):
    """Makes vram the current resource of these devices; None: of all."""
    source = allocator or process_allocator()
    for device in range(source.device_count()) if devices is None else devices:
        rmm.mr.set_per_device_resource(device, memory_resource(device, source))
