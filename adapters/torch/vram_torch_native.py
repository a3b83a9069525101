"""Finds or compiles the library that replaces PyTorch's own class of CUDA allocators, for the installed PyTorch.

vram_torch.enable() uses this module. A library serves exactly one release of PyTorch with one string ABI, for any version of Python. It
is looked for among prebuilt ones (`make torch-native VERSIONS=...`), then in the user's cache; otherwise the C++ compiler builds it
there. See docs/guides/torch.md.
"""
import contextlib
import ctypes
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

KNOWN = ((2, 6), (2, 15))  # first and last release whose class the sources know
COMPILER_SECONDS = 600
# Libraries with PyTorch's functions at run time, by the names under which PyTorch loads them.
LIBRARIES = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so")
# The parts of libvram_torch.a that the linker would leave out: vram_torch.py calls them, or the archive refers to them weakly.
NEEDED = ("vram_torch_version", "vram_torch_pool_count", "vram_recordings_library")


class Unavailable(Exception):
    """Raised if there is no such library for this PyTorch. Its text is the reason, in one line."""


class Release:
    """The PyTorch that a library is built for."""

    def __init__(self, version, git, abi):
        self.version, self.git, self.abi = version, git, int(abi)

    @classmethod
    def of(cls, torch):
        """Returns the release of an imported PyTorch."""
        version, git = getattr(torch, "__version__", None), getattr(torch.version, "git_version", None)
        abi = getattr(getattr(torch, "_C", None), "_GLIBCXX_USE_CXX11_ABI", None)
        if version is None or git is None or abi is None:
            raise Unavailable("this PyTorch does not report its version, git hash and string ABI")
        return cls(str(version), git, abi)

    def numbers(self):
        found = re.match(r"(\d+)\.(\d+)", self.version)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def rules(self):
        """Returns the version as the option `pytorch` takes it."""
        return "{}.{}".format(*self.numbers())

    def file_name(self):
        return f"vram_torch_native-{self.version}-{self.git[:12]}-{'cxx11' if self.abi else 'cxx98'}.so"

    def check(self):
        if not KNOWN[0] <= self.numbers() <= KNOWN[1]:
            raise Unavailable("PyTorch {} is not supported ({}.{} to {}.{} are)".format(self.version, *KNOWN[0], *KNOWN[1]))


def sources_folder():
    """Returns the folder of sources, headers and archives, in this file's folder."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "vram", "torch")


# --- compiling ------------------------------------------------------------------------------------------------------------------------


def _fingerprint(folder):
    """Hashes everything a library is built from, including this file."""
    with open(os.path.abspath(__file__), "rb") as file:
        hashed = hashlib.sha256(file.read())
    for path in sorted(glob.glob(os.path.join(folder, "**"), recursive=True)):
        if os.path.isfile(path) and not path.endswith(".so"):
            facts = os.stat(path)
            hashed.update(f"{os.path.relpath(path, folder)}:{facts.st_size}:{facts.st_mtime_ns}\n".encode())
    return hashed.hexdigest()[:12]


def cuda_headers(site):
    """Returns folders with CUDA's headers in order of preference: a toolkit, NVIDIA's wheels, and Triton's copy, which PyTorch includes."""
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = [os.path.join(toolkit, "include") for toolkit in toolkits if toolkit]
    folders += sorted(glob.glob(os.path.join(site, "nvidia", "*", "include")), reverse=True)
    folders.append(os.path.join(site, "triton", "backends", "nvidia", "include"))
    return [folder for folder in folders if os.path.exists(os.path.join(folder, "cuda_runtime_api.h"))]


def _compiler():
    found = shutil.which(os.environ.get("CXX") or "g++") or shutil.which("c++")
    if found is None:
        raise Unavailable("no C++ compiler found (g++)")
    return found


def _run(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=COMPILER_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"the compiler did not finish ({error})") from None
    if done.returncode != 0:
        lines = [line for line in done.stdout.decode(errors="replace").splitlines() if "error" in line]
        raise Unavailable(f"the compiler failed: {(lines or ['no message'])[0][:200]}")


