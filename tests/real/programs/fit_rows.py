"""Tests the answers of `vram fit` about the programs of fit_programs.py and torch_ranks.py: fit_rows.py VRAM ROW."""
import json
import pathlib
import re
import resource
import subprocess
import sys
import time

PROGRAMS = pathlib.Path(__file__).parent
GIB, MIB = 1 << 30, 1 << 20
MOST_SECONDS, MOST_HOST_BYTES = 60, 4 * 10**9
# All have an architecture that PyTorch 2.6 has kernels for.
EIGHT_CARDS = "a10,rtx3090,rtx4090,a100-40,l40s,a100-80,h100,h200"


def fit(vram, *arguments):
    """Runs `vram fit`. Returns its exit code and its answer."""
    run = subprocess.run([vram, "fit", "--json", "-q", *arguments], stdout=subprocess.PIPE, text=True)
    return run.returncode, json.loads(run.stdout) if run.stdout else {}


def own(name):
    return ["--", sys.executable, PROGRAMS / "fit_programs.py", name]


def asked(answer):
    return {card["key"]: card["fits"] for card in answer["cards"] if card["asked"]}


def lines_read(answer, file):
    """Returns the innermost line of the file in each place."""
    return {int(found[1]) for place in answer["reads"] if (found := re.search(rf"{file}:(\d+)", place["place"]))}


def marked(file, function):
    """Returns the lines of a function that are marked as reads."""
    text = (PROGRAMS / file).read_text()
    body = text.split(f"def {function}(")[1].split("\n@row")[0]
    first = text[: text.index(body)].count("\n") + 1
    return {first + i for i, line in enumerate(body.splitlines()) if line.endswith("# read")}


def fit_7b(vram, program, fitting):
    """Which of eight cards fit a training step of 7 billion parameters. It takes at most a minute, and little memory of the host."""
    begun = time.monotonic()
    code, answer = fit(vram, "--card", EIGHT_CARDS, *own(program))
    seconds, host_bytes = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{seconds:.1f} s, {host_bytes / 1e9:.2f} GB of the host, needs {answer['need_bytes'] / GIB:.2f} GiB, {asked(answer)}")
    assert (code, answer["ended"]) == (1, "repeats"), (code, answer["ended"])
    assert {card for card, fits in asked(answer).items() if fits} == fitting
    assert seconds < MOST_SECONDS and host_bytes < MOST_HOST_BYTES


def fit_7b_plain(vram):
    fit_7b(vram, "train_7b", {"a100-80", "h100", "h200"})


def fit_7b_checkpointing(vram):
    fit_7b(vram, "train_7b_checkpointing", {"a100-80", "h100", "h200"})


def fit_fsdp2(vram):
    """Eight ranks, each with its own device, and all with the same bytes except for rounding."""
    code, answer = fit(vram, "--all", "--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "8", PROGRAMS / "torch_ranks.py", "fsdp2")
    holdings = answer["holdings"]
    print(code, answer["ended"], answer["seconds"], [(one["rank"], one["ordinal"], one["allocated_bytes"]) for one in holdings])
    assert (code, answer["exit_code"]) == (0, 0)
    assert sorted((one["rank"], one["ordinal"]) for one in holdings) == [(i, i) for i in range(8)]
    allocated = [one["allocated_bytes"] for one in holdings]
    assert min(allocated) > 8 * MIB and max(allocated) - min(allocated) < MIB


def fit_fsdp2_7b(vram):
    """7 billion parameters on eight ranks, each with an eighth of 13.5 GB of weights, gradients and two states, and two whole layers."""
    begun = time.monotonic()
    code, answer = fit(vram, "--card", "rtx4090,h100", "--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "8", PROGRAMS / "torch_7b_fsdp2.py")
    seconds, allocated = time.monotonic() - begun, {one["allocated_bytes"] for one in answer["holdings"]}
    print(f"{seconds:.1f} s, {code}, {answer['ended']}, {allocated}")
    assert (code, answer["ended"], len(answer["holdings"])) == (0, "repeats", 8)
    assert all(6.5 * GIB < one < 10 * GIB for one in allocated) and seconds < 300


def fit_twice(vram):
    answers = [fit(vram, "--all", *own("scaled_training")) for _ in range(2)]
    for code, answer in answers:
        assert code == 0 and answer.pop("seconds") > 0
    assert answers[0] == answers[1]
    assert marked("fit_programs.py", "scaled_training") <= lines_read(answers[0][1], "fit_programs.py")


def fit_count_of_rows(vram):
    """A size that a kernel would have counted is 0, not the block's old contents, and its place is reported."""
    code, answer = fit(vram, *own("count_of_rows"))
    print(f"needs {answer['need_bytes'] / GIB:.2f} GiB, read at {lines_read(answer, 'fit_programs.py')}")
    assert code == 0 and 256 * MIB < answer["allocated_bytes"] < 512 * MIB, answer["allocated_bytes"]
    assert marked("fit_programs.py", "count_of_rows") == lines_read(answer, "fit_programs.py")


def fit_compiled_with_hooks(vram):
    code, answer = fit(vram, *own("compiled_with_hooks"))
    print(code, answer["ended"], answer["allocated_bytes"])
    assert (code, answer["ended"]) == (0, "repeats")


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
    print("ok")
