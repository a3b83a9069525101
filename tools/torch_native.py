#!/usr/bin/env python3
"""Builds the library that replaces PyTorch's allocator with vram, for releases of PyTorch: `make torch-native VERSIONS="2.15.0 2.6.0+cu124
/venv/bin/python"`.

usage: torch_native.py BUILD VERSION...

A VERSION is a release, whose wheel is fetched for its headers (with pip, from its configured index), or a Python that has PyTorch. The
libraries go into BUILD/adapters/torch/native/prebuilt, where vram_torch finds them. No part of PyTorch is run or linked: a library is
compiled against headers. No part of it is committed."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# The parts that are extracted from wheels.
TORCH_PARTS = re.compile(r"torch/(include/|version\.py$|share/cmake/Torch/TorchConfig\.cmake$)|torch-[^/]*\.dist-info/METADATA$")
TRITON_PARTS = re.compile(r"triton/backends/nvidia/include/")


def fetch(requirement, parts, folder):
    """Unpacks these parts of a wheel into the folder."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "-d", work, requirement], check=True)
        for wheel in pathlib.Path(work).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder, [name for name in archive.namelist() if parts.match(name)])


def fetched(version, work):
    """Returns a folder like site-packages with the headers of this release."""
    site = pathlib.Path(work) / version
    site.mkdir()
    fetch(f"torch=={version}", TORCH_PARTS, site)
    metadata = next(site.glob("torch-*.dist-info/METADATA")).read_text()
    triton = re.search(r"^Requires-Dist: (triton) ?\(?==([^;)\s]+)", metadata, re.MULTILINE)
    if triton:
        fetch(f"{triton[1]}=={triton[2]}", TRITON_PARTS, site)
    return site


def site_of(python):
    """Returns the folder of a Python's torch, without importing it."""
    found = "import importlib.util; print(importlib.util.find_spec('torch').submodule_search_locations[0])"
    done = subprocess.run([python, "-c", found], check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.strip()).parent


def release_of(native, site):
    """Returns the release according to its files."""
    words = dict(re.findall(r"^(\w+)(?:: .*)? = '([^']*)'", (site / "torch/version.py").read_text(), re.MULTILINE))
    config = (site / "torch/share/cmake/Torch/TorchConfig.cmake").read_text()
    return native.Release(words["__version__"], words["git_version"], "_GLIBCXX_USE_CXX11_ABI=0" not in config)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.partition("usage: ")[2].splitlines()[0])
    adapter = pathlib.Path(sys.argv[1]).resolve() / "adapters/torch"
    sys.path.insert(0, str(adapter))
    import vram_torch_native as native

    target = adapter / "native/prebuilt"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for version in sys.argv[2:]:
            site = site_of(version) if os.path.exists(version) else fetched(version, work)
            release = release_of(native, site)
            release.check()
            native.compile_library(release, str(site / "torch"), str(target / release.file_name()))
            print(f"{target / release.file_name()}")


if __name__ == "__main__":
    main()
