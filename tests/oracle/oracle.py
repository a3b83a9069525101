#!/usr/bin/env python3
"""Plays random operations on PyTorch's own allocator and on this one, both on the simulated driver. Every address, block, event and statistic
must be equal.

usage: oracle.py --torch PYTHON [--kind K[,K...]] [--seed N] [--plays N] [--steps M] [--keep FOLDER] [FILE...]
--torch PYTHON   the Python of an installed PyTorch, 2.6 or newer
--kind K         kinds of operations.py (default: all that this PyTorch supports)
--plays N        number of plays, taking kinds in turn (default one of each); --seed N: the first seed (default 1)
--steps M        operations of a play (default 2000)
--keep FOLDER    keep the plays there: FILE.torch is a golden trace
--archive FILE   store the equal ones as FILE.tar.zst
FILE...          lists of operations to play instead (format.md)
A difference is reduced to few operations and printed. Exit code: 0 all equal, 1 a difference, 2 usage, 3 a play failed."""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import operations

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("VRAM_BUILD", ROOT / "build/release"))
PICTURES = ("stat ", "block ", "event ")


class Torch:
    """The player of PyTorch's side: one process, which forks for each play."""

    def __init__(self, python):
        command = [BUILD / "cli/vram", "sim", "--devices", "2", "--card", "h100", "--", python, "-u", HERE / "play_torch.py"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTORCH_", "VRAM_ALLOC"))}
        environment["TORCH_CPP_LOG_LEVEL"] = "ERROR"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def play(self, path):
        """Plays a file; PATH.torch gets the answers. Returns None on success, else the reason."""
        try:
            self.process.stdin.write(f"{path}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return "the player of PyTorch's side is gone"
        line = self.process.stdout.readline().strip()
        return None if line == str(path) else line or "the player of PyTorch's side is gone"

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours(path):
    """Plays a file with PyTorch's answers on this allocator. Returns (equal, output)."""
    told = subprocess.run([BUILD / "tests/oracle/oracle_play", path], capture_output=True, text=True)
    return told.returncode == 0, (told.stdout + told.stderr).replace(f"{path}: ", "")


def first_line(told):
    """Returns the number of the first line that differs, in PyTorch's file, or None for another kind of failure."""
    return int(told.split("line ")[1].split(":")[0]) if told.startswith("line ") else None


def nature(told):
    """Returns the kind of the first line that differs. A shorter list must differ in the same kind."""
    theirs = told.split("PyTorch: ")[1].split("\n")[0].split()
    mine = told.split("ours:    ")[1].split("\n")[0].split()
    words = theirs + ["?"] * 3
    key = words[2].split("=")[0] if words[0] in ("stat", "event") else ""
    return words[0], key, "OOM" in theirs, "OOM" in mine, "error" in theirs, "error" in mine, "inactive_split)" in theirs


def operations_of(path):
    """Returns the heads, and the operations without answers and snapshots."""
    lines = pathlib.Path(path).read_text().splitlines()
    heads = [line for line in lines if line.startswith("# ") and not line.startswith("# torch ")]
    rest = [line.split(" = ")[0] for line in lines if line and not line.startswith(("#", *PICTURES))]
    return heads, rest


# --- cutting down -------------------------------------------------------------------------------------------------------------------------
OPENING = {"capture": "endcapture", "use": "unuse", "pool": "droppool"}


def sane(lines):
    """Returns whether a shorter list is still valid: everything used was made, and a capture ends on its stream with all streams joined."""
    pools, routed, graphs, capturing, current, members = set(), set(), set(), None, (0, 0), set()
    for line in lines:
        word, *rest = line.split()
        if word == "stream":
            current = (int(rest[0]), int(rest[1]))
            if capturing and current[1] not in members:
                return False
        elif word == "pool":
            pools.add(rest[0])
        elif word in ("droppool", "use"):
            if rest[0] not in pools or (rest[0] in routed):
                return False
            (pools.discard if word == "droppool" else routed.add)(rest[0])
        elif word == "unuse":
            if rest[0] not in routed:
                return False
            routed.discard(rest[0])
        elif word == "capture":
            if capturing or current[1] == 0:
                return False
            capturing, members, joined = (rest[0], current), {current[1]}, {current[1]}
            graphs.add(rest[0])
        elif word == "endcapture":
            if not capturing or capturing != (rest[0], current) or joined < members:
                return False
            capturing = None
        elif word == "dropgraph":
            if rest[0] not in graphs or capturing:
                return False
            graphs.discard(rest[0])
        elif word == "fork" and capturing:
            if current[1] not in members:
                return False
            members.add(int(rest[0]))
        elif word == "join" and capturing:
            if int(rest[0]) not in members or current[1] not in members:
                return False
            if current == capturing[1]:
                joined.add(int(rest[0]))
        elif capturing and word == "record" and int(rest[1]) not in members:
            return False
        elif capturing and word in ("malloc", "work") and current[1] not in members:
            return False
    return capturing is None


class Cutter:
    def __init__(self, torch, heads, folder, seconds):
        self.torch, self.heads, self.folder, self.count = torch, heads, folder, 0
        self.until, self.nature = time.monotonic() + seconds, None

    def differs(self, lines):
        if not sane(lines):
            return None
        self.count += 1
        path = self.folder / "cut.txt"
        every = operations.with_pictures(lines, 1)
        path.write_text("\n".join(self.heads + every + ["stats", "map", "events"]) + "\n")
        if self.torch.play(path) is not None:
            return None
        equal, told = ours(f"{path}.torch")
        if equal or first_line(told) is None or self.nature not in (None, nature(told)):
            return None
        return told

    def cut(self, lines):
        """Returns the shortest list found that still differs, and the difference."""
        lines = [line for line in lines if line not in ("stats", "map", "events")]
        told, size = self.differs(lines), max(1, len(lines) // 2)
        if told is not None:
            self.nature = nature(told)
        else:
            return lines, "the difference is gone when pictures are taken after each operation"
        while size and time.monotonic() < self.until:
            start = 0
            while start < len(lines) and time.monotonic() < self.until:
                shorter = lines[:start] + lines[start + size:]
                now = self.differs(shorter)
                if now is None:
                    start += size
                else:
                    lines, told = shorter, now
            size //= 2
        return lines, told


def cut_down(torch, path, folder, told, seconds):
    heads, lines = operations_of(f"{path}.torch")
    line = first_line(told)
    if line is not None:  # lines after the first difference do not matter, unless it is in a snapshot of the end
        answered = pathlib.Path(f"{path}.torch").read_text().splitlines()[:line]
        if not answered[-1].startswith(("event ", "block ")):
            shorter = [text.split(" = ")[0] for text in answered if text and not text.startswith(("#", *PICTURES))]
            lines = shorter if sane(shorter) else lines
    return heads, *Cutter(torch, heads, folder, seconds).cut(lines)


# --- plays --------------------------------------------------------------------------------------------------------------------------------
def version_of(python):
    code = "import importlib.metadata as m; print(m.version('torch'))"
    told = subprocess.run([python, "-c", code], capture_output=True, text=True)
    parts = told.stdout.strip().split("+")[0].split(".")
    if told.returncode != 0 or len(parts) < 2:
        sys.exit(f"oracle.py: {python} has no PyTorch")
    return int(parts[0]), int(parts[1])


def plays_of(arguments, version, folder):
    kinds = arguments.kind.split(",") if arguments.kind else list(operations.KINDS)
    unknown = [kind for kind in kinds if kind not in operations.KINDS]
    if unknown:
        sys.exit(f"oracle.py: no kind {unknown[0]}; there are {' '.join(operations.KINDS)}")
    kinds = [kind for kind in kinds if operations.has(kind, version)]
    for number in range(arguments.plays or len(kinds)):
        kind, seed = kinds[number % len(kinds)], arguments.seed + number // len(kinds)
        path = folder / f"{kind}.{seed}.txt"
        path.write_text("\n".join(operations.make(kind, seed, arguments.steps, version, arguments.stats_every)) + "\n")
        yield kind, path


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plays", type=int)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--stats-every", type=int, default=4)
    parser.add_argument("--cut-seconds", type=float, default=60)
    parser.add_argument("--most-cuts", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--archive", type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        return run(arguments, folder)


def run(arguments, folder):
    version = version_of(arguments.torch)
    torch, counts, worst, cuts, begin, equals = Torch(arguments.torch), collections.defaultdict(collections.Counter), 0, 0, time.monotonic(), []
    plays = ((path.stem, path.resolve()) for path in arguments.files) if arguments.files else plays_of(arguments, version, folder)
    for kind, path in plays:
        failed = torch.play(path)
        equal, told = ours(f"{path}.torch") if failed is None else (False, failed)
        for what in told.split("but for ")[1].split() if equal and "but for" in told else []:
            counts[kind][f"but for {what}"] += 1
        result = "failed" if failed is not None or first_line(told) is None and not equal else "equal" if equal else "different"
        counts[kind][result] += 1
        worst = max(worst, {"equal": 0, "different": 1, "failed": 3}[result])
        if result == "equal":
            equals.append(f"{path.name}.torch")
            if not arguments.keep and not arguments.archive:
                path.with_name(path.name + ".torch").unlink()
            continue
        print(f"--- {path.name}: {told.strip()}", flush=True)
        if result == "different" and cuts < arguments.most_cuts:
            cuts += 1
            heads, lines, told = cut_down(torch, path, folder, told, arguments.cut_seconds)
            print(f"cut down to {len(lines)} operations:", *heads, *lines, told, sep="\n    ", flush=True)
    torch.close()
    if arguments.archive:
        command = ["tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "-I", "zstd -19", "-C", folder, "-cf", arguments.archive.resolve()]
        subprocess.run([*command, *equals], check=True)
    total = collections.Counter()
    for kind, results in counts.items():
        total.update(results)
        print(f"{kind:20} " + ", ".join(f"{count} {name}" for name, count in sorted(results.items(), key=str) if count))
    seconds, plays = time.monotonic() - begin, sum(total[name] for name in ("equal", "different", "failed"))
    results = ", ".join(f"{count} {name}" for name, count in sorted(total.items()) if count)
    print(f"PyTorch {version[0]}.{version[1]}: {plays} plays of {arguments.steps} operations, {results}, {seconds:.0f} s")
    return worst


if __name__ == "__main__":
    sys.exit(main())
