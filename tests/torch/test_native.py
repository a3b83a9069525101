#!/usr/bin/env python3
"""Tests which library enable() chooses for a PyTorch, and why it chooses none, with a fake torch and libraries that only state their
PyTorch version."""
import os
import subprocess
import sys
import tempfile
import types

import cases
import vram_torch
import vram_torch_native
from test_fake import fake_torch

STUB = r"""
#include <stddef.h>
#include <stdio.h>
#include <string.h>
int vram_native_install(const char *release, const char *git, int abi, char *text, size_t capacity) {
    if (strcmp(release, RELEASE) == 0 && strcmp(git, GIT) == 0 && abi == 1) return 0;
    snprintf(text, capacity, "this library was made for another PyTorch");
    return 1;
}
int pinned;
void vram_native_install_pinned(void) { pinned = 1; }
"""


def torch_of(version, git="0123456789abcdef", events=None, headers=False):
    torch = fake_torch([] if events is None else events)
    torch.__version__, torch.version.git_version = version, git
    torch._C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True)
    if headers:
        folder = os.path.join(os.path.dirname(torch.__file__), "include", "c10", "cuda")
        os.makedirs(folder)
        with open(os.path.join(folder, "CUDACachingAllocator.h"), "w") as file:
            file.write("#error this is no PyTorch\n")
        cuda = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "triton", "backends", "nvidia", "include")
        os.makedirs(cuda)
        open(os.path.join(cuda, "cuda_runtime_api.h"), "w").close()
    return torch


def stub(folder, version, git, made_for=None):
    """Makes a library of the right name that says it is made for `made_for`. Its other functions are those of libvram_torch.so."""
    name = vram_torch_native.Release(version, git, True).file_name()
    path, source = os.path.join(folder, name), os.path.join(folder, "stub.c")
    with open(source, "w") as file:
        file.write(STUB)
    library = os.path.join(os.path.dirname(vram_torch.__file__), "libvram_torch.so")
    command = ["cc", "-shared", "-fPIC", f'-DRELEASE="{version}"', f'-DGIT="{made_for or git}"', source, "-o", path, "-Wl,--no-as-needed", library,
               f"-Wl,-rpath,{os.path.dirname(library)}"]
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        cases.skip("no C compiler")
    return path


def way_of(torch, **named):
    del torch
    vram_torch.enable(**named)
    return vram_torch.way()


def test_a_torch_that_does_not_say_what_it_is():
    fake_torch([])
    vram_torch.enable()
    assert vram_torch.way() == ("pluggable: no library for this PyTorch: this PyTorch does not report its version, git hash and string ABI")


def test_versions_that_are_not_known():
    for version in ("2.5.1", "2.16.0", "3.0"):
        release = vram_torch_native.Release(version, "0" * 40, True)
        try:
            release.check()
        except vram_torch_native.Unavailable as error:
            assert f"PyTorch {version} is not supported" in str(error)
        else:
            raise AssertionError(version)
    vram_torch_native.Release("2.6.0+cu124", "0" * 40, False).check()
    assert vram_torch_native.Release("2.15.0", "0123456789abcdef", 0).file_name() == "vram_torch_native-2.15.0-0123456789ab-cxx98.so"


def test_a_prebuilt_library():
    folder, events = tempfile.mkdtemp(), []
    os.environ["VRAM_TORCH_PREBUILT"] = folder
    path = stub(folder, "2.15.0", "0123456789abcdef")
    assert way_of(torch_of("2.15.0", events=events)) == f"native: prebuilt: {path}"
    assert events == []  # the pluggable interface is not touched
    assert vram_torch.allocator().path == path and vram_torch.is_enabled()


def test_a_library_for_another_torch_is_not_used():
    folder, events = tempfile.mkdtemp(), []
    os.environ["VRAM_TORCH_PREBUILT"] = folder
    stub(folder, "2.15.0", "0123456789abcdef", made_for="fedcba9876543210")  # its file name is wrong
    assert way_of(torch_of("2.15.0", events=events)) == "pluggable: no library for this PyTorch: this library was made for another PyTorch"
    assert events[0][0] == "CUDAPluggableAllocator"


def test_no_headers():
    assert "PyTorch's headers are missing from" in way_of(torch_of("2.15.0"))


def test_no_compiler():
    os.environ.update(XDG_CACHE_HOME=tempfile.mkdtemp(), CXX="/no/such/compiler", PATH="")
    assert way_of(torch_of("2.15.0", headers=True)) == "pluggable: no library for this PyTorch: no C++ compiler found (g++)"


def test_a_compiler_that_fails():
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    way = way_of(torch_of("2.15.0", headers=True))
    assert way.startswith("pluggable: no library for this PyTorch: ") and ("the compiler failed: " in way or "no C++ compiler" in way), way
    folder = vram_torch_native.cache_folder()
    left = [name for _, _, names in os.walk(folder) for name in names if not name.endswith(".lock")]
    assert left == [], left  # no partial result stays


def test_native_or_nothing():
    torch_of("2.15.0")
    try:
        vram_torch.enable(way="native")
    except vram_torch.Error as error:
        assert str(error).startswith("vram_torch: no library for this PyTorch: ")
    else:
        raise AssertionError("it was enabled")
    assert not vram_torch.is_enabled() and vram_torch.way() == ""
    try:
        vram_torch.enable(way="sideways")
    except vram_torch.Error as error:
        assert "unknown way sideways" in str(error)
    else:
        raise AssertionError("it was enabled")


@cases.environment(VRAM_TORCH_WAY="pluggable")
def test_pluggable_as_asked_for():
    assert way_of(torch_of("2.15.0")) == "pluggable: as requested"


def test_what_the_archive_refers_to_weakly_is_linked():
    """The linker takes no member of an archive for a weak reference, and dump_snapshot() would then look for another library."""
    archive = os.path.join(os.path.dirname(vram_torch_native.__file__), "native", "libvram_torch.a")
    symbols = [line.split()[-2:] for line in subprocess.run(["nm", archive], capture_output=True, text=True, check=True).stdout.splitlines() if len(line.split()) > 1]
    weak, defined = ({name for kind, name in symbols if kind in kinds} for kinds in ("w", "DTR"))
    assert weak & defined and weak & defined <= set(vram_torch_native.NEEDED), weak & defined


if __name__ == "__main__":
    cases.main(__file__, globals())
