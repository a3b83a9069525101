"""Python imports this at its start if check_real.py puts its folder first in the path. If VRAM_REAL_WAYS names a folder, every process that
imports torch gets vram instead of PyTorch's allocator, and records there in which way. If VRAM_REAL_MEMORY names one, PyTorch's memory
state at the end is written there. Then the program's own sitecustomize runs."""
import importlib.machinery
import importlib.util
import os
import sys


def _begin(torch):
    ways, memory = os.environ.get("VRAM_REAL_WAYS"), os.environ.get("VRAM_REAL_MEMORY")
    if ways:
        import vram_torch

        vram_torch.enable()
        with open(os.path.join(ways, "ways"), "a") as file:
            file.write(vram_torch.way() + "\n")
    if memory:
        spec = importlib.util.spec_from_file_location("_memory_record", os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory_record.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.begin(torch, memory)


class _Watcher:
    """Finds torch as usual, and adds to its loader what runs after the import."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            _begin(module)

        spec.loader.exec_module = exec_module
        return spec


def _next_one():
    here = os.path.dirname(os.path.abspath(__file__))
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", [path for path in sys.path if os.path.abspath(path or ".") != here])
    if found is not None and found.loader is not None:
        module = importlib.util.module_from_spec(found)
        sys.modules["sitecustomize"] = module
        found.loader.exec_module(module)


sys.meta_path.insert(0, _Watcher())
_next_one()
