#!/usr/bin/env python3
"""Uses a memory pool in two processes: the owner through the driver, a child, which imports it, through the runtime.

Usage: pool_pair.py [DESCRIPTOR DATA]
"""
import ctypes
import os
import subprocess
import sys

P, U = ctypes.byref, ctypes.c_uint64
DESCRIPTOR_TYPE, TO_DEVICE, TO_HOST, MIB = 1, 1, 2, 1 << 20


def own():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pool, address, word = U(), U(), U(), U()
    descriptor, data = ctypes.c_int(), (ctypes.c_char * 64)()
    assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(P(context), 0) == cuda.cuCtxSetCurrent(context) == 0
    properties = (ctypes.c_int32 * 22)(1, DESCRIPTOR_TYPE, 1, 0)  # pinned, on device 0
    assert cuda.cuMemPoolCreate(P(pool), properties) == 0
    assert cuda.cuMemAllocFromPoolAsync(P(address), U(MIB), pool, None) == 0
    assert cuda.cuMemcpyHtoD_v2(address, P(U(42)), U(8)) == 0
    assert cuda.cuMemPoolExportToShareableHandle(P(descriptor), pool, DESCRIPTOR_TYPE, U(0)) == 0
    assert cuda.cuMemPoolExportPointer(data, address) == 0
    os.set_inheritable(descriptor.value, True)
    subprocess.run([sys.executable, __file__, str(descriptor.value), data.raw.hex()], check=True, close_fds=False)
    assert cuda.cuMemcpyDtoH_v2(P(word), address, U(8)) == 0
    print(word.value)


def take_part(descriptor, text):
    runtime = ctypes.CDLL("libcudart.so.13")
    pool, address, word, data = U(), U(), U(), (ctypes.c_char * 64).from_buffer_copy(bytes.fromhex(text))
    assert runtime.cudaSetDevice(0) == 0
    assert runtime.cudaMemPoolImportFromShareableHandle(P(pool), ctypes.c_void_p(descriptor), DESCRIPTOR_TYPE, 0) == 0
    assert runtime.cudaMemPoolImportPointer(P(address), pool, data) == 0
    assert runtime.cudaMemcpy(P(word), address, U(8), TO_HOST) == 0 and word.value == 42
    assert runtime.cudaMemcpy(address, P(U(43)), U(8), TO_DEVICE) == 0
    assert runtime.cudaFree(address) == 0 and runtime.cudaMemPoolDestroy(pool) == 0


if len(sys.argv) > 1:
    take_part(int(sys.argv[1]), sys.argv[2])
else:
    own()
