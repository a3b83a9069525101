"""The programs of tests/check: the table, the marks in their sources, and how each of them is run.

A program has one mistake. Its twin is the same program without the mistake, and is made from the same source:

    with torch.cuda.stream(side):
        y = x * 2  # use
    #+ x.record_stream(side)        only the twin has this line
    done.record(side)  #-           only the mistake has this line

Lines have the same numbers in both. Other marks name what a finding's stacks have to show:

    use, conflict       the two uses that nothing orders
    free, reuse, made   where the memory was freed, handed out again or used by its next owner, or allocated
    capture, launch     the captured work and the launch of a graph

C programs have the same marks with // instead of #.
"""
import os
import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("VRAM_REAL_CACHE", Path.home() / ".cache/vram/real"))
# The interpreter of each language: an environment variable, or an environment of `make check-real`.
PYTHONS = {"pytorch": ("VRAM_TORCH_PYTHON", "torch"), "ranks": ("VRAM_TORCH_PYTHON", "torch"), "triton": ("VRAM_TORCH_PYTHON", "torch"),
           "numba": ("VRAM_NUMBA_PYTHON", "numba"), "cupy": ("VRAM_CUPY_PYTHON", "cupy")}
C_LANGUAGES = "runtime", "driver"
LANGUAGES = *PYTHONS, *C_LANGUAGES
MARK = re.compile(r"(?:#|//) (use|conflict|free|reuse|made|capture|launch)(?: (?:#|//)-)?$")
ONLY_TWIN = re.compile(r"( *)(?:#|//)\+ (.*)")
ONLY_MISTAKE = re.compile(r"( *)\S.*(#|//)-$")


class Program(NamedTuple):
    language: str
    name: str
    kinds: tuple
    options: tuple  # of `vram check`
    thread: str

    @property
    def path(self):
        return HERE / "programs" / self.language / (self.name + (".c" if self.language in C_LANGUAGES else ".py"))

    def source(self):
        return self.path.read_text(encoding="utf-8")

    def twin(self):
        """Returns the source without the mistake, line for line."""
        return "".join(twin_line(line) + "\n" for line in self.source().splitlines())

    def marks(self):
        """Returns the numbers of the lines with each mark."""
        lines = {}
        for number, line in enumerate(self.source().splitlines(), 1):
            if match := MARK.search(line):
                lines.setdefault(match[1], set()).add(number)
        return lines

    def missing(self, shown):
        """Returns the marks that a finding with these lines does not show. One of `free`, `reuse` and `made` is enough, and a captured
        node is not needed if its launch is shown."""
        marks = self.marks()
        life = [mark for mark in ("free", "reuse", "made") if mark in marks]
        wanted = [[mark] for mark in ("use", "conflict", "launch") if mark in marks] + ([life] if life else [])
        return ["/".join(group) for group in wanted if not any(marks[mark] & shown for mark in group)]


def twin_line(line):
    if match := ONLY_TWIN.match(line):
        return match[1] + match[2]
    if match := ONLY_MISTAKE.match(line):
        return match[1] + ("pass" if match[2] == "#" else ";")
    return line


def programs():
    """Returns the rows of cases.tsv."""
    rows = (line.split("\t") for line in (HERE / "cases.tsv").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return [Program(language, name, tuple(kind.split("|")), () if options == "-" else tuple(options.split()), "" if thread == "-" else thread)
            for language, name, kind, options, thread in rows]


def known_misses():
    """Returns the mistakes that `vram check` does not find yet, each with its reason: the rows of missed.tsv, which should become empty."""
    rows = (line.split("\t") for line in (HERE / "missed.tsv").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return dict(rows)


def interpreter(language):
    variable, environment = PYTHONS[language]
    return os.environ.get(variable) or str(CACHE / environment / "bin/python")


def environment(language):
    """Returns the environment of a run. CuPy finds NVRTC only on the linker's path."""
    variables = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith("VRAM_")}
    if language == "cupy":
        nvrtc = Path(interpreter(language)).parents[1].glob("lib/python3*/site-packages/nvidia/cuda_nvrtc/lib")
        variables["LD_LIBRARY_PATH"] = ":".join([*map(str, nvrtc), *filter(None, [variables.get("LD_LIBRARY_PATH")])])
    return variables


def command(program, file, libraries):
    """Returns the command that runs a program from a file, after compiling a C program next to it. `libraries`: the stand-ins to link."""
    if program.language in C_LANGUAGES:
        binary = file.with_suffix("")
        compiler = os.environ.get("CC", "cc")
        return [compiler, "-std=c11", "-g", "-O0", "-D_DEFAULT_SOURCE", "-I", str(HERE / "programs"), str(file), "-o", str(binary), "-pthread", *libraries], [str(binary)]
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if program.language == "ranks" else []
    return None, [interpreter(program.language), *ranks, str(file)]
