"""Runs the samples of a folder (build_sources.py) one after another, each in its own folder. Each must end, or say why it cannot continue. Kernels compute nothing, so a
sample that checks values reports them as wrong, which counts as an end; a signal, a time-out or silence does not."""
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import nvrtc

SECONDS = 60
MOST_LINES = 100000  # one prints a line for each of 64 million bytes that no kernel wrote
LEAST = 45
SAID = re.compile(r"fail|error|not support|requires|waiv|wrong|mismatch|differ|cannot|could not|unable|invalid", re.I)


def outcome(sample, folder, environment):
    """Returns how a sample ended, and the line that says so. The first word is "no" if it did not end by itself."""
    process = subprocess.Popen([sample], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
                               cwd=folder, env=environment, start_new_session=True)
    late = threading.Timer(SECONDS, end, [process])
    late.start()
    lines, count = collections.deque(maxlen=200), 0
    for line in process.stdout:
        lines.extend([line.strip()] if line.strip() else [])
        count += 1
        if count == MOST_LINES:
            end(process)
    code = process.wait()
    over = not late.is_alive()
    late.cancel()
    said = next((line for line in reversed(lines) if SAID.search(line)), None)
    if code == 0:
        return "ends", ""
    if lines and (code > 0 or (count >= MOST_LINES and said)):
        return "says why", said or lines[-1]
    return "no end", f"over {SECONDS} s" if over else f"{code}: {(lines or [''])[-1]}"


def end(process):
    os.killpg(process.pid, signal.SIGKILL)


def main():
    built = pathlib.Path(sys.argv[1])
    results, environment = [], nvrtc.environment()
    for sample in sorted(path / path.name for path in built.iterdir() if (path / "complete").exists()):
        how, line = outcome(sample, sample.parent, environment)
        results.append(how)
        print(f"{how:9} {sample.name:32} {line[:120]}", flush=True)
    print(", ".join(f"{results.count(how)} {how}" for how in sorted(set(results))))
    if len(results) < LEAST or "no end" in results:
        sys.exit(1)
    print("ok")


main()
