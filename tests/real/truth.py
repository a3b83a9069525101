#!/usr/bin/env python3
"""Runs the programs of real GPUs' recordings again (truth.toml), and compares the recordings event by event.

usage: truth.py [--list] [--keep] [--explain] [--twice] [--out FILE] [ID...]
Each program runs under `vram sim`, where it writes its own snapshots, and under `vram fit`, whose answer and recording are the prediction.
Needs recordings (VRAM_RECORDINGS, else the build's), sources (VRAM_PROGRAMS; sources.tsv) and environments (made by check_real.py --keep). Missing
ones are named, and their programs skipped. --out writes the measurements as JSON; fit_tables.py makes the tables of fit_measured.md from it. --twice
runs each program twice, and requires the same events, addresses and state. The last line is "ok" if nothing is worse than `differs` of truth.toml."""
import argparse
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib

import check_real
import snapshots

HERE = pathlib.Path(__file__).resolve().parent
RECORDINGS = pathlib.Path(os.environ.get("VRAM_RECORDINGS", check_real.BUILD / "recordings/snapshots"))
PROGRAMS = pathlib.Path(os.environ.get("VRAM_PROGRAMS", "/nowhere"))
WORK = check_real.LOGS / "truth"
SECONDS = 1800


class Run:
    """A recording and how to run its program again."""

    def __init__(self, id, group, values):
        self.id, self.group = id, group
        self.values = values if isinstance(values, list) else [values]
        self.environment, self.device, self.sources = group["environment"], group["device"], group["sources"]
        self.differs = group.get("differs", {}).get(id, {})

    def filled(self, text, python):
        places = {"python": python, "here": HERE, **{name: PROGRAMS / name for name in self.sources}}
        for name, place in places.items():
            text = text.replace("{%s}" % name, str(place))
        for number, value in enumerate(self.values):
            text = text.replace("{%d}" % number, str(value))
        return text

    def recording(self):
        return next(iter(sorted(RECORDINGS.glob(f"{self.id}_*"))), None)

    def python(self):
        return check_real.CACHE / self.environment / "bin/python"

    def absent(self):
        """Returns the names of what is missing, or "" if the run can be made."""
        missing = [name for name in self.sources if not (PROGRAMS / name).is_dir()]
        if missing:
            return f"sources {', '.join(missing)} (sources.tsv) are not in VRAM_PROGRAMS"
        if self.recording() is None:
            return f"no recording in {RECORDINGS}"
        return "" if self.python().exists() else f"no environment {self.environment} (check_real.py --keep {self.environment}/imports makes it)"

    def snapshot(self):
        return self.filled(self.group["snapshot"], "")

    def told(self):
        return shlex.join(shlex.split(self.filled(self.group["command"], "python").replace(str(PROGRAMS) + "/", "").replace(str(HERE) + "/", "")))


def read_runs():
    with open(HERE / "truth.toml", "rb") as file:
        groups = tomllib.load(file)["programs"]
    runs = [Run(id, group, values) for group in groups for id, values in group["recordings"].items()]
    assert len({run.id for run in runs}) == len(runs), "a recording twice"
    return sorted(runs, key=lambda run: run.id)


def make_installed(folder, names):
    """Creates metadata, so that programs find the version of their own package."""
    for name in names:
        info = folder / f"{name.replace('-', '_')}-0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")


def prepared(runs, folder):
    run = runs[0]
    shutil.rmtree(folder, ignore_errors=True)
    for name in ["site", *run.group.get("folders", [])]:
        (folder / name).mkdir(parents=True)
    for name, text in run.group.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    make_installed(folder / "site", run.group.get("installed", []))
    shutil.copy(HERE / "programs/truth_site.py", folder / "site/sitecustomize.py")
    paths = [run.filled(path, "") for path in run.group.get("paths", [])]
    wanted = ":".join(str(folder / each.snapshot()) for each in runs) if run.group.get("stop", False) else ""
    return {**os.environ, **run.group.get("variables", {}), "PYTHONPATH": ":".join([*paths, str(folder / "site")]), "HF_HUB_OFFLINE": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton"),
            "VRAM_TRUTH_SKIP": "1" if run.group.get("skip", False) else "", "VRAM_TRUTH_END": wanted}


