"""Provides NVRTC from its wheel, also under the name without a number, which C programs look for."""
import os
import pathlib
import sysconfig


def environment():
    """Returns the environment with NVRTC in the linker's path: links in a folder of the working directory."""
    libraries = pathlib.Path("nvrtc")
    libraries.mkdir(exist_ok=True)
    for library in pathlib.Path(sysconfig.get_path("purelib")).glob("nvidia/*/lib/libnvrtc*.so.*"):
        for name in (library.name, library.name.split(".so")[0] + ".so"):
            (libraries / name).unlink(missing_ok=True)
            (libraries / name).symlink_to(library)
    return {**os.environ, "LD_LIBRARY_PATH": f"{libraries.resolve()}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
