"""The command as WebAssembly. It sees the files that this user sees, and nothing else of the world but, for `vram view`, a browser."""
import os
import pathlib
import shutil
import sys
import tempfile
import webbrowser

from . import _wasm_engine

WINDOWS = os.name == "nt"


def inside(path):
    """A path as the command names it: with slashes, drives as folders of the one root."""
    return "/" + path.replace("\\", "/") if WINDOWS and path[1:2] == ":" else path.replace("\\", "/") if WINDOWS else path


def outside(path):
    return path[1:].replace("/", "\\") if WINDOWS and path[2:3] == ":" else path


def argument(word):
    return inside(word) if WINDOWS and (word[1:3] == ":\\" or os.path.exists(word)) else word


def open_page(path):
    headless = sys.platform == "linux" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return int(not headless and webbrowser.open(pathlib.Path(outside(path)).absolute().as_uri()))


def environment(folder):
    given = {**os.environ, "PWD": inside(os.getcwd()), "TMPDIR": inside(folder)}
    if sys.stdout is not None and sys.stdout.isatty():
        given.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
    return list(given.items())


def roots():
    if not WINDOWS:
        return [("/", "/")]
    return [(f"{letter}:\\", f"/{letter}:") for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if os.path.exists(f"{letter}:\\")]


def run(words, out=None, err=None):
    """Runs it with these words; standard output and standard error are this process's own, or go to files. Its exit code."""
    import wasmtime
    wasi = wasmtime.WasiConfig()
    wasi.argv = ["vram", *map(argument, words)]
    wasi.env = environment(tempfile.gettempdir())
    for place, name in roots():
        wasi.preopen_dir(place, name)
    if out is None:
        wasi.inherit_stdin()
        wasi.inherit_stdout()
        wasi.inherit_stderr()
    else:
        wasi.stdout_file = out
        wasi.stderr_file = err
    store = wasmtime.Store(_wasm_engine.engine())
    store.set_wasi(wasi)
    linker = wasmtime.Linker(_wasm_engine.engine())
    linker.define_wasi()
    numbers = wasmtime.FuncType([wasmtime.ValType.i32(), wasmtime.ValType.i32()], [wasmtime.ValType.i32()])
    linker.define_func("vram", "open_browser", numbers, opener, access_caller=True)
    try:
        linker.instantiate(store, _wasm_engine.module("vram.wasm")).exports(store)["_start"](store)
    except wasmtime.ExitTrap as exit_trap:
        return exit_trap.code
    return 0


def opener(caller, start, length):
    return open_page(bytes(caller["memory"].read(caller, start, start + length)).decode())
