"""What a call of the hot path costs, in instructions, against the committed figures: at most TOLERANCE away, more or fewer.

    check_instructions.py BENCH_PEERS COMPILER [--learn]

Instructions are counted by callgrind, between two lengths of one workload, so that a busy machine and what comes before make no difference.
The figures hold for the compiler that instructions.tsv names; with another one the test is passed over by name (77), as where valgrind is
missing. --learn writes the table anew.
"""

import pathlib
import re
import shutil
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("instructions.tsv")
TOLERANCE = 0.03
WORKLOADS = {"pair": 5000, "mixed": 20000, "trace": 20000, "streams": 5000, "pool": 5000, "record_stream": 5000}
VALGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=measured_*"]


def counted(program, workload, rounds):
    result = subprocess.run([*VALGRIND, program, "count", workload, str(rounds)], capture_output=True, text=True, timeout=300, check=True)
    return int(result.stdout.split()[0]), int(re.search(r"Collected : (\d+)", result.stderr).group(1))


def per_call(program, workload):
    calls, instructions = counted(program, workload, WORKLOADS[workload])
    more_calls, more_instructions = counted(program, workload, 3 * WORKLOADS[workload])
    return (more_instructions - instructions) / (more_calls - calls)


def read_table():
    head, *rows = TABLE.read_text().splitlines()
    return head.removeprefix("# "), {name: float(figure) for name, figure in (row.split("\t") for row in rows)}


def learn(program, compiler):
    rows = "".join(f"{workload}\t{per_call(program, workload):.1f}\n" for workload in WORKLOADS)
    TABLE.write_text(f"# {compiler}\n{rows}")
    print(TABLE.read_text(), end="")
    return 0


def main():
    program, compiler = sys.argv[1:3]
    if shutil.which("valgrind") is None:
        print("valgrind is missing")
        return 77
    if sys.argv[3:] == ["--learn"]:
        return learn(program, compiler)
    known, figures = read_table()
    if compiler != known:
        print(f"the figures are those of {known}, this is {compiler}")
        return 77
    far = 0
    for workload in WORKLOADS:
        figure, expected = per_call(program, workload), figures[workload]
        far += abs(figure - expected) > TOLERANCE * expected
        print(f"{workload:<16} {figure:8.1f} instructions a call, committed {expected:8.1f}: {figure / expected - 1:+.1%}")
    if far:
        print("more: find out why; fewer: write it down (--learn) and docs/benchmarks.md with it")
    return 1 if far else 0


sys.exit(main())