def compile_library(release, torch_folder, target, folder=None):
    """Builds `target` for the release whose headers are in torch_folder/include. The file appears only when complete."""
    folder, site = folder or sources_folder(), os.path.dirname(torch_folder)
    headers = os.path.join(torch_folder, "include")
    source = os.path.join(folder, "torch_native", "torch_native.cpp")
    if not os.path.exists(source):
        raise Unavailable(f"its sources are missing from {folder}")
    if not os.path.exists(os.path.join(headers, "c10", "cuda", "CUDACachingAllocator.h")):
        raise Unavailable(f"PyTorch's headers are missing from {headers}")
    cuda = cuda_headers(site)
    if not cuda:
        raise Unavailable("no CUDA headers found (install the wheel nvidia-cuda-runtime or triton, or set CUDA_HOME)")
    compiler = _compiler()
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as work:
        made = os.path.join(work, "made.so")
        include = [os.path.join(folder, "include"), headers, os.path.join(headers, "torch", "csrc", "api", "include"), *cuda]
        command = [compiler, "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", f"-D_GLIBCXX_USE_CXX11_ABI={release.abi}",
                   f'-DVRAM_TORCH_RELEASE="{release.version}"', f'-DVRAM_TORCH_GIT="{release.git}"']
        for path in include:
            command += ["-isystem", path]
        _run([*command, "-c", source, "-o", os.path.join(work, "made.o")])
        # Link against empty libraries with the right names: the loader finds PyTorch's, whose files need not be present.
        for name in LIBRARIES:
            _run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-x", "c++", os.devnull, "-o", os.path.join(work, name)])
        _run([compiler, "-shared", "-o", made, os.path.join(work, "made.o"), os.path.join(folder, "libvram_torch.a"),
              "-Wl," + ",".join(f"-u,{symbol}" for symbol in NEEDED), f"-Wl,--version-script={os.path.join(folder, 'exports.map')}", "-Wl,--no-as-needed", *[os.path.join(work, name) for name in LIBRARIES],
              "-Wl,-Bsymbolic", "-Wl,--strip-debug", "-lpthread", "-ldl", "-lm"])
        os.replace(made, target)


@contextlib.contextmanager
def _locked(path):
    """Makes one of several processes compile while the others wait."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compiled(release, torch_folder):
    folder = os.path.join(cache_folder(), _fingerprint(sources_folder()))
    target = os.path.join(folder, release.file_name())
    if os.path.exists(target):
        return target, "compiled before"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with _locked(target + ".lock"):
            if os.path.exists(target):
                return target, "compiled before"
            sys.stderr.write(f"vram_torch: compiling its library for PyTorch {release.version}, once\n")
            compile_library(release, torch_folder, target)
    except OSError as error:
        raise Unavailable(f"cannot write the cache ({error})") from None
    return target, "compiled now"


# --- for enable() -----------------------------------------------------------------------------------------------------------------------


def library_for(torch):
    """Returns (path, origin, Release) of a library for exactly this PyTorch. Raises Unavailable, with one line, if there is none."""
    release = Release.of(torch)
    release.check()
    for folder in (os.environ.get("VRAM_TORCH_PREBUILT"), os.path.join(sources_folder(), "prebuilt")):
        path = os.path.join(folder, release.file_name()) if folder else ""
        if path and os.path.exists(path):
            return path, "prebuilt", release
    path, how = _compiled(release, os.path.dirname(os.path.abspath(torch.__file__)))
    return path, how, release


def install(library, release):
    """Puts the loaded library's allocator into PyTorch's place. The library checks again that it was built for this PyTorch."""
    function = library.vram_native_install
    function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
    text = ctypes.create_string_buffer(512)
    if function(release.version.encode(), release.git.encode(), release.abi, text, len(text)) != 0:
        raise Unavailable(text.value.decode())
    library.vram_native_install_pinned()
