"""An array is copied to the host although nothing wrote it."""
import numpy
from numba import cuda

device = cuda.device_array(1 << 20, numpy.float32)  # made
#+ device.copy_to_device(numpy.ones(1 << 20, numpy.float32))
host = device.copy_to_host()  # use
