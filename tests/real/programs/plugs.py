"""vram under other libraries, by their own interfaces for allocators (docs/in): the libraries themselves, on the simulated device.

Each row: data comes back as it was put there, memory is not given out again before the work that uses it is done, a request that is too large is the
library's own error, and `vram report` knows the bytes and the line."""
import ctypes
import gc
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["VRAM_BUILD"], "site-packages"))

import vram
from rows import main, row

MIB = 1 << 20
TOO_MUCH = 1 << 40


def live():
    """Bytes that are handed out, and those with what waits for streams."""
    stats = vram.allocator().memory_stats()
    return stats["allocated_bytes.all.current"], stats["active_bytes.all.current"]


def report(*words):
    told = subprocess.run([os.path.join(os.environ["VRAM_BUILD"], "cli/vram"), "report", *words], capture_output=True, check=False)
    assert told.returncode in (0, 1), told.stderr
    return told.stdout.decode()


def reported(line, least_bytes):
    """The report of a snapshot has the peak, and what it lists as live then is this file's function."""
    vram.allocator().check()
    with tempfile.TemporaryDirectory() as folder:
        vram.allocator().snapshot(os.path.join(folder, "plug.pickle"))
        peak = json.loads(report("--json", os.path.join(folder, "plug.pickle")))["devices"]["0"]["allocated"]["peak_bytes"]
        text = report(os.path.join(folder, "plug.pickle"))
    assert least_bytes <= peak, peak
    sites = text.partition("Live at the peak")[2].partition("\n\n")[0].splitlines()[2:]
    assert sites and all(re.search(rf"plugs.py:\d+:{line}$", site) for site in sites), sites


def refused(kind, function, *arguments):
    """It is the library's error, with the allocator's report as its cause or in it; and the allocator goes on."""
    try:
        function(*arguments)
    except kind as error:
        assert "GiB" in f"{error} {error.__cause__}", (error, error.__cause__)
        error = None
    else:
        raise AssertionError("more than there is was given out")
    gc.collect()


@row
def numba_plug():
    import numpy
    import vram.numba
    from numba import cuda
    from numba.cuda.cudadrv.driver import CudaAPIError

    vram.numba.enable()
    vram.allocator().record("all,stacks=python")

    @cuda.jit
    def add(x):
        x[cuda.grid(1)] += 1

    there = cuda.to_device(numpy.arange(MIB, dtype=numpy.float32))
    assert (there.copy_to_host() == numpy.arange(MIB)).all() and live()[0] == 4 * MIB
    stream = cuda.stream()
    for _ in range(100):
        add[MIB // 256, 256, stream](there)
    before = there.device_ctypes_pointer.value
    del there
    assert live() == (0, 4 * MIB), live()  # the kernels still write to it
    other = cuda.device_array(MIB, numpy.float32)
    assert other.device_ctypes_pointer.value != before
    cuda.synchronize()
    again = cuda.device_array(MIB, numpy.float32)
    assert again.device_ctypes_pointer.value == before
    refused(CudaAPIError, cuda.device_array, TOO_MUCH, numpy.uint8)
    handle = again.get_ipc_handle()
    assert handle._ipc_handle.size == 4 * MIB
    assert cuda.current_context().get_memory_info().total == vram.allocator().mem_get_info()[1]
    del handle, other, again
    reported("numba_plug", 8 * MIB)
    kept = cuda.device_array(MIB, numpy.float32)
    cuda.close()
    assert live()[0] == 0 and kept is not None


@row
def cuda_core_plug():
    import vram.cuda_core
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    resource = vram.cuda_core.enable(device)
    vram.allocator().record("all,stacks=python")
    first, second = device.create_stream(), device.create_stream()
    arch = "".join(str(part) for part in device.compute_capability)
    program = Program('extern "C" __global__ void f(int *x) { x[threadIdx.x] = 1; }', "c++", ProgramOptions(std="c++17", arch=f"sm_{arch}"))
    kernel = program.compile("cubin").get_kernel("f")
    buffer = device.allocate(4 * MIB, stream=first)
    assert buffer.size == 4 * MIB and buffer.memory_resource is resource and buffer.is_device_accessible and not buffer.is_host_accessible
    before = int(buffer.handle)
    launch(first, LaunchConfig(grid=1, block=32), kernel, buffer)
    buffer.close(first)
    buffer = device.allocate(4 * MIB, stream=first)  # in the order of its stream: at once
    assert int(buffer.handle) == before
    for _ in range(100):
        launch(second, LaunchConfig(grid=1, block=32), kernel, buffer)
    buffer.close(second)
    assert live() == (0, 4 * MIB), live()
    buffer = device.allocate(4 * MIB, stream=first)
    assert int(buffer.handle) != before
    first.sync()
    second.sync()
    other = device.allocate(4 * MIB, stream=first)
    assert int(other.handle) == before
    refused(MemoryError, lambda: device.allocate(TOO_MUCH, stream=first))
    del other
    gc.collect()
    buffer.close()
    assert live()[0] == 0, live()
    reported("cuda_core_plug", 8 * MIB)


@row
def cupy_plug():
    import numpy
    for library in glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.*")):
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)  # CuPy looks for it by name
    import cupy
    import vram.cupy

    vram.cupy.enable()
    vram.allocator().record("all,stacks=python")
    there = cupy.asarray(numpy.arange(MIB, dtype=numpy.float32))
    assert (there.get() == numpy.arange(MIB)).all() and live()[0] == 4 * MIB and cupy.get_default_memory_pool().total_bytes() == 0
    doubled = there * 2 + there  # compiled by NVRTC, launched
    assert doubled.shape == there.shape and cupy.zeros(0).size == 0
    view = there.reshape(1024, 1024)[10:]
    before, size = there.data.ptr, live()[0]
    del there
    assert live()[0] == size  # a view has it still
    del view
    assert live()[0] == size - 4 * MIB
    assert cupy.empty(MIB, numpy.float32).data.ptr == before  # in the order of its stream: at once
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        mine = cupy.empty(MIB, numpy.float32)
        assert mine.data.ptr != before  # the other stream's block is not this one's
    refused(cupy.cuda.memory.OutOfMemoryError, cupy.empty, TOO_MUCH, numpy.uint8)
    del mine, doubled
    stream.synchronize()
    assert live()[0] == 0, live()
    reported("cupy_plug", 8 * MIB)
    vram.cupy.disable()
    kept = cupy.empty(MIB, numpy.float32)
    assert live()[0] == 0 and cupy.get_default_memory_pool().used_bytes() == kept.nbytes


if __name__ == "__main__":
    main()
