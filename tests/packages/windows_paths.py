"""Tests how the wheel without native code translates Windows paths for the command inside WebAssembly, and back. Needs its module on
PYTHONPATH."""
import ntpath
import os
from unittest import mock

from vram import _wasm_command as command

FILES = {"C:\\runs\\rank 0.pickle", "rank0.pickle", "ranks\\rank0.pickle"}
FOLDERS = {"out", "C:\\runs"}

here = mock.patch.multiple(os.path, exists=lambda name: name in FILES | FOLDERS, isdir=FOLDERS.__contains__, dirname=ntpath.dirname)
with mock.patch.object(command, "WINDOWS", True), here:
    for word, want in {
            "report": "report", "--json": "--json", "20GiB": "20GiB", "commit=a\\b": "commit=a\\b",
            "C:\\runs\\rank 0.pickle": "/C:/runs/rank 0.pickle", "C:/absent/x.pickle": "/C:/absent/x.pickle", "ranks\\rank0.pickle": "ranks/rank0.pickle",
            "out\\new.pickle": "out/new.pickle",  # an output that does not exist yet
            "--output=C:\\runs\\new.html": "--output=/C:/runs/new.html", "--skip=^\\w+$": "--skip=^\\w+$",
            "D:\\page.html#rank 3": "/D:/page.html#rank 3", "rank0.pickle": "rank0.pickle"}.items():
        assert command.argument(word) == want, (word, command.argument(word))
    for path in ("C:\\Users\\Zoë Müller", "d:\\"):
        assert command.outside(command.inside(path)) == path, path
    assert command.outside("ranks/rank0.html") == "ranks/rank0.html"
for word in ("C:\\x", "a\\b", "--output=/tmp/x"):  # on other systems a word stays unchanged
    assert command.argument(word) == word
print("ok")
