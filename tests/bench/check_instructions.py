"""Compares the instructions of a call of the hot path with the committed figures: at most TOLERANCE more or fewer.

check_instructions.py BENCH_PEERS COMPILER [--learn]

Instructions are counted by callgrind as the difference of two lengths of one workload, so that a busy machine and the start do not matter.
A recorded pair is counted with its three events, a stack when it is already known, and reading per event of a recording made for it.

The figures hold for the compiler that instructions.tsv names. With another one, or without valgrind, the test is skipped by name (77).
--learn rewrites the table.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).with_name("instructions.tsv")
TOLERANCE = 0.03
WORKLOADS = {"pair": 5000, "mixed": 20000, "trace": 20000, "streams": 5000, "pool": 5000, "record_stream": 5000,
             "paged-100": 5000, "paged-1000": 5000}
RECORDED = {"recorded_pair": "events", "recorded_pair_file": "file"}  # modes of bench_history
STACKS = {"stack_20": 20}  # frames
READ = {"read_pickle": ".pickle", "read_vram": ".vram"}
EVENTS = 50000


def run_counted(function, *command):
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={function}"]
    result = subprocess.run([*valgrind, *command], capture_output=True, text=True, timeout=300, check=True)
    return result.stdout, int(re.search(r"Collected : (\d+)", result.stderr).group(1))


def counted(program, workload, rounds):
    output, instructions = run_counted("measured_*", program, "count", workload, str(rounds))
    return int(output.split()[0]), instructions


def recorded(program, mode):
    history = pathlib.Path(program).with_name("bench_history")
    few, many = (run_counted("measured_pairs", history, mode, str(rounds))[1] for rounds in (20000, 40000))
    return (many - few) / 20000


def stack(program, frames):
    bench = pathlib.Path(program).with_name("bench_stack")
    few, many = (run_counted("measured", bench, str(frames), str(count))[1] for count in (10000, 20000))
    return (many - few) / 10000


def read(program, extension):
    sibling = pathlib.Path(program).with_name
    with tempfile.TemporaryDirectory() as folder:
        few, many = (pathlib.Path(folder, name + extension) for name in ("few", "many"))
        for file, events in ((few, EVENTS), (many, 2 * EVENTS)):
            subprocess.run([sibling("bench_make_recording"), str(events), file], check=True, capture_output=True, timeout=300)
        counts = [run_counted("vram_recording_read_file", sibling("bench_read"), file)[1] for file in (few, many)]
    return (counts[1] - counts[0]) / EVENTS


def per_call(program, workload):
    if workload in RECORDED:
        return recorded(program, RECORDED[workload])
    if workload in STACKS:
        return stack(program, STACKS[workload])
    if workload in READ:
        return read(program, READ[workload])
    calls, instructions = counted(program, workload, WORKLOADS[workload])
    more_calls, more_instructions = counted(program, workload, 3 * WORKLOADS[workload])
    return (more_instructions - instructions) / (more_calls - calls)


def read_table():
    head, *rows = TABLE.read_text().splitlines()
    return head.removeprefix("# "), {name: float(figure) for name, figure in (row.split("\t") for row in rows)}


def learn(program, compiler):
    rows = "".join(f"{workload}\t{per_call(program, workload):.1f}\n" for workload in (*WORKLOADS, *RECORDED, *STACKS, *READ))
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
    for workload in (*WORKLOADS, *RECORDED, *STACKS, *READ):
        figure, expected = per_call(program, workload), figures[workload]
        far += abs(figure - expected) > TOLERANCE * expected
        print(f"{workload:<18} {figure:8.1f} instructions a call, committed {expected:8.1f}: {figure / expected - 1:+.1%}")
    if far:
        print("more: find out why; fewer: write it down (--learn) and docs/benchmarks.md with it")
    return 1 if far else 0


sys.exit(main())
