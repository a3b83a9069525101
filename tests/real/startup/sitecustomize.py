"""Python imports this at its start where check_real.py puts its folder in front: every process that imports torch has vram in the place of
PyTorch's allocator, and notes how in $VRAM_REAL_WAYS. The sitecustomize that the program would have had comes after it."""
import importlib.machinery
import importlib.util
import os
import sys


def _enable():
    import vram_torch

    vram_torch.enable()
    folder = os.environ.get("VRAM_REAL_WAYS")
    if folder:
        with open(os.path.join(folder, "ways"), "a") as file:
            file.write(vram_torch.way() + "\n")


class _Watcher:
    """Finds torch as it would have been found, and adds to its loader what happens when it has been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            _enable()

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
