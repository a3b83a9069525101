"""An array made from a pointer outlives the array that owns the memory, and a kernel gets it."""
import numpy
from numba import cuda


@cuda.jit("void(float32[::1])")
def clear(array):
    place = cuda.grid(1)
    if place < array.size:
        array[place] = 0


class Pointer:
    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__)
        #+ self.owner = array


device = cuda.to_device(numpy.ones(1 << 20, numpy.float32))
view = cuda.as_cuda_array(Pointer(device), sync=False)
del device
cuda.current_context().memory_manager.deallocations.clear()  # free
clear[4096, 256](view)  # use
cuda.synchronize()
