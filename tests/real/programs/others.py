"""First steps with other libraries that use a GPU."""
import ctypes
import os
import sys

from rows import main, row


@row
def onnxruntime_session():
    import numpy
    import onnx
    import onnxruntime

    node = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"]), onnx.helper.make_node("Relu", ["y"], ["z"])]
    graph = onnx.helper.make_graph(node, "g", [onnx.helper.make_tensor_value_info("x", 1, [4, 64])], [onnx.helper.make_tensor_value_info("z", 1, [4, 64])],
                                   [onnx.helper.make_tensor("w", 1, [64, 64], [0.5] * 4096)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])
    assert session.get_providers()[0] == "CUDAExecutionProvider", session.get_providers()
    assert session.run(None, {"x": numpy.ones((4, 64), numpy.float32)})[0].shape == (4, 64)


@row
def bitsandbytes_layers():
    import bitsandbytes as bnb
    import torch

    x = torch.randn(8, 256, device="cuda", dtype=torch.float16)
    assert bnb.nn.Linear8bitLt(256, 128, has_fp16_weights=False).cuda()(x).shape == (8, 128)
    assert bnb.nn.Linear4bit(256, 128, compute_dtype=torch.float16).cuda()(x).shape == (8, 128)
    net = torch.nn.Linear(256, 256).cuda()
    for make in (bnb.optim.Adam8bit, bnb.optim.PagedAdamW):
        optimizer = make(net.parameters())
        net(x.float()).sum().backward()
        optimizer.step()
    torch.cuda.synchronize()


@row
def numba_kernel():
    import numpy
    from numba import cuda

    @cuda.jit
    def add(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] + 1

    x = numpy.arange(1000, dtype=numpy.float32)
    there = cuda.to_device(x)
    assert (there.copy_to_host() == x).all()
    add[8, 128](there, cuda.device_array_like(there))
    cuda.synchronize()
    assert cuda.current_context().get_memory_info()[1] > 1 << 30


@row
def tinygrad_training():
    """tinygrad generates its kernels, compiles them with NVRTC and launches them through the driver."""
    from tinygrad import Device, Tensor, TinyJit

    assert Device.DEFAULT == "CUDA"
    first, second = (Tensor.rand(*shape).contiguous().realize() for shape in ((64, 128), (128, 10)))

    @TinyJit
    def step(x):
        loss = ((x @ first).relu() @ second).square().mean()
        for weight, gradient in zip((first, second), loss.gradient(first, second)):
            weight.assign(weight - gradient * 0.001).realize()
        return loss.realize()

    for _ in range(4):  # the second captures, the third launches the graph
        assert step(Tensor.rand(32, 64).realize()).shape == ()
    assert Tensor.arange(1000).reshape(10, 100).to("CPU").to("CUDA").realize().shape == (10, 100)
    step(Tensor.rand(32, 64).realize()).item()


@row
def cuda_core_program():
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    stream = device.create_stream()
    arch = "".join(str(part) for part in device.compute_capability)
    program = Program('extern "C" __global__ void f(int *x) { x[threadIdx.x] = 1; }', "c++", ProgramOptions(std="c++17", arch=f"sm_{arch}"))
    kernel = program.compile("cubin").get_kernel("f")
    buffer = device.allocate(4096, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=32), kernel, buffer)
    stream.sync()
    buffer.close(stream)


@row
def cuda_bindings_driver():
    from cuda.bindings import driver

    def must(answer):
        assert int(answer[0]) == 0, answer
        return answer[1] if len(answer) == 2 else answer[1:]

    must(driver.cuInit(0) + (None,))
    device = must(driver.cuDeviceGet(0))
    context = must(driver.cuDevicePrimaryCtxRetain(device))
    must(driver.cuCtxSetCurrent(context) + (None,))
    address = must(driver.cuMemAlloc(1 << 20))
    data = (ctypes.c_char * 16)(*b"0123456789abcdef")
    back = (ctypes.c_char * 16)()
    must(driver.cuMemcpyHtoD(address, ctypes.addressof(data), 16) + (None,))
    must(driver.cuMemcpyDtoH(ctypes.addressof(back), address, 16) + (None,))
    assert bytes(back) == bytes(data)
    must(driver.cuMemFree(address) + (None,))


@row
def jax_functions():
    # JAX loads its CUDA plug-in if /dev/nvidia0 exists; its own variable makes it load any named plug-in.
    import jax_plugins.xla_cuda13

    plugin = os.path.join(os.path.dirname(jax_plugins.xla_cuda13.__file__), "xla_cuda_plugin.so")
    os.environ.update(PJRT_NAMES_AND_LIBRARY_PATHS=f"simulated:{plugin}", JAX_PLATFORMS="simulated,cpu")
    import jax
    import jax.numpy as jnp

    x = jax.random.normal(jax.random.PRNGKey(0), (8, 16, 16))
    assert jax.devices()[0].platform == "gpu", jax.devices()
    assert jax.jit(lambda a: a @ a)(jnp.ones((64, 64))).shape == (64, 64)
    assert jnp.linalg.svd(x)[0].shape == jnp.fft.fft(x).shape == jnp.linalg.cholesky(x).shape == jnp.linalg.eigh(x)[1].shape == x.shape
    assert jax.lax.conv(x[None], jnp.ones((4, 8, 3, 3)), (1, 1), "SAME").shape == (1, 4, 16, 16)
    assert jax.grad(lambda w: (w @ x[0]).sum())(x[1]).shape == (16, 16)
    assert jax.devices()[0].memory_stats()["peak_bytes_in_use"] > x.nbytes


@row
def pynvml_view():
    import pynvml

    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() >= 1
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    assert 0 < memory.free <= memory.total and pynvml.nvmlDeviceGetName(device) and pynvml.nvmlDeviceGetUUID(device).startswith("GPU-")
    assert pynvml.nvmlSystemGetDriverVersion() and pynvml.nvmlDeviceGetCudaComputeCapability(device)[0] >= 7
    pynvml.nvmlDeviceGetComputeRunningProcesses(device)


@row
def nvitop_screen():
    import subprocess

    done = subprocess.run([sys.executable, "-m", "nvitop", "--once"], capture_output=True, text=True, timeout=120)
    print(done.stdout, done.stderr)
    assert done.returncode == 0 and "iB" in done.stdout


if __name__ == "__main__":
    main()