def is_written(path):
    """Returns whether a pickle is complete: it ends with its stop mark."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"."


def wait_for(process, seconds):
    """Waits for a process. Returns (exit status or "time", resources used by it and all its finished children)."""
    code, until = "time", time.monotonic() + seconds
    while time.monotonic() < until:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return code, usage


def run_timed(command, variables, folder, output, seconds=SECONDS):
    """Runs a command. Returns the exit status with seconds, CPU seconds (of all its processes) and the host's memory (of the largest
    process)."""
    begun = time.monotonic()
    with open(output, "wb") as file, open(output.with_suffix(".errors"), "wb") as errors:
        process = subprocess.Popen([str(part) for part in command], stdout=file, stderr=errors, stdin=subprocess.DEVNULL, env=variables, cwd=folder,
                                   start_new_session=True)
        code, usage = wait_for(process, seconds)
    return code, {"seconds": round(time.monotonic() - begun, 1), "processor": round(usage.ru_utime + usage.ru_stime, 1), "host": usage.ru_maxrss * 1024}


def values_of(run):
    return ["--values", "none"] if run.group.get("named", False) else []


def run_program(runs, folder):
    """Runs the unmodified program of some recordings on the simulated device."""
    run = runs[0]
    variables = prepared(runs, folder)
    command = [check_real.BUILD / "cli/vram", "sim", "--card", run.device, "--set", "bytes=none", *values_of(run), "--", *shlex.split(run.filled(run.group["command"], run.python()))]
    return run_timed(command, variables, folder, folder / "output")


def run_fit(runs, folder):
    """Runs the program under `vram fit`. Returns its answer and its cost; the recording is in the folder."""
    run = runs[0]
    variables = prepared(runs, folder)
    command = [check_real.BUILD / "cli/vram", "fit", "--json", "-q", "--card", run.device, "--steps", "all", "-o", folder / "fit.pickle",
               *values_of(run), "--", *shlex.split(run.filled(run.group["command"], run.python()))]
    code, took = run_timed(command, variables, folder, folder / "answer")
    if code not in (0, 1):
        return {"failed": f"vram fit: {check_real.cause(folder / 'answer.errors', code)}"}
    return {**json.loads((folder / "answer").read_text()), **took}


def fingerprint(snapshot):
    """Returns a digest of all events with their addresses, and of the final state. Leaves out times, which are those of the clock."""
    text = [f"{event['action']} {event.get('addr')} {event.get('size')} {event.get('stream')}" for event in snapshot.trace]
    text += [f"{segment['address']} {segment['total_size']} {[(block['size'], block['state']) for block in segment['blocks']]}" for segment in snapshot.segments]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


def worse(run, result):
    """Returns how a result differs from what truth.toml promises, or ""."""
    told = run.differs
    wanted = {"sizes_equal": told.get("sizes_equal", result["sizes"]), "equal_any_order_of_frees": told.get("equal", result["events"])}
    reasons = [f"{name} {result[name]} of {least}" for name, least in wanted.items() if result[name] < least]
    more = result["sizes_here"] - result["sizes_equal"]
    if more > told.get("sizes_more", 0):
        reasons.append(f"{more} allocations more")
    for name in ("allocated", "reserved"):
        real, here = result[name]
        if abs(here - real) > told.get(name, 0):
            reasons.append(f"{name} {here - real:+,}")
    return ", ".join(reasons)


def predicted(run, here, folder, answer):
    """Returns the answer of `vram fit` about the whole program, and the peaks of the part that the program itself recorded."""
    if "failed" in answer or not is_written(folder / "fit.pickle"):
        return {"failed": answer.get("failed", "vram fit: no recording")}
    whole = snapshots.Snapshot(folder / "fit.pickle")
    window = snapshots.window_of(whole, here)
    if window is None:
        return {"failed": "vram fit: its recording does not hold what the program recorded"}
    names = ("allocated_bytes", "reserved_bytes", "need_bytes", "smallest_card", "seconds", "processor", "host")
    return {**{name: answer[name] for name in names}, "allocated": whole.peak_allocated(window), "reserved": whole.peak_reserved(window),
            "requested_bytes": whole.allocated_peak}


def measured(run, folder, ran, answer, options):
    """Returns one recording's row."""
    code, took = ran
    result = {"id": run.id, "repository": run.group["repository"], "environment": run.environment, "device": run.device, "command": run.told(),
              "prepared": run.group.get("prepared", ""), "skip": run.group.get("skip", False), "why": run.differs.get("why", ""), **took}
    snapshot = folder / run.snapshot()
    if not is_written(snapshot):
        return {**result, "failed": check_real.cause(folder / "output.errors", code)}
    recorded, here = snapshots.Snapshot(run.recording()), snapshots.Snapshot(snapshot)
    result.update(snapshots.compare(recorded, here))
    if options.explain:
        print("\n".join(f"    {line}" for line in snapshots.explain(recorded, here)))
    fit = predicted(run, here, folder.with_name(f"{folder.name}.fit"), answer)
    if "failed" in fit:
        return {**result, "failed": fit["failed"]}
    return {**result, "fit": fit, "allocated": [result["allocated"][0], fit["allocated"]], "reserved": [result["reserved"][0], fit["reserved"]],
            "sim": [result["allocated"][1], result["reserved"][1]]}


