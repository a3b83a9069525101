"""Runs vram under other libraries, through their own interfaces for allocators (docs/in), with the libraries themselves, on the simulated device.

Each row checks that data comes back unchanged, and that memory is not reused before the work that uses it is done. A request that is too large must raise
the library's own error, and `vram report` must have the bytes and the line."""
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
    """Returns the allocated bytes, and those including blocks that wait for streams."""
    stats = vram.allocator().memory_stats()
    return stats["allocated_bytes.all.current"], stats["active_bytes.all.current"]


def report(*words):
    told = subprocess.run([os.path.join(os.environ["VRAM_BUILD"], "cli/vram"), "report", *words], capture_output=True, check=False)
    assert told.returncode in (0, 1), told.stderr
    return told.stdout.decode()


def reported(line, least_bytes):
    """Checks that a snapshot's report has the peak, and that the live blocks it lists come from this file's function."""
    vram.allocator().check()
    with tempfile.TemporaryDirectory() as folder:
        vram.allocator().snapshot(os.path.join(folder, "plug.pickle"))
        peak = json.loads(report("--json", os.path.join(folder, "plug.pickle")))["devices"]["0"]["allocated"]["peak_bytes"]
        text = report(os.path.join(folder, "plug.pickle"))
    assert least_bytes <= peak, peak
    sites = text.partition("Live at the peak")[2].partition("\n\n")[0].splitlines()[2:]
    assert sites and all(re.search(rf"plugs.py:\d+:{line}$", site) for site in sites), sites


def refused(kind, function, *arguments):
    """Checks that it raises the library's error with the allocator's report in its cause or text, and that the allocator still works."""
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
    buffer = device.allocate(4 * MIB, stream=first)  # reused at once, in the order of its stream
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
    graph = device.create_graph_builder().begin_building()
    try:
        device.allocate(MIB, stream=graph)
        raise AssertionError("memory was given to a graph that is being built")
    except NotImplementedError as error:
        assert "GraphMemoryResource" in str(error)
    graph.end_building()
    del other
    gc.collect()
    buffer.close()
    assert live()[0] == 0, live()
    reported("cuda_core_plug", 8 * MIB)


@row
def cupy_plug():
    import numpy
    for library in glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.*")):
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)  # CuPy loads it by name
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
    assert live()[0] == size  # a view still holds it
    del view
    assert live()[0] == size - 4 * MIB
    assert cupy.empty(MIB, numpy.float32).data.ptr == before  # reused at once, in the order of its stream
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        mine = cupy.empty(MIB, numpy.float32)
        assert mine.data.ptr != before  # not the other stream's block
    refused(cupy.cuda.memory.OutOfMemoryError, cupy.empty, TOO_MUCH, numpy.uint8)
    del mine, doubled
    stream.synchronize()
    assert live()[0] == 0, live()
    reported("cupy_plug", 8 * MIB)
    vram.cupy.disable()
    kept = cupy.empty(MIB, numpy.float32)
    assert live()[0] == 0 and cupy.get_default_memory_pool().used_bytes() == kept.nbytes


@row
def rmm_plug():
    """RMM's wheel carries NVIDIA's runtime. A resource, on which RMM's own ones are built, and buffers work without it."""
    import rmm.mr
    import vram.rmm
    from rmm.pylibrmm.stream import DEFAULT_STREAM, LEGACY_DEFAULT_STREAM

    vram.allocator().record("all,stacks=python")
    resource = vram.rmm.memory_resource()
    buffer = rmm.DeviceBuffer(size=4 * MIB, stream=DEFAULT_STREAM, mr=resource)
    assert buffer.size == 4 * MIB and live() == (4 * MIB, 4 * MIB)
    before = buffer.ptr
    del buffer
    assert live() == (0, 0)
    again = resource.allocate(4 * MIB, LEGACY_DEFAULT_STREAM)  # another handle of the same stream
    assert again == before
    counted = rmm.mr.StatisticsResourceAdaptor(rmm.mr.PoolMemoryResource(resource, 8 * MIB, 16 * MIB))
    address = counted.allocate(2 * MIB, DEFAULT_STREAM)
    assert live()[0] == 12 * MIB and counted.allocation_counts.current_bytes == 2 * MIB
    counted.deallocate(address, 2 * MIB, DEFAULT_STREAM)
    limited = rmm.mr.LimitingResourceAdaptor(resource, MIB)
    assert limited.allocate(MIB, DEFAULT_STREAM)
    refused(MemoryError, resource.allocate, TOO_MUCH, DEFAULT_STREAM)
    resource.deallocate(again, 4 * MIB, DEFAULT_STREAM)
    vram.rmm.enable()
    reported("rmm_plug", 12 * MIB)


