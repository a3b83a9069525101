"""`vram fit` and `vram check` in tests: `pytest -p vram_pytest`, with this folder on PYTHONPATH (docs/guides/fit.md).

    def test_it_fits(vram_fit):
        answer = vram_fit([sys.executable, "train.py"], limit="22GiB")  # fails if the program needs more

    @pytest.mark.vram(limit="22GiB", device="rtx4090")
    def test_a_step():  # the test itself runs on the simulated card
        ...

    def test_its_peak(vram_peak):
        with vram_peak("2GiB"):  # PyTorch's peak in the block, on the real device
            step()

    def test_its_streams(vram_check):
        vram_check([sys.executable, "train.py"])  # fails if `vram check` finds a mistake (docs/guides/check.md)

The command is VRAM_COMMAND, else the `vram` installed with this file, else the one in PATH."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

FITS, DOES_NOT = 0, 1
MOST_LINES = 40  # of the program's output
MOST_FRAMES = 4  # of a stack


def command():
    here = pathlib.Path(__file__).resolve().parent
    places = [here.parents[i] / place for i, place in ((2, "bin/vram"), (3, "bin/vram"), (2, "cli/vram")) if i < len(here.parents)]
    found = os.environ.get("VRAM_COMMAND") or next((str(place) for place in places if os.access(place, os.X_OK)), None) or shutil.which("vram")
    if found is None:
        pytest.fail("vram is not on PATH; set VRAM_COMMAND to its path", pytrace=False)
    return found


def options_of(limit=None, device=None, **more):
    """Turns vram_fit(..., steps=3, nonzero="50%", vary=["--batch=8,4", "--compile"], each=True) into the command's options."""
    options = ["--memory", f"{limit}B" if isinstance(limit, int) else limit] if limit is not None else []
    options += ["--card", device] if device is not None else []
    for name, value in more.items():
        name = "--" + name.replace("_", "-")
        values = value if isinstance(value, (list, tuple)) else [] if value in (None, False) else [value]
        options += [name if one is True else f"{name}={one}" for one in values]
    return options


def judge(program, cwd=None, env=None, **options):
    """Returns the answer of one run. Fails the test if the program fails or does not fit."""
    words = [command(), "fit", "--json", "-q", *options_of(**options), "--", *map(str, program)]
    run = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, env=None if env is None else {**os.environ, **env})
    if run.returncode not in (FITS, DOES_NOT):
        pytest.fail("\n".join([f"vram fit ended with exit code {run.returncode}", *run.stderr.splitlines()[-MOST_LINES:]]), pytrace=False)
    answer = json.loads(run.stdout)
    if run.returncode == DOES_NOT:
        pytest.fail("\n".join(reasons(answer, options.get("limit"))), pytrace=False)
    return answer


def reasons(answer, limit):
    """Yields why it does not fit: how much it needs, what for, and where."""
    if "variants" in answer:
        yield f"none of {len(answer['variants'])} variants fits" + (f", the limit is {limit}" if limit else "")
        return
    for one in answer if isinstance(answer, list) else [answer]:
        yield f"needs {one['need_bytes']:,} bytes of device memory, completes in {one['smallest_bytes']:,}" + (f", the limit is {limit}" if limit else "")
        roles = sorted((one.get("roles") or {}).items(), key=lambda row: -row[1])
        yield "held at the peak: " + ", ".join(f"{role} {size:,}" for role, size in roles if size)
        for card in one["cards"]:
            if card["asked"] and not card["fits"]:
                yield f"{card['key']}: " + ("not sure that it fits" if card["fits"] is None else "does not fit")


@pytest.fixture
def vram_fit():
    """Runs `vram fit` for a program, given as a list of words."""
    return judge


