"""A pinned array is read before the copy that fills it completes."""
import numpy
from numba import cuda

stream = cuda.stream()
host = cuda.pinned_array(1 << 20, numpy.float32)
device = cuda.to_device(numpy.ones(1 << 20, numpy.float32))
device.copy_to_host(host, stream=stream)  # use
#+ stream.synchronize()
total = host.sum()  # conflict
cuda.synchronize()
