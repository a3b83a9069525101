#!/usr/bin/env python3
"""Kills programs at random moments: under `vram run`, and with a history in a file. The recording can be read. It has every call that the program had
finished, and at most the call in progress in addition. Usage: kills.py --build DIR [--seed N] [--count COUNT]"""
import argparse
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def events(build, path):
    """Returns the actions of a recording, in order, or None if it cannot be read."""
    done = subprocess.run([build / "tests/run/run_events", path], capture_output=True, text=True, timeout=100)
    return [line.split("\t")[1] for line in done.stdout.splitlines()] if done.returncode == 0 else None


def kill_later(command, ready, delay, environment=None):
    """Starts the command in its own process group, waits until it works, and kills the group. Returns False if it never began, or ended
    itself."""
    program = subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not ready() and program.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    time.sleep(delay)
    alive = program.poll() is None and ready()
    os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    return alive


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def kill_history(build, folder, delay):
    """Tests a history's file: the events equal the program's own count of finished calls."""
    recording, counter = folder / "history.vram", folder / "counter"
    if not kill_later([build / "tests/attack/killed_history", recording, counter], lambda: size_of(counter) == 8, delay):
        return "the program did not run", 0
    finished = struct.unpack("<Q", counter.read_bytes())[0]
    actions = events(build, recording)
    if actions is None and finished == 0:
        return None, 0  # killed before the file had its header: nothing is lost
    if actions is None:
        return f"{recording} cannot be read after {finished} operations", 0
    recorded = sum(action in ("alloc", "free_requested") for action in actions)
    if not finished <= recorded <= finished + 1:
        return f"{recorded} of {finished} operations are recorded", recorded
    return None, recorded


def kill_run(build, folder, delay):
    """Tests `vram run`: the events equal the driver's own log of calls."""
    recording, log = folder / "run.vram", folder / "driver.log"
    environment = dict(os.environ, VRAM_SIM_LOG=str(log), LD_LIBRARY_PATH=str(build / "simcuda"),
                       VRAM_PRELOAD=str(build / "adapters/preload/libvram_preload.so"))
    command = [build / "cli/vram", "run", "-o", recording, "--", build / "tests/run/run_linked", "loop", "1000000000"]
    if not kill_later(command, lambda: size_of(log) > 0, delay, environment):
        return "the program did not run", 0
    lines = log.read_text().split("\n")[:-1]
    finished = sum(line.split()[2] in ("cuMemAlloc_v2", "cuMemFree_v2") for line in lines)
    actions = events(build, recording)
    if actions is None and finished <= 1:
        return None, 0  # killed in the first call, before the file had its header: nothing is lost
    if actions is None:
        return f"{recording} cannot be read after {finished} calls", 0
    recorded = sum(action in ("alloc", "free_completed") for action in actions)
    # The driver writes its line before the call returns to the recorder, so the log may have one call more.
    if abs(recorded - finished) > 1:
        return f"{recorded} of {finished} calls are recorded", recorded
    return None, recorded


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    draw, failed, recorded = random.Random(options.seed), 0, 0
    for number in range(options.count):
        kill, delay = (kill_history, kill_run)[number % 2], draw.choice((0, 0.001, 0.01, 0.1)) + draw.random() * 0.05
        with tempfile.TemporaryDirectory(prefix="vram-kills-") as folder:
            wrong, count = kill(options.build.resolve(), Path(folder), delay)
        recorded += count
        if wrong is not None:
            failed += 1
            print(f"kill {number} of seed {options.seed} ({kill.__name__}, {delay:.4f} s): {wrong}")
    print(f"{options.count} kills, seed {options.seed}, {recorded} events read: {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
