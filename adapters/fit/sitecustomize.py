"""Python imports this module at start, because `vram fit` and `vram sim` put its folder first. It starts vram's parts and then removes
itself: the program finds the modules, and the sitecustomize, that it would have found without it."""


def _begin():
    import importlib.machinery
    import importlib.util
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if not path or os.path.abspath(path) != here]
    spec = importlib.util.spec_from_file_location("_vram_shared", os.path.join(here, "vram_shared.py"))
    sys.modules["_vram_shared"] = shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    computes, fits, checks = (os.environ.get(name) for name in ("VRAM_SIM_COMPUTE", "VRAM_FIT", "VRAM_SIM_CHECK"))
    for wanted, name in ((computes, "vram_values"), (fits, "vram_fit"), (checks, "vram_check"), (computes or checks, "vram_code")):
        if wanted:
            shared.part(name).watch_imports()
    # The name `sitecustomize` refers to this file. Import the next file of that name under the same name.
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if found is None or found.loader is None:
        return None
    module = importlib.util.module_from_spec(found)
    sys.modules["sitecustomize"] = module
    found.loader.exec_module(module)
    return module


_begin()
