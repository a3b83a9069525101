"""The program that the page of `vram check` runs: one stream fills memory and another reads it, without a wait between the two."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def check(result):
    if result:
        sys.exit(f"the driver answers {result}")


def create(name, *arguments):
    value = ctypes.c_uint64()
    check(getattr(cuda, name)(ctypes.byref(value), *arguments))
    return value


check(cuda.cuInit(0))
check(cuda.cuCtxSetCurrent(create("cuDevicePrimaryCtxRetain", 0)))
size = ctypes.c_size_t(1 << 20)
source, target = create("cuMemAlloc_v2", size), create("cuMemAlloc_v2", size)
filling, reading = create("cuStreamCreate", 1), create("cuStreamCreate", 1)
check(cuda.cuMemsetD8Async(source, 1, size, filling))
check(cuda.cuMemcpyDtoDAsync_v2(target, source, size, reading))
