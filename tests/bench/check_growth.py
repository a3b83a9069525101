"""Measures how a step grows with the number of objects, in instructions counted by callgrind, so that a busy machine makes no difference.

    check_growth.py BENCH_GROWTH [ROW...]

Between the minimum and maximum of each row there are two or three powers of ten. Everything must grow at most logarithmically, which takes at
most LIMIT times as many instructions; examining every object would take a hundred times as many.
"""

import re
import shutil
import subprocess
import sys

LIMIT = 2
ROWS = {  # minimum, maximum, steps
    "pools": (10, 4000, 40),
    "ended": (10, 4000, 40),
    "found": (10, 4000, 200),
    "emptied": (10, 4000, 40),
    "segments": (10, 10000, 100),
    "oversize": (10, 1000, 100),
    "devices": (1, 64, 100),
    "deferred": (10, 4000, 100),
    "nodes": (10, 4000, 40),
    "waiting": (10, 4000, 40),
    "asleep": (10, 4000, 40),
    "holes": (10, 4000, 20),
}


def counted(program, row, count, steps):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=measured_steps"]
    command += [program, "count", f"{row}-{count}", str(steps)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return int(re.search(r"Collected : (\d+)", result.stderr).group(1))


def per_step(program, row, count, steps):
    return (counted(program, row, count, 3 * steps) - counted(program, row, count, steps)) / (2 * steps)


def main():
    program, *wanted = sys.argv[1:]
    if shutil.which("valgrind") is None:
        print("valgrind is missing")
        return 77
    far = 0
    for row, (least, most, steps) in ROWS.items():
        if wanted and row not in wanted:
            continue
        few, many = (per_step(program, row, count, steps) for count in (least, most))
        far += many > LIMIT * few
        print(f"{row:<10} {few:9.0f} instructions a step with {least}, {many:9.0f} with {most}: {many / few:5.2f} times", flush=True)
    return 1 if far else 0


sys.exit(main())
