"""An array is fetched into pinned memory with a stream, and the host reads it before the stream's work completes."""
import cupy
import cupyx

stream = cupy.cuda.Stream(non_blocking=True)
x = cupy.zeros(1 << 20, cupy.float32)
cupy.cuda.Device().synchronize()
host = cupyx.empty_pinned(1 << 20, cupy.float32)
x.data.copy_to_host_async(host.ctypes.data, host.nbytes, stream)  # use
#+ stream.synchronize()
total = host.sum()  # conflict
cupy.cuda.Device().synchronize()
