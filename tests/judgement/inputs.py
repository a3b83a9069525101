"""Where the input of a row of truth/*.toml comes from: `KIND:NAME`, a path once it is made.

case       a file of the shared folder's cases         public    a public recording of the shared folder, by its number
file       a recording of this repository              made      a function of a module of tests/, which makes a recording event by event
edited     a recording of edited.py                    c         a program of programs/*.c, recorded by the library or by `vram run`
"""
import gzip
import importlib
import json
import pathlib
import pickle
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
    """A recording of Python's values, or of a class with recording(), as a file."""
    if hasattr(recording, "recording"):
        recording = recording.recording()
    with open(path, "wb") as file:
        pickle.dump(recording, file, 4)
    return path


def made(name, folder, row):
    module, function = name.rsplit(".", 1)
    maker = getattr(importlib.import_module(module), function, None) or importlib.import_module(module).CASES[function][1]
    return written(maker(), f"{folder}/{row}.pickle")


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
    raise ValueError(f"{text}: no such kind of input")
