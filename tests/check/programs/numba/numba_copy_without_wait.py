"""A second stream copies the array back while the first still writes it."""
import numpy
from numba import cuda

first, second = cuda.stream(), cuda.stream()
host = cuda.pinned_array(1 << 20, numpy.float32)
result = cuda.pinned_array(1 << 20, numpy.float32)
host[:] = 1
device = cuda.device_array(1 << 20, numpy.float32, stream=first)
done = cuda.event()
device.copy_to_device(host, stream=first)  # use
#+ done.record(first); done.wait(second)
device.copy_to_host(result, stream=second)  # conflict
cuda.synchronize()
