"""What runs WebAssembly: PyPI's wasmtime, with what it compiled kept on disk."""
import atexit
import functools

from . import _places


@functools.lru_cache(maxsize=None)
def engine():
    import wasmtime
    config = wasmtime.Config()
    try:
        config.cache = True
    except Exception:  # no folder for it: compiled each time
        config = wasmtime.Config()
    return wasmtime.Engine(config)


@functools.lru_cache(maxsize=None)
def module(name):
    import wasmtime
    return wasmtime.Module.from_file(engine(), str(_places.WASM / name))


# While wasmtime's own functions are still there.
atexit.register(engine.cache_clear)
atexit.register(module.cache_clear)
