"""The command as WebAssembly. It can access this user's files and nothing else, except a browser for `vram view`."""
import os
import pathlib
import re
import shutil
import sys
import tempfile
import webbrowser

from . import _wasm_engine

WINDOWS = os.name == "nt"
DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def inside(path):
    """Converts a path to the command's form: with slashes, and drives as folders of the one root."""
    return ("/" if DRIVE.match(path) else "") + path.replace("\\", "/") if WINDOWS else path


def outside(path):
    return path[1:].replace("/", "\\") if WINDOWS and DRIVE.match(path[1:]) else path


def argument(word):
    """Converts an argument to the command's form, if it is a path, or an option with a path after the equals sign."""
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    is_path = WINDOWS and (DRIVE.match(value) or os.path.exists(value) or os.path.isdir(os.path.dirname(value)))
    return option + equals + inside(value) if is_path else word


def open_page(path):
    headless = sys.platform == "linux" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return int(not headless and webbrowser.open(pathlib.Path(outside(path)).absolute().as_uri()))


def environment(folder):
    given = {**os.environ, "PWD": inside(os.getcwd()), "TMPDIR": inside(folder)}
    if sys.stdout is not None and sys.stdout.isatty():
        given.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
    return [(name, value) for name, value in given.items() if is_text(name + value)]


def is_text(word):
    """Returns whether it is UTF-8, the only encoding that WebAssembly receives."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)


def refuse(word, err):
    """Reports that an argument cannot be passed on, and returns the exit code."""
    line = f"vram: {ascii(word)} is not UTF-8, so the command in WebAssembly cannot open it; rename the file\n"
    if err is None:
        sys.stderr.write(line)
    else:
        pathlib.Path(err).write_text(line, encoding="utf-8")
    return 3


def roots():
    if not WINDOWS:
        return [("/", "/")]
    return [(f"{letter}:\\", f"/{letter}:") for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if os.path.exists(f"{letter}:\\")]


def run(words, out=None, err=None):
    """Runs the command with these arguments and returns its exit code. Standard output and standard error are this process's own, or go
    to files."""
    import wasmtime
    if odd := [word for word in words if not is_text(word)]:
        return refuse(odd[0], err)
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
    start &= 0xFFFFFFFF
    return open_page(bytes(caller["memory"].read(caller, start, start + length)).decode())
