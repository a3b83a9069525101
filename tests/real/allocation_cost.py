#!/usr/bin/env python3
"""What a request and its free cost through PyTorch's class of allocators: PyTorch's own and vram's in turns in one process, on the simulated device.

usage: allocation_cost.py PYTHON     PYTHON: one that has PyTorch; VRAM_BUILD: the build (default build/release)"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("VRAM_BUILD", HERE.parents[1] / "build/release"))
ROUNDS, SIZES = 40, (1000, 100_000, 3_000_000, 30_000_000)
FACTS = "import torch, vram_torch_native as n; path, _, r = n.library_for(torch); print(path, r.version, r.git, r.abi, torch.__path__[0], sep='\\n')"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.partition("usage: ")[2].splitlines()[0])
    sys.path.insert(0, str(BUILD / "adapters/torch"))
    import vram_torch_native as native

    sim = [str(BUILD / "cli/vram"), "sim", "--device", "h100", "--"]
    variables = {**os.environ, "PYTHONPATH": str(BUILD / "adapters/torch")}
    told = subprocess.run([*sim, sys.argv[1], "-c", FACTS], env=variables, stdout=subprocess.PIPE, check=True, text=True).stdout
    library, version, git, abi, torch = told.split("\n")[:5]
    include = [f"{torch}/include", *native.cuda_headers(os.path.dirname(torch))]
    with tempfile.TemporaryDirectory() as work:
        program = f"{work}/allocation_cost"
        command = ["g++", "-std=c++20", "-O2", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *[part for path in include for part in ("-isystem", path)],
                   str(HERE / "allocation_cost.cpp"), "-o", program, f"-L{torch}/lib", "-lc10", "-lc10_cuda",
                   "-Wl,--unresolved-symbols=ignore-in-shared-libs", f"-Wl,-rpath,{torch}/lib"]
        subprocess.run(command, check=True)
        variables["LD_LIBRARY_PATH"] = f"{torch}/lib"
        for size in SIZES:
            subprocess.run([*sim, program, library, version, git, abi, str(ROUNDS), str(size)], env=variables, check=True)


if __name__ == "__main__":
    main()
