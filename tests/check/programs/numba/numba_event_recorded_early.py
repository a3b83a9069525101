"""The second stream waits for an event that the first recorded before its copy."""
import numpy
from numba import cuda

first, second = cuda.stream(), cuda.stream()
ready = cuda.event()
host = cuda.pinned_array(1 << 20, numpy.float32)
host[:] = 1
source, target = cuda.device_array(1 << 20, numpy.float32), cuda.device_array(1 << 20, numpy.float32)
ready.record(first)  #-
source.copy_to_device(host, stream=first)  # use
#+ ready.record(first)
ready.wait(second)
target.copy_to_device(source, stream=second)  # conflict
cuda.synchronize()
