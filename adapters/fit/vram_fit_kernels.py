"""Kernels that an engine compiles at run time, on a machine without NVIDIA's compiler. On a GPU they usually come compiled: the engines' images
contain the package flashinfer-jit-cache."""
import functools
import os
import shutil
import sys

# Modules of FlashInfer and of SGLang whose functions allocate and return nothing: their callers in Python allocate what the kernels fill. As a simulated kernel
# computes nothing, functions that do nothing leave the same memory and the same values.
FILLING = ("sampling", "trtllm_comm", "norm")
FILLING_OF_SGLANG = ("activation", "clamp_position", "fused_rope", "kvcache")


class DoesNothing:
    """Replaces a compiled module, its functions, and their overloads (`.default`), which older versions of FlashInfer call. A call does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_):
        return None


def compiler_exists():
    """Returns whether FlashInfer finds nvcc."""
    try:
        return shutil.which(os.path.join(sys.modules["flashinfer.jit.cpp_ext"].get_cuda_path(), "bin/nvcc")) is not None
    except RuntimeError:
        return False


def replace_builds(recorder, module):
    """Replaces failing builds in flashinfer.jit.core. For a build that cannot be replaced, the error says what to do."""
    build = module.JitSpec.build_and_load

    @functools.wraps(build)
    def build_and_load(self, *args, **kwargs):
        try:
            return build(self, *args, **kwargs)
        except Exception:
            if compiler_exists():
                raise
            if self.name in FILLING:
                recorder.say(f"nvcc not found: FlashInfer's {self.name} kernels are not compiled and do nothing")
                return DoesNothing()
            recorder.say(f"nvcc not found: FlashInfer cannot compile {self.name}; its package flashinfer-jit-cache contains the compiled kernels")
            raise

    module.JitSpec.build_and_load = build_and_load
    if hasattr(module.JitSpec, "write_ninja"):
        replace_instructions(module.JitSpec)


def replace_instructions(spec):
    """Lets a build without instructions begin, which older versions of FlashInfer write before it and which name the compiler's version. It fails later."""
    write = spec.write_ninja

    @functools.wraps(write)
    def write_ninja(self, *args, **kwargs):
        try:
            write(self, *args, **kwargs)
        except Exception:
            if compiler_exists():
                raise

    spec.write_ninja = write_ninja


def replace_builds_of_sglang(recorder, module):
    """Replaces failing builds of SGLang's own kernels."""
    build = module.load_jit

    @functools.wraps(build)
    def load_jit(name, *args, **kwargs):
        try:
            return build(name, *args, **kwargs)
        except Exception:
            if shutil.which(os.path.join(module.toolchain.cuda_home(), "bin/nvcc")):
                raise
            if name not in FILLING_OF_SGLANG:
                recorder.say(f"nvcc not found: SGLang cannot compile {name}; set CUDA_HOME to a toolkit that has nvcc")
                raise
            recorder.say(f"nvcc not found: SGLang's {name} kernels are not compiled and do nothing")
            return DoesNothing()

    module.load_jit = load_jit


def toolkit_exists():
    """Returns whether DeepGEMM finds CUDA's toolkit, without which it cannot be imported."""
    return bool(os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or shutil.which("nvcc")) or os.path.exists("/usr/local/cuda")


def hide_deep_gemm(recorder, module):
    """Without the toolkit, lets vLLM choose other kernels, as newer versions do by themselves. Version 0.20 only looks for DeepGEMM's files."""
    find = getattr(module, "has_deep_gemm", None)
    if find is None:
        return

    @functools.cache
    def has_deep_gemm():
        if not find():
            return False
        if not toolkit_exists():
            recorder.say("no CUDA toolkit: vLLM runs without DeepGEMM; set CUDA_HOME to a toolkit that has nvcc")
            return False
        return True

    module.has_deep_gemm = has_deep_gemm


def modules(recorder):
    """Maps each module to the function to call after its import."""
    # FlashInfer's other norms are launched by a runtime that accepts only NVIDIA's driver. Both kinds fill memory that their callers allocate.
    os.environ.setdefault("FLASHINFER_USE_CUDA_NORM", "1")
    return {"flashinfer.jit.core": functools.partial(replace_builds, recorder),
            "sglang.kernels.jit.utils.compile.loader": functools.partial(replace_builds_of_sglang, recorder),
            "vllm.utils.import_utils": functools.partial(hide_deep_gemm, recorder)}
