"""cupy #8068: the pool of a stream hands an array's memory out again although another stream still uses it."""
import cupy

first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
with second:
    target = cupy.zeros(1 << 20, cupy.float32)
with first:
    x = cupy.zeros(1 << 20, cupy.float32)
first.synchronize()
target.data.copy_from_device_async(x.data, x.nbytes, second)  # use
#+ first.wait_event(second.record())
del x  # free
with first:
    z = cupy.zeros(1 << 20, cupy.float32)  # reuse
cupy.cuda.Device().synchronize()
