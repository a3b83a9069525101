#!/usr/bin/env python3
"""Makes recordings/*.pickle.gz again, with PyTorch on the simulated device.

usage: remake.py VRAM PYTHON [PROGRAM...]      PYTHON: an interpreter with PyTorch, such as one in the cache of `make check-real`

The device has 4 GiB and no context, so a program has exactly the memory that its row of truth/torch.toml states.
"""
import ast
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SIM = ["sim", "--memory", "4GiB", "--devices", "2", "--set", "context=0,bytes=none", "--"]
MODULES = ("training", "untrained")


def assigned(module, name):
    """Returns the value of a name in a module, without importing it (which needs PyTorch)."""
    for node in ast.parse((HERE / "programs" / f"{module}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return [one.id for one in node.value.elts] if isinstance(node.value, ast.List) else ast.literal_eval(node.value)
    return None


def make(vram, python, module, program, variables):
    path = HERE / "recordings" / f"{program}.pickle.gz"
    environment = {**os.environ, **variables, "PYTHONPATH": str(HERE / "programs")}
    done = subprocess.run([vram, *SIM, python, str(HERE / "programs/record.py"), module, program, str(path)], env=environment, capture_output=True, text=True, timeout=300, check=False)
    print(f"{program}: {path.stat().st_size if path.exists() else 0} bytes{'' if done.returncode == 0 else f', ended with {done.returncode}: {done.stderr[-700:]}'}", flush=True)
    return done.returncode == 0


def main():
    vram, python, *names = sys.argv[1:]
    (HERE / "recordings").mkdir(exist_ok=True)
    made = [make(os.path.abspath(vram), python, module, program, assigned(module, "OPTIONS").get(program, {}))
            for module in MODULES for program in assigned(module, "PROGRAMS") if not names or program in names]
    return 0 if made and all(made) else 1


if __name__ == "__main__":
    sys.exit(main())
