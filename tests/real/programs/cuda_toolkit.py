"""Lays out NVIDIA's wheels of an environment like an installed CUDA toolkit, for programs that compile kernels at run time."""
import os
import pathlib
import sys
import sysconfig


def link(place, target):
    if not place.is_symlink():
        place.symlink_to(target)


def use_toolkit():
    """Sets CUDA_HOME to the toolkit, unless it is set. What FlashInfer compiles stays with the environment, as it takes minutes."""
    if "CUDA_HOME" in os.environ:
        return
    wheels, folder = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia/cu13", pathlib.Path(sys.prefix) / "toolkit"
    (folder / "lib64").mkdir(parents=True, exist_ok=True)
    for name in ("bin", "include", "nvvm"):
        link(folder / name, wheels / name)
    for library in (wheels / "lib").glob("*.so*"):
        link(folder / "lib64" / library.name, library)
        link(folder / "lib64" / (library.name.partition(".so")[0] + ".so"), library)
    for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if entry and (pathlib.Path(entry) / "libcuda.so").exists():
            (folder / "lib64/libcuda.so").unlink(missing_ok=True)
            link(folder / "lib64/libcuda.so", pathlib.Path(entry) / "libcuda.so")
    os.environ.update(CUDA_HOME=str(folder), FLASHINFER_WORKSPACE_BASE=sys.prefix, MAX_JOBS="2")
