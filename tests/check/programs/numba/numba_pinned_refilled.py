"""A pinned array is filled again before the copy from it completes."""
import numpy
from numba import cuda

stream = cuda.stream()
host = cuda.pinned_array(1 << 20, numpy.float32)
host[:] = 1
device = cuda.device_array(1 << 20, numpy.float32)
device.copy_to_device(host, stream=stream)  # use
#+ stream.synchronize()
host[:] = 2  # conflict
cuda.synchronize()
