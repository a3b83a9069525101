"""The program that the pages of `vram run`, `sim`, `fit`, `top` and `attach` run: it allocates memory from the CUDA driver, step by step.

Usage: allocate.py [SECONDS] (how long it waits at the end, keeping its memory)
"""
import ctypes
import sys
import time

cuda = ctypes.CDLL("libcuda.so.1")


def check(result):
    if result:
        sys.exit(f"the driver answers {result}")


def allocate(size):
    address = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
    return address


def main():
    context = ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    weights = [allocate(256 << 20) for _ in range(12)]
    for step in range(1, 5):
        scratch = [allocate(step << 28) for _ in range(8)]
        for address in scratch:
            check(cuda.cuMemFree_v2(address))
    print(f"{len(weights)} weights of 256 MiB, 4 steps", flush=True)
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)


if __name__ == "__main__":
    main()