def jax_on_the_device():
    """JAX loads its CUDA plug-in if /dev/nvidia0 exists; here a file names it, with the options that JAX would pass."""
    import jax_plugins.xla_cuda13
    from jaxlib import xla_client

    library = os.path.join(os.path.dirname(jax_plugins.xla_cuda13.__file__), "xla_cuda_plugin.so")
    with open("plugin.json", "w") as file:
        json.dump({"library_path": library, "create_options": xla_client.generate_pjrt_gpu_plugin_options()}, file)
    os.environ.update(PJRT_NAMES_AND_LIBRARY_PATHS=f"simulated:{os.path.abspath('plugin.json')}", JAX_PLATFORMS="simulated,cpu")
    import jax

    assert jax.devices()[0].platform == "gpu", jax.devices()
    return jax


@row
def jax_program():
    """The program that jax_recorded starts under `vram run`."""
    jax = jax_on_the_device()
    x = jax.numpy.ones((4096, 4096))
    (x + 1).block_until_ready()
    assert jax.devices()[0].memory_stats()["peak_bytes_in_use"] >= 2 * x.nbytes
    try:
        jax.numpy.ones((1 << 16, 1 << 15)).block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        assert "RESOURCE_EXHAUSTED" in str(error), error
    else:
        raise AssertionError("more than the limit was given out")


def recorded(program, *options, **variables):
    """Runs a row of this file under `vram run`. Returns the report's facts about device 0, and its text."""
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "plug.vram")
        run = [os.path.join(os.environ["VRAM_BUILD"], "cli/vram"), "run", *options, "-o", recording, "--"]
        subprocess.run([*run, sys.executable, os.path.abspath(__file__), program], cwd=folder, check=True, env={**os.environ, **variables})
        return json.loads(report("--json", recording))["devices"]["0"], report(recording)


@row
def jax_recorded():
    """XLA accepts no other allocator. Without its preallocation, a recording of the driver's calls has its memory with call sites."""
    facts, text = recorded("jax_program", "--limit", "4GiB", "--stacks", "c", XLA_PYTHON_CLIENT_PREALLOCATE="false", XLA_PYTHON_CLIENT_ALLOCATOR="platform")
    assert 128 * MIB <= facts["allocated"]["peak_bytes"] < 4 << 30 and "xla::" in text


def onnx_model(width):
    import numpy
    import onnx

    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"]), onnx.helper.make_node("Relu", ["y"], ["z"])]
    weights = onnx.helper.make_tensor("w", 1, [width, width], numpy.ones((width, width), numpy.float32).tobytes(), raw=True)
    inputs, outputs = ([onnx.helper.make_tensor_value_info(name, 1, ["rows", width])] for name in "xz")
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", inputs, outputs, [weights]), opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model.SerializeToString()


@row
def onnxruntime_plug():
    import threading

    import numpy
    import onnxruntime
    import vram.onnxruntime

    vram.allocator().record("all,stacks=python")
    x = numpy.ones((512, 1024), numpy.float32)
    first, second = (onnxruntime.InferenceSession(onnx_model(1024), providers=[("CUDAExecutionProvider", vram.onnxruntime.provider_options())])
                     for _ in range(2))
    assert first.get_providers()[0] == "CUDAExecutionProvider" and live()[0] == 8 * MIB  # weights
    assert first.run(None, {"x": x})[0].shape == x.shape and live()[0] == 8 * MIB
    threads = [threading.Thread(target=lambda session: [session.run(None, {"x": x}) for _ in range(20)], args=[session]) for session in (first, second) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads
    assert live() == (8 * MIB, 8 * MIB) and vram.onnxruntime.last_error() is None
    vram.allocator().set_memory_limit(256 * MIB)
    try:
        first.run(None, {"x": numpy.ones((128 * 1024, 1024), numpy.float32)})
    except Exception as error:
        assert "CUDAExternalAllocator" in str(error) and "512.00 MiB" in str(vram.onnxruntime.last_error()), error
    else:
        raise AssertionError("more than the limit was given out")
    assert first.run(None, {"x": x})[0].shape == x.shape
    del first, second
    gc.collect()
    assert live()[0] == 0, live()
    reported("<.*>", 12 * MIB)


@row
def onnxruntime_program():
    """The program that onnxruntime_cached starts under `vram run`: an arena that grows by each request, with its usual memory functions."""
    import numpy
    import onnxruntime

    provider = ("CUDAExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})
    for _ in range(2):
        session = onnxruntime.InferenceSession(onnx_model(1024), providers=[provider])
        assert session.run(None, {"x": numpy.ones((4096, 1024), numpy.float32)})[0].shape == (4096, 1024)
        del session
        gc.collect()


@row
def onnxruntime_cached():
    """Works without changing the program: its arenas use vram's cache, which calls the driver less often than ONNX Runtime calls it."""
    with tempfile.NamedTemporaryFile() as log:
        facts, text = recorded("onnxruntime_program", "--cache", "--stacks", "none", VRAM_SIM_LOG=log.name)
        asked = len(re.findall(rb"\bcuMemAlloc(?:_v2)?\b", log.read()))
    assert facts["allocated"]["peak_bytes"] >= 36 * MIB, text
    assert 0 < asked < facts["events_by_action"]["alloc"], (asked, facts["events_by_action"])


if __name__ == "__main__":
    main()
