#!/usr/bin/env python3
"""What no Python reaches of PyTorch's class of allocators (native_calls.cpp), with the adapter compiled into the program under the address and
undefined-behaviour sanitizers.

usage: native_calls.py PYTHON     one that has PyTorch; VRAM_BUILD: the build (default build/release)"""
import pathlib
import subprocess
import sys
import tempfile

import torch_program as program

CONFS = ({}, {"VRAM_ALLOC_CONF": "expandable_segments:True"},
         {"VRAM_ALLOC_CONF": "throw_on_cudamalloc_oom:True,per_process_memory_fraction:1.0", "NATIVE_CALLS_REJECT": "1"})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.partition("usage: ")[2].splitlines()[0])
    facts = program.facts_of(sys.argv[1])
    native = program.ADAPTER / "native"
    options = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-static-libasan", "-rdynamic",
               f'-DVRAM_TORCH_RELEASE="{facts[0]}"', f'-DVRAM_TORCH_GIT="{facts[1]}"', f"-I{native}/include", f"{native}/torch_native/torch_native.cpp",
               f"{native}/libvram_torch.a", "-lpthread", "-ldl", "-lm"]
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "native_calls"
        program.compile_program(facts, program.HERE / "native_calls.cpp", path, options)
        for conf in CONFS:
            variables = {**program.variables_of(facts), "ASAN_OPTIONS": "detect_leaks=0", **conf}
            subprocess.run([*program.SIM, str(path), *facts[:3]], env=variables, check=True, timeout=120)


if __name__ == "__main__":
    main()
