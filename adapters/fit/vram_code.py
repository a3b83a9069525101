"""Passes the PTX of kernels to the simulated driver. It shows what a kernel reads and writes, and the cubin that a compiler loads does not."""
import ctypes
import functools
import pathlib

import _vram_shared as shared


def code_of():
    """The function of the simulated driver that receives the PTX of a loaded kernel. None if another driver is loaded."""
    try:
        function = ctypes.CDLL("libcuda.so.1").vram_sim_kernel_code
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = (ctypes.c_uint64, ctypes.c_char_p), None
    return function


def begin_triton(compiler):
    """Passes on the PTX of Triton's kernels."""
    init, note_code = getattr(compiler.CompiledKernel, "_init_handles", None), code_of()
    if init is None or note_code is None:
        return

    def _init_handles(self, *arguments, **options):
        result = init(self, *arguments, **options)
        code, function = self.asm.get("ptx"), getattr(self, "function", None)
        if isinstance(code, str) and isinstance(function, int):
            note_code(function, code.encode())
        return result

    compiler.CompiledKernel._init_handles = _init_handles


def begin_inductor(launcher):
    """Passes on the PTX of Inductor's kernels, which PyTorch loads itself from Triton's cubins. Triton writes the PTX next to them."""
    kernel = getattr(launcher, "StaticallyLaunchedTritonKernel", None) or getattr(launcher, "StaticallyLaunchedCudaKernel", None)
    load, note_code = getattr(kernel, "load_kernel", None), code_of()
    if load is None or note_code is None:
        return

    @functools.wraps(load)
    def load_kernel(self, *arguments, **options):
        cubin = getattr(self, "cubin_path", None)
        result = load(self, *arguments, **options)
        functions = {getattr(self, "function", None), *getattr(self, "functions", {}).values()}
        path = pathlib.Path(cubin).with_suffix(".ptx") if cubin else None
        if path is not None and path.is_file():
            for function in functions - {None}:
                note_code(function, path.read_bytes())
        return result

    kernel.load_kernel = load_kernel


def begin_numba(codegen):
    """Passes on the PTX of numba's kernels, which it links to cubins itself."""
    library, note_code = getattr(codegen, "CUDACodeLibrary", None), code_of()
    load = getattr(library, "get_cufunc", None)
    if load is None or note_code is None:
        return
    function_of = ctypes.CDLL("libcuda.so.1").cuKernelGetFunction
    function_of.argtypes, noted = (ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64), set()

    @functools.wraps(load)
    def get_cufunc(self):
        result, function = load(self), ctypes.c_uint64()
        handle = getattr(result, "handle", None)
        if hasattr(handle, "__int__") and int(handle) not in noted:
            noted.add(int(handle))
            is_kernel = function_of(ctypes.byref(function), int(handle)) == 0  # a CUkernel; otherwise a CUfunction
            note_code(function.value if is_kernel else int(handle), self.get_asm_str().encode())
        return result

    library.get_cufunc = get_cufunc


def watch_imports():
    """Called by sitecustomize."""
    shared.when_imported("triton.compiler.compiler", begin_triton)
    shared.when_imported("numba.cuda.codegen", begin_numba)
    for name in ("static_triton_launcher", "static_cuda_launcher"):  # depends on the version
        shared.when_imported(f"torch._inductor.runtime.{name}", begin_inductor)
