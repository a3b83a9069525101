#!/usr/bin/env python3
"""Builds the tests of the library adapters (include/vram/*.hpp) for check-real, each against its library.

usage: build_plugs.py RECIPE SOURCE FOLDER BUILD      in an environment with NVIDIA's header wheels; writes the programs to FOLDER/plugs

Libraries built from source use the shared runtime, because NVIDIA's static one accepts only NVIDIA's driver."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor

from build_sources import ARCHITECTURE, JOBS, make_toolkit

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
SITE = pathlib.Path(sysconfig.get_paths()["purelib"])


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in command)}\n{done.stdout}")


def compile_all(sources, place, flags):
    """Compiled objects of many sources, kept so that they are not compiled again."""
    place.mkdir(parents=True, exist_ok=True)

    def one(source):
        made = place / (re.sub(r"\W", "_", str(source)) + ".o")
        if not made.exists():
            run("gcc" if source.suffix == ".c" else "g++", "-w", "-O0", "-fPIC", *flags, "-c", source, "-o", made)
        return made
    with ThreadPoolExecutor(int(JOBS)) as pool:
        return list(pool.map(one, sources))


def renew(plugs, build):
    """Deletes programs made for another build or with other versions of the product's headers."""
    files = sorted(path for folder in (HERE / "plugs", INCLUDE) for path in folder.rglob("*") if path.is_file())
    made_for = f"{build}\n{hashlib.sha256(b''.join(path.read_bytes() for path in files)).hexdigest()}\n"
    stamp = plugs / "made-for"
    if plugs.exists() and not (stamp.exists() and stamp.read_text() == made_for):
        shutil.rmtree(plugs)
    plugs.mkdir(exist_ok=True)
    stamp.write_text(made_for)


class Place:
    def __init__(self, source, folder, build):
        self.source, self.build, older = pathlib.Path(source), pathlib.Path(build), SITE / "nvidia/cuda_runtime/include"
        self.toolkit = None if older.exists() else make_toolkit(pathlib.Path(folder), self.build)
        self.cuda = older if older.exists() else self.toolkit / "include"
        self.runtime = self.build / "simcudart" / ("libcudart.so.12" if older.exists() else "libcudart.so.13")
        self.objects, self.plugs = pathlib.Path(folder) / "objects", pathlib.Path(folder) / "plugs"
        renew(self.plugs, self.build)
        self.libraries = [f"-L{self.build}", "-lvram", self.runtime, f"-Wl,-rpath,{self.build}", "-pthread"]
        crt = [f"-I{SITE}/nvidia/cuda_nvcc/include"] if older.exists() else []
        self.headers = [f"-I{HERE}/plugs", f"-I{INCLUDE}", f"-I{self.cuda}", *crt]

    def program(self, name, source, *flags):
        """Compiles a program. The product's own must compile without a warning about its headers; warnings in others are ignored."""
        ours = [f"-I{HERE}/plugs", f"-I{INCLUDE}"]
        warnings = ["-Wall", "-Wextra", "-Werror"] if HERE in source.parents else ["-w"]
        others = [word for flag in [*self.headers, *flags[:-1]] if flag not in ours for word in (["-isystem", flag[2:]] if flag.startswith("-I") else [flag])]
        if not (self.plugs / name).exists():
            run("g++", "-O0", *warnings, *ours, *others, source, "-o", self.plugs / name, *flags[-1], *self.libraries)

    def program_of_nvcc(self, name, source):
        if not (self.plugs / name).exists():
            run(self.toolkit / "bin/nvcc", "-x", "cu", "-std=c++17", "-w", f"-arch={ARCHITECTURE}", "-cudart", "shared", *self.headers, f"-I{self.cuda}/cccl", source,
                "-o", self.plugs / name, f"-L{self.build}", "-lvram", "-Xlinker", f"-rpath={self.build}")


def cuda(at):
    """Builds what needs only headers and the compiler: CCCL of two versions, Thrust, NCCL."""
    at.program("cccl_of_the_toolkit", HERE / "plugs/cccl_resource.cpp", "-std=c++17", f"-I{at.cuda}/cccl", [])
    at.program("cccl_of_rmm", HERE / "plugs/cccl_resource.cpp", "-std=c++17", f"-I{SITE}/librmm/include/rapids", [])
    at.program_of_nvcc("cccl_by_nvcc", HERE / "plugs/cccl_resource.cpp")
    at.program_of_nvcc("thrust_vectors", HERE / "plugs/thrust_vectors.cu")


# These use resources other than this plug, or (hwdecompress, ..._view) need features of a newer driver.
OF_OTHERS = re.compile(r"cuda_async|hwdecompress|host_mr|pinned|system|managed|process_is|prefetch_resource")


