#!/usr/bin/env python3
"""Configures and builds public sources for check-real, one recipe per name. None of their code is in this tree; the sources are copied and
left unchanged.

usage: build_sources.py RECIPE SOURCE FOLDER BUILD      in an environment with NVIDIA's wheels of compiler and headers; FOLDER/RECIPE gets the result

Skips sources that are built already. The linker gets the stand-ins of BUILD for NVIDIA's libraries."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

ARCHITECTURE = "sm_80"
JOBS = os.environ.get("VRAM_JOBS", "1")
SAMPLE_SECONDS = 1200
# CMake packages that a sample may look for, and their compiler options. A sample that needs another package is listed and skipped.
KNOWN_PACKAGES = {"CUDAToolkit": [], "OpenMP": ["-Xcompiler", "-fopenmp", "-lgomp"]}


# --- the toolkit ------------------------------------------------------------------------------------------------------------------------
def link(place, target):
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def has_headers(wheels, library):
    """Returns whether a library has headers. A library without them is not linked: configure scripts would find the library and fail to
    compile."""
    name = library.partition(".so")[0].removeprefix("lib")
    return name in ("cuda", "cudart", "nvidia-ml") or any((wheels / "include").glob(f"{name}*.h"))


def make_toolkit(folder, build):
    """Lays out the wheels and the stand-ins like an installed toolkit."""
    wheels, toolkit = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia/cu13", folder / "toolkit"
    shutil.rmtree(toolkit, ignore_errors=True)
    (toolkit / "lib64").mkdir(parents=True)
    for name in ("nvvm", "include"):
        link(toolkit / name, wheels / name)
    (toolkit / "bin").mkdir(exist_ok=True)
    for program in wheels.glob("bin/*"):  # linked one by one: programs that look next to the compiler must find this folder
        link(toolkit / "bin" / program.name, program)
    link(toolkit / "lib", "lib64")
    brought = [path for path in (wheels / "lib").iterdir() if path.suffix == ".a" or ".so" in path.name]
    ours = [path for part in ("simcudart", "standins", "simcuda") for path in (build / part).glob("lib*.so*") if has_headers(wheels, path.name)]
    for library in brought + ours:
        link(toolkit / "lib64" / library.name, library)
    # The name that the linker looks for; of several versions, the newest.
    for library in sorted(brought + ours, key=lambda path: [int(number) for number in re.findall(r"\d+", path.name)]):
        link(toolkit / "lib64" / (library.name.partition(".so")[0] + ".so"), library) if ".so." in library.name else None
    return toolkit


# --- NVIDIA's samples: nvcc with the shared runtime, one folder each -----------------------------------------------------------------------
def listed(text, command):
    """Returns the arguments after the first one of the first such command in a CMakeLists.txt."""
    found = re.search(rf"^\s*{command}\s*\(([^)]*)\)", text, re.M)
    return found[1].split()[1:] if found else []


def device_code(text):
    """Returns the files that a sample loads from its folder at run time: (file, source, how)."""
    found = []
    for kind in ("FATBIN", "PTX"):
        files = re.findall(rf"set\(\w*{kind}_FILE \"\$\{{CMAKE_CURRENT_BINARY_DIR\}}/([^\"]+)\"", text)
        sources = re.findall(r"set\(CUDA_KERNEL_SOURCE \"\$\{CMAKE_CURRENT_SOURCE_DIR\}/([^\"]+)\"", text)
        found += [(file.replace("${CMAKE_SIZEOF_VOID_P}", "64"), source, kind.lower()) for file, source in zip(files, sources)]
    return found


def sample_commands(sample, text, toolkit, place, common):
    nvcc = [str(toolkit / "bin/nvcc"), "-std=c++17", "-w", "-O0", f"-arch={ARCHITECTURE}", f"-I{common}", f"-I{sample}", f"-I{sample}/inc",
            f"-I{toolkit}/include", f"-I{toolkit}/include/cccl"]
    extra = [word for package in re.findall(r"find_package\((\w+)", text) for word in KNOWN_PACKAGES[package]]
    names = {"cuda_driver": "cuda"}
    libraries = [f"-l{names.get(name, name)}" for name in sorted(set(re.findall(r"CUDA::(\w+)", text))) if name != "cudart"]
    apart = ["-rdc=true", "-lcudadevrt"] if sample.name.startswith("cdp") or "cudadevrt" in text else []
    sources = [str(sample / word) for word in listed(text, "add_executable")]
    yield [*nvcc, "-cudart", "shared", *apart, "-Xcompiler", "-fPIE", *sources, "-o", str(place / sample.name), f"-L{toolkit}/lib64", *libraries, *extra]
    for file, source, kind in device_code(text):
        yield [*nvcc, f"-{kind}", str(sample / source), "-o", str(place / file)]


def build_sample(sample, toolkit, built, common):
    """Returns why a sample was not built, or ""."""
    text = (sample / "CMakeLists.txt").read_text()
    others = [name for name in re.findall(r"find_package\((\w+)", text) if name not in KNOWN_PACKAGES]
    place = built / sample.name
    if others:
        return f"needs {others[0]}"
    if (place / "complete").exists():
        return ""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for entry in sample.iterdir():  # its data, in the folder where it looks for them
        link(place / entry.name, entry)
    for command in sample_commands(sample, text, toolkit, place, common):
        done = subprocess.run(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SAMPLE_SECONDS)
        if done.returncode != 0:
            wrong = [line for line in done.stdout.splitlines() if re.search(r"error|fatal|undefined|cannot", line)]
            shutil.rmtree(place)
            return (wrong or done.stdout.splitlines() or ["no word"])[0][:200]
    (place / "complete").touch()
    return ""


def cuda_samples(source, folder, toolkit):
    """Builds each sample that needs only CUDA. A table next to them names what each of the others lacks."""
    built, reasons = folder / "cuda_samples", []
    built.mkdir(exist_ok=True)
    for sample in sorted(path.parent for path in source.glob("Samples/*/*/CMakeLists.txt")):
        try:
            why = build_sample(sample, toolkit, built, source / "Common")
        except subprocess.TimeoutExpired:
            why = f"over {SAMPLE_SECONDS} s"
        reasons.append(f"{sample.name}\t{why or 'built'}")
        print(f"{why or 'built'}: {sample.name}", flush=True)
    (built / "table.tsv").write_text("\n".join(reasons) + "\n")


# --- the others: their own build systems -----------------------------------------------------------------------------------------------
def run(*command, cwd, **variables):
    subprocess.run([str(word) for word in command], cwd=cwd, check=True, env={**os.environ, **{name: str(value) for name, value in variables.items()}})


def copied(source, place):
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place, symlinks=True, ignore=shutil.ignore_patterns("built", ".git"))
    return place


def nvtop(source, folder, toolkit):
    others = [f"-D{name}_SUPPORT=OFF" for name in ("AMDGPU", "INTEL", "MSM", "V3D", "PANFROST", "PANTHOR", "ASCEND", "TPU", "ROCKCHIP", "METAX", "ENFLAME", "APPLE")]
    run("cmake", "-S", source, "-B", folder / "nvtop", "-DCMAKE_BUILD_TYPE=Debug", *others, cwd=folder)
    run("cmake", "--build", folder / "nvtop", "--target", "nvtop", "-j", JOBS, cwd=folder)


def autotools(source, place, options, targets, **variables):
    if not (place / "configure").exists():
        copied(source, place)
        run("sh", "./autogen.sh", cwd=place)
    if not (place / "Makefile").exists():
        run("./configure", *options, cwd=place, **variables)
    for part in targets:
        run("make", "-s", "-j", JOBS, "-C", place / part, cwd=place)


def hwloc(source, folder, toolkit):
    options = ["--enable-cuda", "--enable-nvml", f"--with-cuda={toolkit}", "--disable-opencl", "--disable-cairo", "--disable-libxml2", "--disable-doxygen",
               "--disable-levelzero", "--disable-rsmi", "--disable-gl", "--disable-static", "--enable-shared"]
    autotools(source, folder / "hwloc", options, ["include", "hwloc", "utils/hwloc", "utils/lstopo"], CFLAGS="-O0", LDFLAGS=f"-L{toolkit}/lib64 -Wl,-rpath-link,{toolkit}/lib64")


# StarPU's test of allocation and eviction, and an example with a kernel.
STARPU_PROGRAMS = {
    "allocate": ["tests/datawizard/allocate.c"],
    "vector_scal": [f"examples/basic_examples/vector_scal{part}" for part in (".c", "_cpu.c", "_cuda.cu")],
}


def starpu(source, folder, toolkit):
    options = ["--enable-cuda", f"--with-cuda-dir={toolkit}", "--disable-opencl", "--disable-mpi", "--disable-build-doc", "--disable-build-doc-pdf", "--disable-fortran",
               "--disable-socl", "--disable-starpupy", "--disable-starpufft", "--disable-hdf5", "--disable-static", "--disable-glpk", "--disable-julia", "--disable-icc",
               "--disable-build-tests", "--disable-build-examples", "--disable-starpu-top", "--disable-full-gdb-information"]
    place = folder / "starpu"
    autotools(source, place, options, ["src"], CFLAGS="-O0", CXXFLAGS="-O0", LD_LIBRARY_PATH=toolkit / "lib64", NVCC=toolkit / "bin/nvcc",
              NVCCFLAGS=f"-arch={ARCHITECTURE} -cudart shared -I{toolkit}/include/cccl")
    (place / "programs").mkdir(exist_ok=True)
    common = [toolkit / "bin/nvcc", f"-arch={ARCHITECTURE}", "-cudart", "shared", "-w", "-DSTARPU_USE_CUDA", f"-I{toolkit}/include/cccl", f"-I{place}/include", f"-I{place}/src",
              f"-I{place}/tests", f"-L{place}/src/.libs", f"-L{toolkit}/lib64", "-Xlinker", f"-rpath,{place}/src/.libs", "-Xlinker", f"-rpath-link,{toolkit}/lib64"]
    library = next((place / "src/.libs").glob("libstarpu-*.so"))
    for name, sources in STARPU_PROGRAMS.items():
        run(*common, *(place / path for path in sources), "-o", place / "programs" / name, f"-l{library.stem[3:]}", "-lhwloc", "-lcublas", "-lcudart", "-lpthread", cwd=place)


def pycuda(source, folder, toolkit):
    """PyCUDA from PyPI. The build compiles against the environment's own NumPy; an isolated build would compile NumPy too where wheels are
    disabled."""
    place = folder / "pycuda"
    place.mkdir(exist_ok=True)
    pip = [sys.executable, "-m", "pip", "-q"]
    if not (place / "source").exists():
        run(*pip, "download", "--no-deps", "--no-build-isolation", "--no-binary", "pycuda", "-d", place, f"pycuda=={source.name}", cwd=place)
        run("tar", "xf", next(place.glob("*.tar.gz")), cwd=place)
        next(place.glob("pycuda-*/")).rename(place / "source")
    run(sys.executable, "configure.py", f"--cuda-root={toolkit}", cwd=place / "source")
    run(*pip, "install", "--no-deps", "--no-build-isolation", ".", cwd=place / "source", CFLAGS="-O0 -g0")


RECIPES = {"pycuda": pycuda, "cuda_samples": cuda_samples, "nvtop": nvtop, "hwloc": hwloc, "starpu": starpu}


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in RECIPES:
        sys.exit(__doc__.partition("usage: ")[2].splitlines()[0])
    source, folder, build = (pathlib.Path(word).resolve() for word in sys.argv[2:])
    RECIPES[sys.argv[1]](source, folder, make_toolkit(folder, build))


if __name__ == "__main__":
    main()
