"""Where the parts of this package are."""
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
# What `make install` installs, where this wheel is for Linux; else WebAssembly.
NATIVE = HERE / "_native"
COMMAND = NATIVE / "bin" / "vram"
WASM = HERE / "_wasm"


def is_native():
    return COMMAND.is_file()


def library(name="libvram"):
    """A shared library of the wheel, by whichever version it has."""
    return next(iter(sorted((NATIVE / "lib").glob(f"{name}.so.*"))))


def shared_library():
    """The allocator's, or what VRAM_LIBRARY names; None where there is none."""
    return os.environ.get("VRAM_LIBRARY") or (str(library()) if is_native() else None)