def rmm(at):
    """RMM's own tests of resources, with vram instead of rmm::mr::cuda_memory_resource."""
    sources, logger = at.source / "cpp", SITE / "rapids_logger"
    flags = ["-std=c++20", f"-I{sources}/include", f"-I{SITE}/librmm/include/rapids", f"-I{SITE}/librmm/include", f"-I{logger}/include",
             f"-I{at.cuda}"]
    objects = compile_all(sorted((sources / "src").rglob("*.cpp")), at.objects, flags)
    run("g++", "-shared", "-o", at.plugs / "librmm_shared.so", *objects, at.runtime, f"-L{logger}/lib64", "-lrapids_logger",
        f"-Wl,-rpath,{logger}/lib64", "-ldl")
    link = [f"-L{at.plugs}", "-lrmm_shared", "-lgtest_main", "-lgmock", "-lgtest", f"-L{logger}/lib64", "-lrapids_logger",
            f"-Wl,-rpath,{at.plugs}:{logger}/lib64"]
    tests = [path for path in sorted((sources / "tests/mr").glob("*.cpp")) if not OF_OTHERS.search(path.name)]
    with ThreadPoolExecutor(int(JOBS)) as pool:
        list(pool.map(lambda path: at.program(path.stem, path, f"-I{HERE}/plugs/rmm", f"-I{sources}/tests", *flags, link), tests))


def configured(template, place, values, defined):
    """Does what CMake's configure_file() does."""
    text = re.sub(r"^#cmakedefine (\w+).*$", lambda found: f"#{'define' if found[1] in defined else 'undef'} {found[1]}", template.read_text(), flags=re.M)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(re.sub(r"@(\w+)@", lambda found: values.get(found[1].rpartition("_")[2], ""), text))


def umpire(at):
    """Umpire with CUDA, its C++ part only; camp and fmt are sources in folders next to it."""
    camp, fmt, made = at.source.parent / "camp", at.source.parent / "fmt", at.objects / "include"
    numbers = {"MAJOR": "2024", "MINOR": "7", "PATCH": "0"}
    configured(at.source / "src/umpire/config.hpp.in", made / "umpire/config.hpp", numbers, {"UMPIRE_ENABLE_CUDA", "UMPIRE_ENABLE_DEVICE", "UMPIRE_ENABLE_UM",
                                                                                             "UMPIRE_ENABLE_PINNED"})
    configured(camp / "include/camp/config.in.hpp", made / "camp/config.hpp", numbers, {"CAMP_ENABLE_CUDA"})
    flags = ["-std=c++17", "-DFMT_HEADER_ONLY", "-DCAMP_HAVE_CUDA=1", f"-I{made}", f"-I{at.source}/src", f"-I{at.source}/src/tpl", f"-I{camp}/include", f"-I{fmt}/include",
             f"-I{at.source}/src/tpl/umpire", *at.headers]
    left_out = re.compile(r"Hip|Sycl|OpenMP|[Nn]uma|HostShared|FileMemory|Constant|GetAttribute|device_allocator|DeviceAllocator|interface|sqlite")
    sources = [path for path in sorted((at.source / "src/umpire").rglob("*.cpp")) if not left_out.search(str(path.relative_to(at.source / "src/umpire")))]
    sources += [*sorted((camp / "src").glob("*.cpp")), at.source / "src/tpl/umpire/judy/judy.c"]
    objects = compile_all(sources, at.objects, flags)
    at.program("umpire_strategy", HERE / "plugs/umpire_strategy.cpp", *flags, [*objects, "-ldl"])


def tensorrt(at):
    at.program("tensorrt_allocator", HERE / "plugs/tensorrt_allocator.cpp", "-std=c++17", f"-I{at.source}/include", [])


def nccl(at):
    """NCCL's header, and the simulator's stand-in for its library."""
    header = at.objects / "nccl/nccl.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    values = {"Major": "2", "Minor": "28", "Patch": "0", "Suffix": "", "Version": "22800"}
    header.write_text(re.sub(r"\$\{nccl:(\w+)\}", lambda found: values[found[1]], (at.source / "src/nccl.h.in").read_text()))
    at.program("nccl_pool", HERE / "plugs/nccl_pool.cpp", "-std=c++17", f"-I{header.parent}", f"-I{at.cuda}/cccl", [at.build / "standins/libnccl.so.2"])


RECIPES = {function.__name__: function for function in (cuda, rmm, umpire, tensorrt, nccl)}

if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[1] not in RECIPES:
        sys.exit(__doc__.partition("usage: ")[2])
    RECIPES[sys.argv[1]](Place(*sys.argv[2:]))
