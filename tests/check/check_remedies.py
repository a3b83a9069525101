#!/usr/bin/env python3
"""Tests that the remedies of `vram check` say which call of the program they mean. Usage: check_remedies.py VRAM"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

VRAM = sys.argv.pop(1)
START = """import ctypes as c
cuda, address, context, one, two, host = c.CDLL("libcuda.so.1"), c.c_ulonglong(), c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_void_p()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0), cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(1 << 20))
cuda.cuStreamCreate(c.byref(one), 1), cuda.cuStreamCreate(c.byref(two), 1), cuda.cuMemHostAlloc(c.byref(host), c.c_size_t(1 << 20), 0)
size = c.c_size_t(1 << 20)
"""


def remedies(program):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "work.py").write_text(START + program, encoding="utf-8")
        text = subprocess.run([VRAM, "check", "--", sys.executable, folder + "/work.py"], capture_output=True, text=True, check=False).stderr
    return " ".join(text.split()).split("remedy: ")[1:]


class Remedies(unittest.TestCase):
    def test_two_calls_of_one_file(self):
        found = remedies("cuda.cuMemsetD8Async(address, 0, size, one)\ncuda.cuMemcpyHtoDAsync_v2(address, host, size, two)\ncuda.cuCtxSynchronize()\n")
        self.assertEqual(len(found), 1)
        self.assertIn("after the memset at work.py:6, and let stream 3 wait for it (cudaStreamWaitEvent) before the copy from the host to the device at work.py:7.", found[0])

    def test_the_host(self):
        found = remedies("cuda.cuMemcpyDtoHAsync_v2(host, address, size, one)\ncuda.cuMemFreeHost(host)\n")
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"before the \S.* at work\.py:7, where s is stream 2\.")


if __name__ == "__main__":
    unittest.main()
