"""Compiles a C++ program against an installed PyTorch and returns how to run it, for allocation_cost.py and native_calls.py."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("VRAM_BUILD", ROOT / "build/release"))
ADAPTER = BUILD / "adapters/torch"
FACTS = "import torch; r = torch; print(r.__version__, r.version.git_version, int(r._C._GLIBCXX_USE_CXX11_ABI), r.__path__[0], sep='\\n')"
SIM = [str(BUILD / "cli/vram"), "sim", "--card", "h100", "--devices", "2", "--"]


def facts_of(python):
    """Returns (release, git hash, string ABI, folder) of a Python's PyTorch."""
    told = subprocess.run([*SIM, python, "-c", FACTS], stdout=subprocess.PIPE, check=True, text=True).stdout
    return told.split("\n")[:4]


def compile_program(facts, source, program, options=()):
    """Compiles `source`, with additional options, to `program`."""
    sys.path.insert(0, str(ADAPTER))
    import vram_torch_native as native

    _, _, abi, torch = facts
    include = [f"{torch}/include", f"{torch}/include/torch/csrc/api/include", *native.cuda_headers(os.path.dirname(torch))]
    command = ["g++", "-std=c++20", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *[part for path in include for part in ("-isystem", path)], str(source),
               *options, "-o", str(program), f"-L{torch}/lib", "-lc10", "-lc10_cuda", "-ltorch_cpu", f"-Wl,--unresolved-symbols=ignore-{'all' if '-shared' in options else 'in-shared-libs'}",
               f"-Wl,-rpath,{torch}/lib"]
    subprocess.run(command, check=True)


def variables_of(facts):
    return {**os.environ, "LD_LIBRARY_PATH": f"{facts[3]}/lib"}
