"""Two streams set the same bytes. With `wait` the second one waits for the first; with `hold` the first waits for a value
in memory; with `unwritten` the host reads the bytes first. Exits with VRAM_TEST_EXIT."""
import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    assert result == 0, (name, result)


def made(name, *arguments):
    value = ctypes.c_uint64()
    call(name, ctypes.byref(value), *arguments)
    return value


call("cuInit", 0)
call("cuCtxSetCurrent", made("cuDevicePrimaryCtxRetain", 0))
first, second, done = made("cuStreamCreate", 1), made("cuStreamCreate", 1), made("cuEventCreate", 2)
memory = made("cuMemAlloc_v2", ctypes.c_size_t(4096))
if sys.argv[1:] == ["unwritten"]:
    call("cuMemcpyDtoH_v2", (ctypes.c_char * 16)(), memory, ctypes.c_size_t(16))
if sys.argv[1:] == ["hold"]:
    call("cuStreamWaitValue32_v2", first, memory, 0, 0)
cuda.cuMemsetD8Async(memory, 1, ctypes.c_size_t(4096), first)
call("cuEventRecord", done, first)
if sys.argv[1:] == ["wait"]:
    call("cuStreamWaitEvent", second, done, 0)
cuda.cuMemsetD8Async(memory, 1, ctypes.c_size_t(4096), second)
print("the program's output")
sys.exit(int(os.environ.get("VRAM_TEST_EXIT", "0")))
