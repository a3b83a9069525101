"""The samples of a folder (build_sources.py), each in its own folder, one after the other: each ends, or says why it does not go on. Kernels compute nothing, so a sample that checks values says that
they are wrong, and that is an end; a signal, a time-out, or silence is none."""
import pathlib
import re
import subprocess
import sys

import nvrtc

SECONDS = 60
LEAST = 45
SAID = re.compile(r"fail|error|not support|requires|waiv|wrong|mismatch|differ|cannot|could not|unable|invalid", re.I)


def outcome(sample, folder, environment):
    """How it ended, and the line that says so; the first word is "no" where it did not."""
    try:
        done = subprocess.run([sample], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
                              timeout=SECONDS, cwd=folder, env=environment)
    except subprocess.TimeoutExpired:
        return "no end", f"over {SECONDS} s"
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode == 0:
        return "ends", ""
    if done.returncode > 0 and lines:
        return "says why", next((line for line in reversed(lines) if SAID.search(line)), lines[-1])
    return "no end", f"{done.returncode}: {(lines or [''])[-1]}"


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
