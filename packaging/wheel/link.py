#!/usr/bin/env python3
"""Compiles or links by ziglang for glibc 2.28 what a compiler's driver is told.

usage: link.py ZIG TARGET cc|c++ ARGUMENT...
ziglang's linker does not know --exclude-libs: what the archives of a link define is made local by a version script instead.
"""
import os
import re
import subprocess
import sys
import tempfile

GLIBC = "2.28"
EXCLUDE = "-Wl,--exclude-libs,ALL"


def global_symbols(archives):
    """What nm says that the archives define for others."""
    listed = subprocess.run(["nm", "-g", "--defined-only", "-P", *archives], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[0] for line in listed.splitlines() if re.match(r"\S+ [A-Z] ", line)})


def main():
    zig, target, driver, *arguments = sys.argv[1:]
    command = [zig, driver, "-target", f"{target}-linux-gnu.{GLIBC}", "-fno-sanitize=undefined"]
    if EXCLUDE not in arguments:
        os.execv(zig, command + arguments)
    archives = [name for name in arguments if name.endswith(".a")]
    with tempfile.NamedTemporaryFile("w", suffix=".map") as script:
        script.write("{ local: " + " ".join(f"{name};" for name in global_symbols(archives)) + " };\n")
        script.flush()
        arguments = [name for name in arguments if name != EXCLUDE]
        return subprocess.run(command + arguments + ([f"-Wl,--version-script={script.name}"] if archives else []), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
