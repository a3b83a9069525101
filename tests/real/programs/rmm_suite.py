"""Runs RMM's own tests of its resources in Python (a folder of sources.tsv), with vram's resource wherever a test uses RMM's plain one.

RMM's wheel carries NVIDIA's runtime, which accepts only NVIDIA's driver. So it gets device 0 without asking that runtime, and tests that need
the runtime for other purposes are left out.

usage: rmm_suite.py SOURCE"""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.environ["VRAM_BUILD"], "site-packages"))

import rmm.mr
import rmm.pylibrmm.memory_resource._memory_resource as resources
import vram
import vram.rmm

FILES = ("callback_memory_resource", "failure_callback_resource_adaptor", "limiting_resource_adaptor", "statistics", "tracking_resource_adaptor",
         "lifecycle")
# Tests of other kinds of memory are left out, and two whose pool is a share of the device's memory, for which RMM asks the runtime.
CHOSEN = "not Async and not Managed and not Pinned and not test_mr_devicebuffer_lifetime and not test_upstream_mr_circle_ref_dealloc"


class Count:
    passed = failed = 0

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed
        self.failed += report.failed


def main():
    resources.getDevice = rmm._cuda.gpu.getDevice = lambda: 0
    rmm.mr.CudaMemoryResource = vram.rmm.memory_resource
    rmm.reinitialize = vram.rmm.enable  # after each test
    folder = os.path.join(sys.argv[1], "python/rmm/rmm/tests")
    count = Count()
    files = [os.path.join(folder, f"test_{name}.py") for name in FILES]
    pytest.main(["-q", "-p", "no:cacheprovider", "-k", CHOSEN, *files], plugins=[count])
    peak = vram.allocator().memory_stats()["allocated_bytes.all.peak"]
    print(f"{count.passed} passed, {count.failed} failed; peak {peak} bytes of vram's")
    if count.failed or not count.passed or not peak:
        sys.exit(1)
    vram.allocator().check()
    print("ok")


main()
