"""vram under cuda.core: a memory resource.

    import vram.cuda_core
    device.memory_resource = vram.cuda_core.MemoryResource(device)     # or vram.cuda_core.enable(): of the current device
    buffer = device.allocate(1 << 20, stream=stream)

docs/in/cuda-core.md."""
import cuda.core

from ._allocator import free_on, malloc_on, process_allocator


class MemoryResource(cuda.core.MemoryResource):
    """Stream-ordered memory. A buffer belongs to the stream of its request. It is reused after that stream, and the stream on which it
    was closed, have passed the close."""

    def __init__(self, device=0, allocator=None):
        self._device_id = int(getattr(device, "device_id", device))
        self._allocator = allocator or process_allocator()

    def allocate(self, size, *, stream):
        try:
            address = malloc_on(self._allocator, size, self._device_id, _handle(stream))
        except MemoryError as error:
            raise MemoryError(f"vram: {error}") from error
        return cuda.core.Buffer.from_handle(address, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream=None):
        free_on(self._allocator, int(ptr), None if stream is None else _handle(stream))

    @property
    def is_device_accessible(self):
        return True

    @property
    def is_host_accessible(self):
        return False

    @property
    def is_managed(self):
        return False

    @property
    def device_id(self):
        return self._device_id


def _handle(stream):
    if hasattr(stream, "is_building"):
        raise NotImplementedError("vram.cuda_core: use cuda.core's GraphMemoryResource while a graph is being built")
    return int(stream.handle)


def enable(device=None, allocator=None):
    """Makes vram the memory resource of a device, by default the current one, and returns the resource."""
    device = device or cuda.core.Device()
    device.memory_resource = resource = MemoryResource(device, allocator)
    return resource