def repeats(runs, folder):
    """Returns whether a second run gives the same events, addresses and state."""
    again = folder.with_name(f"{folder.name}.again")
    run_program(runs, again)
    same = all(is_written(again / run.snapshot()) and fingerprint(snapshots.Snapshot(again / run.snapshot())) == fingerprint(snapshots.Snapshot(folder / run.snapshot()))
               for run in runs if is_written(folder / run.snapshot()))
    shutil.rmtree(again, ignore_errors=True)
    return same


def measure(runs, options):
    """Returns the rows of the recordings made by one run of a program."""
    folder = WORK / runs[0].id
    ran = run_program(runs, folder)
    answer = run_fit(runs, folder.with_name(f"{folder.name}.fit"))
    results = [measured(run, folder, ran, answer, options) for run in runs]
    if options.twice:
        same = repeats(runs, folder)
        results = [{**result, "repeats": same} for result in results]
    if not options.keep:
        for path in WORK.glob(f"{folder.name}*"):
            shutil.rmtree(path, ignore_errors=True)
    return results


def line_of(run, result, why):
    if "failed" in result:
        return f"FAILS  {run.id}  {result['failed']}"
    (real, here), (held, held_here) = result["allocated"], result["reserved"]
    return (f"{'FAILS' if why else 'equal' if not run.differs else 'as told'}  {run.id}  events {result['equal']}/{result['events']} (any order of frees {result['equal_any_order_of_frees']})"
            f"  sizes {result['sizes_equal']}/{result['sizes']}  allocated {here:,} of {real:,}  reserved {held_here:,} of {held:,}"
            f"  vram fit {result['fit']['processor']} s of processors  host {result['fit']['host'] / 1e9:.1f} GB  {why}")


def in_programs(runs):
    """Returns lists of recordings made by the same run of a program. Missing ones are named and left out."""
    together = {}
    for run in runs:
        if absent := run.absent():
            print(f"skipped {run.id}: {absent}")
        else:
            together.setdefault((run.environment, run.device, run.told()), []).append(run)
    return together.values()


def keep_results(path, results):
    rows = {row["id"]: row for row in [*(json.loads(path.read_text()) if path.exists() else []), *results]}
    path.write_text(json.dumps([rows[id] for id in sorted(rows)], indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].splitlines()[0])
    for flag in ("--list", "--keep", "--explain", "--twice"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("ids", nargs="*")
    options = parser.parse_args()
    ids = [id.removeprefix("truth_") for id in options.ids]
    runs = [run for run in read_runs() if not ids or run.id in ids or run.group["name"] in ids]
    if options.list:
        return print("\n".join(f"{run.id}  {run.told()}" for run in runs))
    results, failed = [], 0
    for together in in_programs(runs):
        for run, result in zip(together, measure(together, options)):
            why = result.get("failed") or worse(run, result) or ("" if result.get("repeats", True) else "two runs differ")
            failed += bool(why)
            print(line_of(run, result, why), flush=True)
            results.append(result)
        if options.out:
            keep_results(options.out, results)
    if not results:
        sys.exit(check_real.SKIPPED)
    print(f"{len(results) - failed} as wanted, {failed} not")
    if not failed and results:
        print("ok")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
