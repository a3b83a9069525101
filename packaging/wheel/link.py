#!/usr/bin/env python3
"""Replaces a compiler driver: compiles or links with ziglang, for glibc 2.28.

usage: link.py ZIG TARGET cc|c++ COMPILER ARGUMENT...   (COMPILER: the one that made the objects)
ziglang's linker does not know --exclude-libs: what the archives of a link define is made local by a version script instead. Nor does it know GCC's
objects for optimization at link time, which it takes for empty ones: GCC makes one object of them first.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

GLIBC = "2.28"
EXCLUDE = "-Wl,--exclude-libs,ALL"


def global_symbols(archives):
    """Returns the symbols that the archives define for other objects, according to nm."""
    listed = subprocess.run(["nm", "-g", "--defined-only", "-P", *archives], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[0] for line in listed.splitlines() if re.match(r"\S+ [A-Z] ", line)})


def made_machine_code(compiler, arguments, folder):
    """Returns the arguments with one object of machine code for all the code that GCC left to the link."""
    left = [name for name in arguments if name.endswith(".o") and b".gnu.lto_" in pathlib.Path(name).read_bytes()]
    if not left:
        return arguments
    made = os.path.join(folder, "link_time.o")
    subprocess.run([compiler, "-O2", "-fPIC", "-flto", "-r", "-nostdlib", "-flinker-output=nolto-rel", *left, "-o", made], check=True)
    return [made, *(name for name in arguments if name not in left)]


def main():
    zig, target, driver, compiler, *arguments = sys.argv[1:]
    command = [zig, driver, "-target", f"{target}-linux-gnu.{GLIBC}", "-fno-sanitize=undefined"]
    with tempfile.TemporaryDirectory() as folder:
        arguments = made_machine_code(compiler, arguments, folder)
        archives = [name for name in arguments if name.endswith(".a")] if EXCLUDE in arguments else []
        if archives:
            script = pathlib.Path(folder, "local.map")
            script.write_text("{ local: " + " ".join(f"{name};" for name in global_symbols(archives)) + " };\n")
            arguments.append(f"-Wl,--version-script={script}")
        return subprocess.run(command + [name for name in arguments if name != EXCLUDE], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
