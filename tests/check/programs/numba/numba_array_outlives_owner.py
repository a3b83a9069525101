"""An array made from a pointer outlives the array that owns the memory."""
import numpy
from numba import cuda


class Pointer:
    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__)
        #+ self.owner = array


device = cuda.to_device(numpy.ones(1 << 20, numpy.float32))
view = cuda.as_cuda_array(Pointer(device))
del device
cuda.current_context().deallocations.clear()  # free
view.copy_to_device(numpy.zeros(1 << 20, numpy.float32))  # use
cuda.synchronize()
