"""The WebAssembly engine: PyPI's wasmtime, which keeps compiled modules on disk."""
import atexit
import functools

from . import _places


@functools.lru_cache(maxsize=None)
def engine():
    import wasmtime
    config = wasmtime.Config()
    try:
        config.cache = True
    except Exception:  # without a folder for it, modules are compiled each time
        config = wasmtime.Config()
    return wasmtime.Engine(config)


@functools.lru_cache(maxsize=None)
def module(name):
    import wasmtime
    return wasmtime.Module.from_file(engine(), str(_places.WASM / name))


# Runs before wasmtime's own functions are gone.
atexit.register(engine.cache_clear)
atexit.register(module.cache_clear)
