#!/usr/bin/env python3
"""Runs other people's programs on the simulated device: `make check-real [ROWS="torch/graphs vllm"]`.

For each environment of rows.toml in turn: installs its packages into a cache outside the tree, runs its rows under `vram sim`, prints a table, and
removes the environment. Exits with 1 if a row that worked once (known.tsv) no longer does.

usage: check_real.py [--list] [--keep] [--learn] [--python PATH] [--check | --allocator WAY [--compare]] [NAME...]   NAME: an environment, or environment/row
--check: runs the rows under `vram check` instead; a finding that findings_judged.txt does not have makes a row fail. known.tsv has them as ROW@check.
--allocator native|pluggable: rows with PyTorch run with vram instead of its allocator (docs/guides/torch.md); known.tsv has them as ROW@WAY.
--compare: also compares every event, the state and every counter of such a run with those of PyTorch's own allocator (same_memory.py).
VRAM_PROGRAMS: a folder with the sources that no registry has (sources.tsv).
The cache: VRAM_REAL_CACHE, else ~/.cache/vram/real; one environment at a time, at most 25 GB."""
import argparse
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib

import checked
import recorded
import same_memory

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("VRAM_BUILD", ROOT / "build/release"))
CACHE = pathlib.Path(os.environ.get("VRAM_REAL_CACHE", pathlib.Path.home() / ".cache/vram/real"))
LOGS = BUILD / "tests/real"
MOST_BYTES = 25 * 10**9
ROW_SECONDS, PREPARE_SECONDS = 600, 1800
SKIPPED = 77  # a row's exit code if something it needs is missing
OWN_RUNS = 3  # for a program whose threads race
# NVIDIA's wheels that are used themselves: compilers and headers, and those that an environment names. All others have a stand-in, and are
# not downloaded.
USED_AS_THEY_ARE = re.compile(r"nvidia-(cuda-nvrtc|nvjitlink|cuda-nvcc|nvvm|cuda-cccl|cuda-crt|ml-py|cuda-runtime$)|nvidia-cutlass")


class Row:
    def __init__(self, name, environment, command, options):
        self.name, self.environment, self.command = name, environment, command
        self.variables, self.devices = options.get("variables", {}), options.get("devices", 1)
        self.device, self.set, self.source = options.get("device"), options.get("set"), options.get("source")
        self.values = options.get("values", [])
        self.outside, self.comparable = options.get("outside", False), options.get("comparable", True)
        self.last = re.compile(options.get("last", "^(ok)+$"))
        self.recorded = options.get("recorded", False)
        self.allocator, self.compared, self.checked = None, False, False
        self.id = f"{environment}/{name}"

    def with_allocator(self, way, compared):
        self.allocator, self.compared, self.id, self.recorded = way, compared and self.comparable, f"{self.environment}/{self.name}@{way}", False
        return self

    def under_check(self):
        self.checked, self.id, self.recorded = True, f"{self.environment}/{self.name}@check", False
        return self


def read_rows():
    with open(HERE / "rows.toml", "rb") as file:
        table = tomllib.load(file)
    rows = []
    for group in table["rows"]:
        for environment in group["environments"]:
            assert environment in table["environment"], environment
            rows += [Row(name, environment, group["command"], group) for name in group["names"]]
    assert len({row.id for row in rows}) == len(rows), "two rows of one name"
    return table["environment"], rows


def read_known():
    path = HERE / "known.tsv"
    return {line.split("\t")[0] for line in path.read_text().splitlines() if line and not line.startswith("#")} if path.exists() else set()


# --- environments -------------------------------------------------------------------------------------------------------------------------
def run_quiet(command, log):
    with open(log, "ab") as file:
        return subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL).returncode == 0


def wanted_packages(python, packages, log):
    """Returns all that pip would install, as pinned requirements, without packages that have a stand-in, or None if they are not
    available."""
    report = log.with_suffix(".json")
    command = [python, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--report", report, *packages]
    if not run_quiet(command, log):
        return None
    named = [(item["metadata"]["name"], item["metadata"]["version"]) for item in json.loads(report.read_text())["install"]]
    asked = {re.split(r"[\[=<>]", package)[0] for package in packages}
    left_out = [name for name, _ in named if name.startswith("nvidia-") and not USED_AS_THEY_ARE.match(name) and name not in asked]
    return [f"{name}=={version}" for name, version in named if name not in left_out]


def absent_from_debian(packages):
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages]
    told = subprocess.run(query, capture_output=True, text=True).stdout if packages and shutil.which(query[0]) else ""
    return [package for package in packages if f"{package} installed" not in told.splitlines()]


