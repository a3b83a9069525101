"""Locations of this package's parts."""
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
# In a wheel for Linux, the files that `make install` installs; otherwise WebAssembly.
NATIVE = HERE / "_native"
COMMAND = NATIVE / "bin" / "vram"
WASM = HERE / "_wasm"


def is_native():
    return COMMAND.is_file()


def library(name="libvram"):
    """Returns the path of a shared library of the wheel, whatever its version."""
    return next(iter(sorted((NATIVE / "lib").glob(f"{name}.so.*"))))


def shared_library():
    """Returns the path of the allocator's library, or VRAM_LIBRARY; None if there is no library."""
    return os.environ.get("VRAM_LIBRARY") or (str(library()) if is_native() else None)
