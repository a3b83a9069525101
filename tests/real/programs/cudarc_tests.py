"""Runs cudarc's own tests, in cargo's program. Tests that check values fail, and one that expects copies to take host time."""
import pathlib
import re
import subprocess
import sys

import nvrtc

LEAST = 35


def main():
    tests = [path for path in pathlib.Path(sys.argv[1]).glob("cudarc-*") if path.suffix == "" and path.stat().st_mode & 0o100]
    assert len(tests) == 1, tests
    done = subprocess.run([tests[0], "--test-threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=nvrtc.environment())
    sys.stdout.write(done.stdout)
    result = re.search(r"^test result: \w+\. (\d+) passed; (\d+) failed", done.stdout, re.M)
    # A Rust test program exits with 101 if tests failed; any other code means that it did not finish.
    if result is None or done.returncode not in (0, 101) or int(result[1]) < LEAST:
        sys.exit(f"error: exit {done.returncode}, {result and result[0]}")
    print("ok")


main()