def make_npm_environment(folder, packages, log):
    """Installs packages of npm, without their optional parts for other systems."""
    node = shutil.which("node")
    options = ["--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
    (folder / "bin").mkdir(parents=True)
    if node is None or not run_quiet(["npm", "install", "--prefix", folder, *options, *packages], log):
        shutil.rmtree(folder, ignore_errors=True)
        return None
    (folder / "bin/node").symlink_to(node)
    (folder / "complete").write_text("\n".join(packages) + "\n")
    return folder / "bin/node"


def make_environment(name, table):
    """Returns the interpreter of a fresh or kept environment, or None if its packages are not available or its commands fail."""
    folder, log, packages = CACHE / name, LOGS / f"{name}.install.log", table.get("npm") or table.get("packages", [])
    npm = "npm" in table
    python = folder / ("bin/node" if npm else "bin/python")
    if (folder / "complete").exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    log.unlink(missing_ok=True)
    if npm:
        return make_npm_environment(folder, packages, log)
    if not run_quiet([sys.executable, "-m", "venv", folder], log):
        return None
    pins = wanted_packages(python, packages, log) if packages else []
    pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"]
    made = pins is not None and (not pins or run_quiet([*pip, *pins], log))
    for command in table.get("build", []):
        words = shlex.split(command.format(folder=folder, python=python, build=BUILD, here=HERE, source=source_of(table.get("source"))))
        made = made and run_quiet(["env", "-C", folder, f"CARGO_TARGET_DIR={folder}/target", *words], log)
    if not made:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    (folder / "complete").write_text("\n".join(pins) + "\n")
    return python


def bytes_of(folder):
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


# --- rows ---------------------------------------------------------------------------------------------------------------------------------
def source_of(source):
    """Returns the (first) folder of sources that a row or an environment needs (sources.tsv), or None if one is not given."""
    given, names = os.environ.get("VRAM_PROGRAMS"), source if isinstance(source, list) else [source]
    folders = [pathlib.Path(given) / name for name in names] if given and source else []
    return folders[0] if folders and all(folder.is_dir() for folder in folders) else None


def command_of(row, python, recorder=()):
    program = row.command.format(python=python, programs=HERE / "programs", row=row.name, here=HERE, source=source_of(row.source),
                                 folder=python.parents[1], vram=BUILD / "cli/vram")
    if row.outside:
        return shlex.split(program)
    sim = [BUILD / "cli/vram", *(checked.COMMAND if row.checked else ["sim"]), "--devices", str(row.devices)]
    if row.device:
        sim += ["--card", row.device]
    if row.set:
        sim += ["--set", row.set]
    for rule in row.values:
        sim += ["--value", rule]
    return [str(part) for part in sim] + ["--", *recorder, *shlex.split(program)]


def put_allocator(row, variables):
    """Puts in place the start-up module that replaces PyTorch's allocator by vram in every process of the row."""
    ways = LOGS / "ways" / row.id.replace("/", ".")
    shutil.rmtree(ways, ignore_errors=True)
    ways.mkdir(parents=True)
    variables.update(PYTHONPATH=f"{HERE / 'startup'}:{BUILD / 'adapters/torch'}", XDG_CACHE_HOME=str(CACHE / "compiled"),
                     VRAM_TORCH_WAY=row.allocator, VRAM_REAL_WAYS=str(ways))


def allocator_was_put(row):
    path = LOGS / "ways" / row.id.replace("/", ".") / "ways"
    ways = set(path.read_text().splitlines()) if path.exists() else set()
    return bool(ways) and all(way.startswith(row.allocator) for way in ways)


def run_recorded(row, python, allocator, most_seconds):
    """Runs the row with PyTorch's allocator (None) or vram's, recording what PyTorch says about its memory. Returns (log, exit code,
    folder)."""
    name = f"{row.id.replace('/', '.')}{'' if allocator else '.own'}"
    folder, log = LOGS / "memory" / name, LOGS / f"{name}.log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    variables = {**environment_of(row, python), "VRAM_REAL_MEMORY": str(folder)}
    if allocator is None:
        del variables["VRAM_REAL_WAYS"]
    return log, finish(command_of(row, python), log, variables, most_seconds), folder


def compare_memory(row, python, ours, most_seconds):
    """Runs the row with PyTorch's own allocator and compares everything PyTorch says about its memory. Returns the difference, or "". If
    threads of a program race, PyTorch's own runs differ from each other; then vram's must equal one of OWN_RUNS."""
    for number in range(1, OWN_RUNS + 1):
        log, code, own = run_recorded(row, python, None, most_seconds)
        if code != 0:
            return f"with PyTorch's allocator: {cause(log, code)}"
        rows, found = same_memory.compare(own, ours)
        if not found and rows:
            break
        kept = own.with_name(f"{own.name}.{number}")
        shutil.rmtree(kept, ignore_errors=True)
        own.rename(kept)
        if number == 2 and not same_memory.compare(kept.with_name(f"{own.name}.1"), kept)[1]:
            break  # PyTorch's runs are equal
    else:
        return f"PyTorch's own {OWN_RUNS} runs differ from each other, and from ours: " + ", ".join(f"{len(texts)} {kind}" for kind, texts in found.items())
    print("       " + ", ".join(f"{count} {kind}" for kind, count in rows.items()) + (f"; run {number} of PyTorch's" if number > 1 else ""), flush=True)
    return "differs: " + ", ".join(f"{len(texts)} {kind}" for kind, texts in found.items()) if found or not rows else ""


def environment_of(row, python):
    variables = {**os.environ, "VRAM_LIBRARY": str(BUILD / "libvram.so"), **row.variables, "PYTHONPATH": "", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1",
                 "VRAM_REAL_CACHE": str(CACHE), "VRAM_BUILD": str(BUILD)}
    # torch.compile caches compiled kernels, but each run should compile them.
    caches = LOGS / "caches" / row.id.replace("/", ".")
    shutil.rmtree(caches, ignore_errors=True)
    variables.update(TORCHINDUCTOR_CACHE_DIR=str(caches / "inductor"), TRITON_CACHE_DIR=str(caches / "triton"), HOME=str(caches))
    variables["PATH"] = f"{python.parent}:{variables['PATH']}"
    caches.mkdir(parents=True)
    # NVRTC 13.0's wheel does not look for its second library in its own folder (pytorch/pytorch, issue 178196), so the path is set here.
    if row.allocator:
        put_allocator(row, variables)
    halves = list(python.parents[1].glob("lib/python3*/site-packages/nvidia/*/lib/libnvrtc-builtins.so.13.0"))
    if halves:
        variables["LD_LIBRARY_PATH"] = ":".join([str(halves[0].parent), *filter(None, [variables.get("LD_LIBRARY_PATH")])])
    return variables


def last_lines(path, count=200):
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines()[-count:]]
    return [line for line in lines if line]


