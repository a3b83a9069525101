#!/usr/bin/env python3
"""Tests that --json prints JSON for any input: every command with the option, with good, bad and mixed recordings. Usage: check_json.py
VRAM EXAMPLE"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

VRAM, EXAMPLE = sys.argv[1:3]
ELSEWHERE = {"fit": "tests/fit", "top": "tests/attach", "symbolize": "tests/stacks", "doctor": "here, without recordings", "check": "tests/sim"}


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def no_repeats(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), f"a key twice among {[key for key, _ in pairs]}"
    return dict(pairs)


def run(*words):
    result = subprocess.run([VRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=120)
    return result.returncode, result.stdout, result.stderr


def check(*words, codes=(0, 1, 3)):
    """Parses the output strictly; returns None if there is none."""
    code, output, errors = run(*words)
    assert code in codes, (words, code, errors)
    if output == "":
        assert code == 3 and errors, words
        return None
    try:
        return json.loads(output, parse_constant=no_constant, object_pairs_hook=no_repeats)
    except (ValueError, AssertionError) as error:
        sys.exit(f"vram {' '.join(map(str, words))}: {error}: ...{output[-80:]!r}")


def make_folders(folder):
    """Makes folders of three ranks: all good, all bad, and one bad among good ones, at each position."""
    kinds = {"good": "ggg", "bad": "bbb", "first": "bgg", "middle": "gbg", "last": "ggb", "one": "bgb"}
    for name, ranks in kinds.items():
        (folder / name).mkdir()
        for rank, kind in enumerate(ranks):
            path = folder / name / f"rank{rank}.pickle.gz"
            shutil.copy(EXAMPLE, path) if kind == "g" else path.write_bytes(b"no recording")
    return kinds


def check_devices(folder):
    """A failure after the recording was read (a device that some ranks lack) leaves no comma in the array."""
    event = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 1}
    for number, counts in enumerate(((1, 2), (2, 1), (2, 1, 2), (1, 2, 2), (1, 1), (2, 2))):
        job = folder / f"devices{number}"
        job.mkdir()
        for rank, count in enumerate(counts):
            (job / f"rank{rank}.json").write_text(json.dumps({"segments": [], "device_traces": [[event]] * count}))
        for words in (("leaks",), ("report", "--site"), ("replay",), ("replay", "--conf", "")):
            answers = check(*words, "--json", "--device", 1, job, codes=(0, 1, 2, 3))
            assert len(answers) == counts.count(2), (words, counts, answers)


def check_writer():
    """The command prints JSON with one writer (allocator/base/json.h), not with printf()."""
    cli = pathlib.Path(__file__).parents[2] / "cli"
    for path in sorted(cli.glob("*.c")):
        found = re.findall(r'\b(?:f?printf|fputs|puts|putchar)\(.*\\"[a-z_]+\\": .*', path.read_text())
        assert not found, f"{path.name} prints JSON by hand: {found[0]}"


def commands_with_json():
    names = re.findall(r"^  ([a-z]+)  ", run("--help")[1].split("Commands:")[1], re.M)
    return [name for name in names if "--json" in run(name, "--help")[1]]


def main():
    commands = commands_with_json()
    assert {"report", "leaks", "replay", "tune", "diff", "forecast", *ELSEWHERE} == set(commands), commands
    check_writer()
    assert check("doctor", "--json", codes=(0, 1, 4))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kinds = make_folders(folder)
        for kind in kinds:
            for command in ("report", "leaks", "replay", "tune"):
                check(command, "--json", folder / kind)
                check(command, "--json", *sorted((folder / kind).iterdir()))
                check(command, "--json", folder / kind / "rank0.pickle.gz")
            for other in kinds:
                answers = check("diff", "--json", folder / kind, folder / other)
                readable = sum(one == other == "g" for one, other in zip(kinds[kind], kinds[other]))
                assert answers is None or len(answers) == readable, (kind, other, answers)
            for words in (("--site",), ("--by", "role"), ("--list", "stats"), ("--list", "trace"), ("--at", "end"), ("--no-cure",)):
                check("report", "--json", *words, folder / kind)
            for words in (("--exact",), ("--conf", ""), ("--conf", "", "--conf", "expandable_segments:True")):
                check("replay", "--json", *words, folder / kind)
            check("tune", "--json", "--each", folder / kind)
            files = [f"{2 << rank}={folder / kind / f'rank{rank}.pickle.gz'}" for rank in range(3)]
            check("forecast", "--json", "--size", 16, *files)
        check_devices(folder)
    print("ok")


if __name__ == "__main__":
    os.environ.pop("VRAM_STYLE", None)
    main()
