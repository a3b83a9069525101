"""An array is set on one stream and copied on another."""
import cupy

first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
source, target = cupy.zeros(1 << 20, cupy.float32), cupy.zeros(1 << 20, cupy.float32)
cupy.cuda.Device().synchronize()
source.data.memset_async(1, source.nbytes, first)  # use
#+ second.wait_event(first.record())
target.data.copy_from_device_async(source.data, source.nbytes, second)  # conflict
cupy.cuda.Device().synchronize()