def cause(path, code):
    """Returns the line of a program's output that best explains why it ended."""
    if code == "time":
        return f"over {ROW_SECONDS} s"
    lines = last_lines(path)
    telling = [line for line in lines if re.search(r"(Error|Exception|error|Aborted|assert|signal)\b", line) and not line.startswith("File ")]
    text = (telling or lines or [""])[-1]
    return f"exit {code}: {text}"[:160] if isinstance(code, int) and code >= 0 else f"signal {-code}: {text}"[:160]


def finish(command, log, variables, most_seconds=ROW_SECONDS, output=None):
    """Runs a command and everything it starts to the end. Its standard output goes to the log, too, or to a file of its own. Returns the exit
    code, or "time"."""
    with open(log, "wb") as file, open(output or os.devnull, "wb") as answer:
        process = subprocess.Popen(command, stdout=answer if output else file, stderr=file, stdin=subprocess.DEVNULL, env=variables, start_new_session=True,
                                   cwd=LOGS)
        try:
            return process.wait(most_seconds)
        except subprocess.TimeoutExpired:
            return "time"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def record(row, python):
    """Runs the row under `vram run` and compares the recording with the driver's own log. Returns the difference, or ""."""
    folder, log = LOGS / "recorded" / row.id.replace("/", "."), LOGS / f"{row.id.replace('/', '.')}.recorded.log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    recorder = [str(BUILD / "cli/vram"), "run", "-o", f"{folder}/r-%p.vram", "--stacks", "none", "--"]
    code = finish(command_of(row, python, recorder), log, {**environment_of(row, python), "VRAM_SIM_LOG": str(folder / "driver.log")})
    if code != 0:
        return f"vram run: {cause(log, code)}"
    found, count = recorded.differences(BUILD / "tests/run/run_events", folder)
    log.write_text("\n".join([*found, f"{count} events, {len(found)} differences", ""]))
    if found or (count == 0) != (row.recorded == "nothing"):
        return f"recorded: {len(found)} differences in {count} events ({log.name})"
    shutil.rmtree(folder)
    return ""


