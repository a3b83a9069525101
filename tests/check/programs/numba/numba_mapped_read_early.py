"""A kernel writes memory of the host that is mapped to the device, and the host reads it before the kernel completes."""
import numpy
from numba import cuda


@cuda.jit("void(float32[::1])")
def fill(array):
    place = cuda.grid(1)
    if place < array.size:
        array[place] = 3


stream = cuda.stream()
mapped = cuda.mapped_array(1 << 20, numpy.float32)
fill[4096, 256, stream](mapped)  # use
#+ stream.synchronize()
total = mapped.sum()  # conflict
cuda.synchronize()
