"""Shared by vram's parts in a Python program. sitecustomize loads it first, as `_vram_shared`, a name the program does not look for."""
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def part(name):
    """Returns the module of the file NAME.py in this folder, loaded at its first use as `_NAME`."""
    if "_" + name not in sys.modules:
        spec = importlib.util.spec_from_file_location("_" + name, os.path.join(HERE, name + ".py"))
        sys.modules["_" + name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["_" + name])
    return sys.modules["_" + name]


def when_imported(name, function):
    """Calls `function` with the module of that name: now if it is loaded, else after its import."""
    if name in sys.modules:
        function(sys.modules[name])
    else:
        sys.meta_path.insert(0, Finder(name, function))


class Finder:
    """A finder placed first, for one module. Also called if the program only asks whether the module exists."""

    def __init__(self, name, function):
        self.name, self.function, self.looking = name, function, False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.looking:
            return None
        self.looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.looking = False
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.function(module)

        spec.loader.exec_module = exec_module
        return spec


def leave_to_python(torch, code):
    """Excludes this function from torch.compile(), which then begins with the functions it calls."""
    frames = getattr(getattr(getattr(torch, "_C", None), "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "skip_code"):
        frames.skip_code(code)
    elif hasattr(frames, "set_code_exec_strategy"):
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT))
