"""A kernel on a second stream works on an array that the first stream still fills."""
import numpy
from numba import cuda


@cuda.jit("void(float32[::1])")
def double(array):
    place = cuda.grid(1)
    if place < array.size:
        array[place] *= 2


first, second = cuda.stream(), cuda.stream()
host = cuda.pinned_array(1 << 20, numpy.float32)
host[:] = 1
device = cuda.device_array(1 << 20, numpy.float32)
device.copy_to_device(host, stream=first)  # use
#+ first.synchronize()
double[4096, 256, second](device)  # conflict
cuda.synchronize()
