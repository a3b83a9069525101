"""Returns the path of the input that a row of truth/*.toml names as `KIND:NAME`, making it if necessary.

case       a file of the shared folder's cases         public    a public recording of the shared folder, by its number
file       a recording of this repository              made      a function of a module of tests/, which makes a recording event by event
library    a program of programs/library.c, which records itself
driver     one of programs/driver.c, recorded by `vram run` on the simulated driver; options of `vram run` follow its name
"""
import importlib
import pathlib
import os
import pickle
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLACES = ("shared", "recordings", "programs")
sys.path += [str(HERE), str(HERE.parent / "explain"), str(HERE.parent / "leaks")]


def in_folder(folder, name):
    path = pathlib.Path(folder or "/nowhere") / name
    return str(path) if path.exists() else None


def public(name, places):
    found = sorted(pathlib.Path(places["recordings"] or "/nowhere").glob(f"{name}_*"))
    return str(found[0]) if found else None


def written(recording, path):
    """Writes a recording, given as Python values or as an object with recording(), to a file."""
    if hasattr(recording, "recording"):
        recording = recording.recording()
    with open(path, "wb") as file:
        pickle.dump(recording, file, 4)
    return path


def made(name, folder, row):
    module, function = name.rsplit(".", 1)
    maker = getattr(importlib.import_module(module), function, None) or importlib.import_module(module).CASES[function][1]
    return written(maker(), f"{folder}/{row}.pickle")


def ended_well(command, environment):
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}, check=False)
    if ran.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {ran.returncode}: {ran.stderr}")


def of_library(program, name, path):
    ended_well([program, name], {"VRAM_HISTORY": f"all,stacks=c,file={path}", "VRAM_ON_OOM": f"report:{path}.txt"})
    return path


def of_driver(program, vram, name, folder, row):
    """Returns the recording of the first process, which started the others."""
    program_name, *options = name.split()
    simulated = [vram, "sim", "--memory", "2GiB", "--devices", "2", "--set", "pinned=2GiB,context=64MiB", "--"]
    ended_well([*simulated, vram, "run", *options, "-o", f"{folder}/{row}.%p.vram", "--", program, program_name], {})
    return str(min(pathlib.Path(folder).glob(f"{row}.*.vram"), key=lambda path: int(path.name.split(".")[-2])))


def path_of(text, places, folder, row):
    kind, name = text.split(":", 1)
    if kind == "case":
        return in_folder(places["shared"], f"data/cases/{name}")
    if kind == "public":
        return public(name, places)
    if kind == "file":
        return str(ROOT / name)
    if kind == "made":
        return made(name, folder, row)
    program = in_folder(places["programs"], f"judged_{kind}")
    if kind == "library":
        return program and of_library(program, name, f"{folder}/{row}.vram")
    if kind == "driver":
        return program and of_driver(program, places["vram"], name, folder, row)
    raise ValueError(f"{text}: no such kind of input")