def run_row(row, python, most_seconds=ROW_SECONDS):
    log = LOGS / f"{row.id.replace('/', '.')}.log"
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, time.monotonic()
    if row.compared:
        log, code, recorded_in = run_recorded(row, python, row.allocator, most_seconds)
    else:
        answer = log.with_suffix(".json") if row.checked else None
        code = finish(command_of(row, python), log, environment_of(row, python), most_seconds, answer)
    lines = last_lines(log)
    works = code in (0, checked.FOUND if row.checked else 0) and any(row.last.search(line) for line in lines[-3:])
    why = "" if works else cause(log, code)
    if works and row.allocator and not allocator_was_put(row):
        works, why = False, "PyTorch's own allocator was in use"
    if row.checked:
        why = checked.judge(row.id, answer) or why
    if works and row.recorded:
        why = record(row, python)
    if works and why == "" and row.compared:
        why = compare_memory(row, python, recorded_in, most_seconds)
    shutil.rmtree(LOGS / "caches" / row.id.replace("/", "."), ignore_errors=True)
    if code == SKIPPED:
        return None, time.monotonic() - begun, before, (lines or [""])[-1]
    peak = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return why == "" and works, time.monotonic() - begun, peak, why


def prepare(name, table, python):
    """Runs the program that an environment needs once after its installation, also under `vram sim`. Returns False if it fails."""
    done = python.parents[1] / "prepared"
    if "prepare" not in table or done.exists():
        return True
    works, seconds, _, why = run_row(Row("prepare", name, table["prepare"], {}), python, PREPARE_SECONDS)
    print(f"{'ready' if works else 'FAILS':6} {name} {seconds:6.1f} s  {why}", flush=True)
    if works:
        done.touch()
    return works


def run_environment(name, table, rows, options):
    packages = table.get("npm") or table.get("packages", [])
    print(f"\n=== {name}: {' '.join(packages + table.get('debian', []))}", flush=True)
    results, absent = [], absent_from_debian(table.get("debian", []))
    if absent:
        print(f"skipped: {name}: Debian's packages that are not installed: {' '.join(absent)}")
        return results
    if "source" in table and source_of(table["source"]) is None:
        print(f"skipped: {name}: {table['source']} of sources.tsv is not in VRAM_PROGRAMS")
        return results
    python = pathlib.Path(options.python) if options.python else make_environment(name, table)
    if python is None:
        print(f"skipped: {name}: packages not to be had ({LOGS / name}.install.log)")
        return results
    if not options.python and not prepare(name, table, python):
        print(f"{name}: its rows run without what it prepares")
    if not options.python and bytes_of(CACHE) > MOST_BYTES:
        print(f"the cache holds more than {MOST_BYTES // 10**9} GB: {CACHE}")
    for row in rows:
        if row.source and source_of(row.source) is None:
            print(f"skipped {row.id}: {' '.join(row.source) if isinstance(row.source, list) else row.source} of sources.tsv is not in VRAM_PROGRAMS")
            continue
        works, seconds, _, why = run_row(row, python)
        if works is None:
            print(f"skipped {row.id}: {why.removeprefix('skipped ')}", flush=True)
            continue
        results.append((row, works, why))
        print(f"{'works' if works else 'FAILS':6} {row.id:40} {seconds:6.1f} s  {why}", flush=True)
    if not options.keep and not options.python:
        shutil.rmtree(CACHE / name, ignore_errors=True)
    return results


def learn(results):
    known = read_known() | {row.id for row, works, _ in results if works}
    (HERE / "known.tsv").write_text("# Rows that have worked: check_real.py --learn adds, nothing removes.\n" + "".join(f"{id}\n" for id in sorted(known)))


def chosen(rows, names):
    picked = [row for row in rows if not names or row.environment in names or row.id in names]
    unknown = [name for name in names if not any(name in (row.environment, row.id) for row in rows)]
    if unknown:
        sys.exit(f"no such environment or row: {', '.join(unknown)} (--list shows them)")
    return picked


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].splitlines()[0])
    for flag in ("--list", "--keep", "--learn"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--python")
    parser.add_argument("--compare", action="store_true")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true")
    how.add_argument("--allocator", choices=["native", "pluggable"])
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    environments, rows = read_rows()
    rows, known, results = chosen(rows, options.names), read_known(), []
    if options.allocator:
        rows = [row.with_allocator(options.allocator, options.compare) for row in rows if row.environment.startswith("torch") and not row.outside]
    if options.check:
        rows = [row.under_check() for row in rows if not row.outside]
    if options.list:
        return print("\n".join(row.id for row in rows))
    CACHE.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    for name, table in environments.items():
        own = [row for row in rows if row.environment == name]
        if own:
            results += run_environment(name, table, own, options)
    lost = [row.id for row, works, _ in results if not works and row.id in known]
    if options.learn:
        learn(results)
    if options.check:
        checked.print_table()
    for id in lost:
        print(f"worked once, and no longer does: {id}")
    working = sum(works for _, works, _ in results)
    print(f"\n{working} passed, {len(results) - working} failed")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
