"""cudarc's own tests, in the program that cargo made of them. Those that look at values fail, and one that wants copies to take the host's time."""
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
    # 101 is how a Rust test program says that tests failed; anything else is no end of its own.
    if result is None or done.returncode not in (0, 101) or int(result[1]) < LEAST:
        sys.exit(f"error: exit {done.returncode}, {result and result[0]}")
    print("ok")


main()
