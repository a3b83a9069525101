#!/usr/bin/env python3
"""Tests the fixtures and the mark of adapters/fit/pytest/vram_pytest.py, in a separate pytest. Usage: test_pytest.py VRAM PROGRAM"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import pytest
except ImportError:
    print("no pytest here")
    sys.exit(77)
assert pytest

VRAM, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent
TESTS = """
import pytest, sys

def test_within(vram_fit):
    answer = vram_fit([{program!r}, "0", "100"], limit="900MiB", device="t4")
    assert answer["allocated_bytes"] == 100 << 20 and answer["ran_on"] == "t4"

def test_over(vram_fit):
    vram_fit([{program!r}, "0", "600"], limit="900MiB")

def test_card(vram_fit):
    vram_fit([{program!r}, "0", "20000"], device="t4,h100")

def test_failing(vram_fit):
    vram_fit([{program!r}, "7", "100"])

def test_values(vram_fit):
    assert vram_fit([{program!r}, "0", "10", "found"], nonzero=30)["allocated_bytes"] == 40 << 20

def test_search(vram_fit):
    answer = vram_fit([{program!r}, "0", "{{mib}}"], limit="900MiB", search=True, vary=["mib=600,100,200"], where=["mib != 200"], work="mib")
    assert [(one["work"], one["outcome"]) for one in answer["variants"]] == [(600, "does_not_fit"), (100, "fits")]

def test_search_without_result(vram_fit):
    vram_fit([{program!r}, "0", "{{mib}}"], limit="900MiB", search=True, vary="mib=600,700")

RACE = [sys.executable, {race!r}]

def test_waits(vram_check):
    assert vram_check([*RACE, "wait"], devices=1) == {{"findings": [], "suppressed": 0, "unseen": [], "complete": True}}

def test_races(vram_check):
    vram_check(RACE)

def test_fails(vram_check):
    vram_check(["no-such-program"])

def take(size):
    import torch
    torch.empty(size << 20)

@pytest.mark.vram(limit="2GiB")
@pytest.mark.parametrize("size", [64, 4000])
def test_marked(size):
    take(size)

class TestInside:
    @pytest.mark.vram(device="t4")
    def test_it_asserts(self):
        take(64)
        assert False, "as always"
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "test_marked.py").write_text(TESTS.format(program=PROGRAM, race=str(HERE.parent / "sim/check_race.py")))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("VRAM_", "PYTEST_")) and "ALLOC_CONF" not in name}
        environment.update(VRAM_COMMAND=VRAM, PYTHONPATH=f"{HERE.parents[1] / 'adapters/fit/pytest'}:{HERE / 'fake'}")
        run = subprocess.run([sys.executable, "-m", "pytest", "-p", "vram_pytest", "-rA", "--strict-markers", "-p", "no:cacheprovider", folder], capture_output=True,
                             text=True, check=False, env=environment, cwd=folder)
        sys.stderr.write(run.stderr)
    passed = set(re.findall(r"^PASSED \S*::(\S+)", run.stdout, re.M))
    failed = set(re.findall(r"^FAILED \S*?::(\S+)", run.stdout, re.M))
    assert passed == {"test_within", "test_values", "test_search", "test_waits", "test_marked[64]"}, run.stdout
    assert failed == {"test_over", "test_search_without_result", "test_card", "test_failing", "test_races", "test_fails", "test_marked[4000]", "TestInside::test_it_asserts"}, run.stdout
    for part in ("the limit is 900MiB", "none of 2 variants fits, the limit is 900MiB", "t4: does not fit", "vram fit ended with exit code 3", "the limit is 2GiB", "as always", "race: a memset on stream", "check_race.py:", "to mend it: record an event", "no-such-program"):
        assert part in run.stdout, (part, run.stdout)
    print("ok")


if __name__ == "__main__":
    main()
