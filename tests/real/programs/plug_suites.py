"""Runs other projects' tests built with one of vram's plugs (build_plugs.py): python3 plug_suites.py ROW FOLDER."""
import pathlib
import re
import subprocess
import sys

from rows import main, row


@row
def rmm_resource_tests(folder):
    """Runs every program of RMM's own tests of resources: all pass, and none is empty."""
    programs = sorted(path for path in pathlib.Path(folder, "plugs").iterdir() if path.suffix != ".so")
    assert len(programs) > 25, [path.name for path in programs]
    count = 0
    for program in programs:
        done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
        sys.stdout.write(done.stdout)
        passed = re.search(r"^\[  PASSED  \] (\d+) tests?\.$", done.stdout, re.M)
        assert done.returncode == 0 and passed and int(passed[1]) > 0, f"{program.name}: exit {done.returncode}"
        count += int(passed[1])
    print(f"{count} tests in {len(programs)} programs")


main()
