"""vram under RMM, and so under cuDF, cuML and other users of RMM's current resource.

    import vram.rmm
    vram.rmm.enable()              # on all devices, before anything else of RAPIDS allocates

docs/in/rmm.md."""
import rmm.mr

from ._allocator import free_on, malloc_on, process_allocator


def memory_resource(device=0, allocator=None):
    """A resource of RMM for one device, with stream-ordered memory. Memory freed on another stream than that of its request is reused
    after that stream has passed the free."""
    source = allocator or process_allocator()

    def allocate(size, stream):
        return malloc_on(source, int(size), device, _handle(stream))  # a MemoryError becomes RMM's std::bad_alloc

    def deallocate(address, size, stream):
        free_on(source, int(address), _handle(stream))

    _kept.append((allocate, deallocate))  # buffers that become garbage together with their resource still call it
    return rmm.mr.CallbackMemoryResource(allocate, deallocate)


_kept = []


def _handle(stream):
    return int(stream.__cuda_stream__()[1])


def enable(devices=None, allocator=None):
    """Makes vram the current resource of these devices; None: of all devices."""
    source = allocator or process_allocator()
    for device in range(source.device_count()) if devices is None else devices:
        rmm.mr.set_per_device_resource(device, memory_resource(device, source))
