#!/usr/bin/env python3
"""Tests the parts of PyTorch's allocator class that Python cannot reach (native_calls.cpp), with the adapter compiled into the program
under the address and undefined-behaviour sanitizers.

usage: native_calls.py PYTHON      one that has PyTorch; VRAM_BUILD: the build (default build/release)"""
import pathlib
import subprocess
import sys
import tempfile

import torch_program as program

CONFS = ({}, {"VRAM_ALLOC_CONF": "expandable_segments:True"},
         {"VRAM_ALLOC_CONF": "throw_on_cudamalloc_oom:True,per_process_memory_fraction:1.0", "NATIVE_CALLS_REJECT": "1"})
MAIN = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL);
    int (*calls)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "native_calls") : 0;
    if (!calls) return fprintf(stderr, "%s\\n", dlerror()), 1;
    return calls(argc - 1, argv + 1);
}
"""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.partition("usage: ")[2].splitlines()[0])
    facts = program.facts_of(sys.argv[1])
    native = program.ADAPTER / "native"
    sanitizers = ["-O1", "-g", "-fsanitize=address,undefined", "-fsanitize-undefined-trap-on-error"]
    options = [*sanitizers, "-shared", "-fPIC",
               f'-DVRAM_TORCH_RELEASE="{facts[0]}"', f'-DVRAM_TORCH_GIT="{facts[1]}"', f"-I{native}/include", f"{native}/torch_native/torch_native.cpp",
               f"{native}/libvram_torch.a", "-lpthread", "-ldl", "-lm"]
    with tempfile.TemporaryDirectory() as work:
        library, path = pathlib.Path(work) / "native_calls.so", pathlib.Path(work) / "native_calls"
        program.compile_program(facts, program.HERE / "native_calls.cpp", library, options)
        subprocess.run(["g++", "-x", "c++", "-", *sanitizers, "-rdynamic", "-o", path, "-Wl,--no-as-needed", "-lstdc++", "-ldl"], input=MAIN, check=True, text=True)
        for conf in CONFS:
            variables = {**program.variables_of(facts), "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_sigbus=0", **conf}
            subprocess.run([*program.SIM, str(path), str(library), *facts[:3]], env=variables, check=True, timeout=120)


if __name__ == "__main__":
    main()
