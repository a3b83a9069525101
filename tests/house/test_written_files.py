"""Tests that each part creates files through one function only: exclusively, under an unpredictable or unused name, and readable by this user alone.
No other source file creates files."""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
MAKES = re.compile(r'\bO_CREAT\b|\bfopen\([^;]*,\s*"[wa]|\bfreopen\(|\bmko?stemp\(|\bcreat\(|\btmpfile\(')
ALLOWED = {
    "allocator/os/posix/files.c",
    "cli/output.c",
    "cli/cmd_run.c",  # the list of a run's files: mkostemp()
    "cli/sim_environment.c",  # shared memory of the processes of one `vram sim`: mkostemp()
    "cli/sim_counts.c",  # the counts of a run in shared memory: mkostemp()
    "cli/wasi/posix_gaps.c",  # mkstemp() itself, if the C library lacks it
    "cli/formats/sqlite.c",  # the database that SQLite fills: mkstemp()
    "adapters/preload/journal.c",  # the copy at an OOM: exclusive
}


def main():
    found = set()
    for folder in ("allocator", "recordings", "simulator/sim", "replay", "cli", "adapters"):
        for path in (ROOT / folder).rglob("*.[ch]"):
            if MAKES.search(re.sub(r"//.*", "", path.read_text())) and path.name != "posix_gaps.h":
                found.add(str(path.relative_to(ROOT)))
    for name in sorted(found - ALLOWED):
        print(f"{name}: makes a file by itself: allocator/os/posix/files.c (cli/output.c for commands) is the one place")
    for name in sorted(ALLOWED - found):
        print(f"{name}: makes no file any more: take it out of {pathlib.Path(__file__).name}")
    return 1 if found != ALLOWED else 0


sys.exit(main())
