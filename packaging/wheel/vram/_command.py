"""Runs the command: the Linux program, or its WebAssembly with wasmtime."""
import os
import subprocess
import sys
import tempfile

from . import _places


class Failed(RuntimeError):
    """A command failed. `code` is its exit code (2 usage, 3 bad input, 4 device)."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def run(*words):
    """Runs the command and returns its output as bytes. A finding (exit code 1) counts as an answer; other failures raise Failed."""
    words = [os.fspath(word) for word in words]
    if _places.is_native():
        done = subprocess.run([str(_places.COMMAND), *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        from . import _wasm_command
        with tempfile.TemporaryDirectory() as folder:
            places = [os.path.join(folder, name) for name in ("out", "err")]
            code = _wasm_command.run(words, *places)
            out, err = (read(place) for place in places)
    if code not in (0, 1):
        raise Failed(code, err.decode(errors="replace").strip())
    return out


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main():
    """The program `vram` on the command line."""
    if _places.is_native():
        sys.stdout.flush()
        os.execv(_places.COMMAND, ["vram", *sys.argv[1:]])
    from . import _wasm_command
    return _wasm_command.run(sys.argv[1:])