def check(program, cwd=None, env=None, **options):
    """Returns the answer of `vram check` for a program. Fails the test if the program fails, or if it makes a mistake in its use of memory on streams."""
    words = [command(), "check", "--json", *options_of(**options), "--", *map(str, program)]
    run = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, env=None if env is None else {**os.environ, **env})
    answer = json.loads(run.stdout) if run.stdout.startswith("{") else {"findings": []}
    lines = [line for number, finding in enumerate(answer["findings"], 1) for line in told(number, finding)]
    if not lines and run.returncode != 0:
        lines = [f"the program ended with exit code {run.returncode} under vram check", *run.stderr.splitlines()[-MOST_LINES:]]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)
    return answer


def told(number, finding):
    """Yields a finding's message, its places, innermost first, and how to fix it."""
    yield f"{number} {finding['kind']}: {finding['message']}"
    for side in "earlier", "earlier_launch", "freed", "later", "later_launch":
        stack = (finding[side] or {}).get("stack", [])
        frames = [frame for frame in stack if frame["file"].endswith(".py")] or [frame for frame in stack if frame["line"] > 0]
        yield from (f"    {side}: {frame['file']}:{frame['line']} {frame['name']}" for frame in frames[:MOST_FRAMES])
    yield f"    to mend it: {finding['remedy']}"


@pytest.fixture
def vram_check():
    """Runs `vram check` for a program, given as a list of words."""
    return check


UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def bytes_of(size):
    """Converts a number of bytes, or a text such as "2GiB" or "500 MB"."""
    found = re.fullmatch(r"([0-9.]+)\s*([a-z]*)", str(size).strip().lower())
    if found is None or found[2] not in UNITS:
        raise ValueError(f"{size!r} is not a size: expected a number of bytes, or a text such as 2GiB")
    return int(float(found[1]) * UNITS[found[2]])


@contextlib.contextmanager
def watched(limit):
    """Fails the test if PyTorch allocates more than `limit` at once on any device within the block; `vram report` names the lines that
    did."""
    import torch
    most = bytes_of(limit)
    cuda, folder = torch.cuda, tempfile.mkdtemp(prefix="vram-peak-")
    cuda.init()  # statistics need it
    devices = range(cuda.device_count())
    before = {device: cuda.memory_allocated(device) for device in devices}
    for device in devices:
        cuda.reset_peak_memory_stats(device)
    cuda.memory._record_memory_history(max_entries=200_000, stacks="python")
    recording = os.path.join(folder, "peak.pickle")
    try:
        yield
        peaks = {device: cuda.max_memory_allocated(device) for device in devices}
        over = {device: peak for device, peak in peaks.items() if peak > most}
        if over:
            cuda.memory._dump_snapshot(recording)
            lines = [f"device {device}: the peak was {peak:,} bytes, above the limit of {most:,} ({before[device]:,} bytes before the block)"
                     for device, peak in over.items()]
            pytest.fail("\n".join([*lines, *sites(recording)]), pytrace=False)
    finally:
        cuda.memory._record_memory_history(enabled=None)
        shutil.rmtree(folder, ignore_errors=True)


def sites(recording):
    """Returns the recording's lines that allocated the memory at the peak; empty on failure, so that the test still fails for its limit."""
    run = subprocess.run([command(), "report", "--site", "--top", "8", recording], capture_output=True, text=True, check=False)
    return run.stdout.splitlines()[:MOST_LINES]


@pytest.fixture
def vram_peak():
    """with vram_peak("2GiB"): fails the test if PyTorch's peak in the block exceeds the limit."""
    return watched


def pytest_configure(config):
    config.addinivalue_line("markers", "vram(limit=None, device=None, **options): run the test on a simulated card; fail it if it does not fit")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    mark = pyfuncitem.get_closest_marker("vram")
    if mark is None or os.environ.get("VRAM_FIT"):
        return None  # this test already runs under `vram fit`
    options = {"steps": "all", **mark.kwargs}
    root = pyfuncitem.config.rootpath
    path = os.pathsep.join([str(pathlib.Path(__file__).resolve().parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    judge([sys.executable, "-m", "pytest", "-q", "-p", "vram_pytest", "--rootdir", root, f"{pyfuncitem.path}::{pyfuncitem.nodeid.partition('::')[2]}"],
          cwd=root, env={"PYTHONPATH": path}, **options)
    return True
