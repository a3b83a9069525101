#!/usr/bin/env python3
"""Changes the code at random places, one at a time, and checks whether a test fails.

All mutants are compiled into one build of a copy of the tree; a file that every process maps says which one is active. Each test first
runs without a mutant, to measure its time and the places it reaches. Each mutant then runs against the tests that reach it, shortest
first, until one fails. A mutant that no test detects is printed, unless judged.tsv explains why it is equivalent to the original.

Usage: mutate.py [--seed N] [--count N] [--work DIR] [--only REGEX] [--longest SECONDS] [--again]
"""
import argparse
import collections
import concurrent.futures
import csv
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

import sites

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
ROOMS = ["allocator/core", "allocator/history", "replay", "recordings/analyze", "recordings/present", "recordings/snapshot", "allocator/config", "simulator/sim", "standins"]
# Without one of these calls memory or a file leaks. The leak checker of the sanitized build detects that; tests of this build do not.
RELEASES = re.compile(r"\b(free|close|munmap|\w*_(release|destroy|free|close|unmap))\(")
# These read the sources or the time, need a browser, or repeat other tests with more seeds.
NOT_RUN = re.compile(r"^(house|viewer|packages|pages|instructions|fuzz)\.")


def tree_files():
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=SOURCE, check=True, capture_output=True).stdout
    return [name for name in listed.decode().split("\0") if name and (SOURCE / name).is_file()]


def copy_tree(tree):
    """Copies the sources. Unchanged files keep their times, so that a second build is short."""
    names = tree_files()
    for name in names:
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = (SOURCE / name).read_bytes()
        if not target.exists() or target.read_bytes() != fresh:
            shutil.copy2(SOURCE / name, target)
            os.utime(target)
    modules = SOURCE / "viewer/web/node_modules"
    if modules.exists() and not (tree / "viewer/web/node_modules").exists():
        (tree / "viewer/web/node_modules").symlink_to(modules)
    shared = SOURCE.parent / "shared"
    if shared.exists() and not (tree.parent / "shared").exists():
        (tree.parent / "shared").symlink_to(shared)


def configure(tree):
    command = ["cmake", "--preset", "release", "--log-level=WARNING", "-DVRAM_WERROR=OFF"]
    subprocess.run(command, cwd=tree, check=True)


def room_of(name):
    return next((room for room in ROOMS if name.startswith(room + "/")), None)


def sites_of_entry(entry):
    tree, path, arguments = entry

    def wanted(name):
        return room_of(os.path.relpath(name, tree)) is not None

    return sites.sites_of_unit(path, arguments, wanted)


def find_sites(tree):
    """Returns all sites by path relative to the tree. A header's sites are taken from the first file that includes it."""
    entries = []
    seen = set()
    for entry in json.loads((tree / "build/release/compile_commands.json").read_text()):
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        if path in seen or room_of(os.path.relpath(path, tree)) is None or not path.endswith(".c"):
            continue
        seen.add(path)
        words = shlex.split(entry["command"])[1:]
        entries.append((str(tree), path, [word for word in words if re.match(r"-(I|D|std|isystem)", word)]))
    found = {}
    with multiprocessing.Pool() as pool:
        for part in pool.imap(sites_of_entry, sorted(entries), chunksize=8):
            for path, listed in part.items():
                found.setdefault(os.path.relpath(path, tree), listed)
    return found


def sample(found, seed, count):
    """Draws `count` sites, the same number from each room, none inside another."""
    dice = random.Random(seed)
    by_room = collections.defaultdict(list)
    for path in sorted(found):
        for site in found[path]:
            if not (site["operator"] == "left out" and RELEASES.search(site["before"])):
                by_room[room_of(path)].append(site | {"file": path})
    chosen = []
    for index, room in enumerate(ROOMS):
        wanted = count // len(ROOMS) + (index < count % len(ROOMS))
        dice.shuffle(by_room[room])
        taken = []
        for site in by_room[room]:
            if len(taken) == wanted:
                break
            if not any(t["file"] == site["file"] and t["begin"] < site["end"] and site["begin"] < t["end"] for t in taken):
                taken.append(site)
        chosen += taken
    for number, site in enumerate(chosen, 1):
        site["number"] = number
    return chosen


def head(selection, count):
    """Returns the lines put before the first line of a changed file, which keeps its line numbers."""
    return f'#define VRAM_MUTANT_FILE "{selection}"\n#define VRAM_MUTANT_COUNT {count + 1}\n#include "{HERE / "selected.h"}"\n#line 1\n'


def apply(tree, mutants, selection, count):
    by_file = collections.defaultdict(list)
    for mutant in mutants:
        by_file[mutant["file"]].append(mutant)
    for name, listed in by_file.items():
        text = (SOURCE / name).read_bytes()
        for mutant in sorted(listed, key=lambda m: -m["begin"]):
            new = mutant["template"].replace("$", str(mutant["number"])).encode()
            lines = text[mutant["begin"] : mutant["end"]].count(b"\n")
            new = new.replace(b"\n", b" ") if not lines else new
            text = text[: mutant["begin"]] + new + text[mutant["end"] :]
        (tree / name).write_bytes(head(selection, count).encode() + text)


def build(tree, mutants, selection, count):
    """Compiles the mutants and drops those that are not valid C. Returns the rest."""
    for _ in range(6):
        apply(tree, mutants, selection, count)
        done = subprocess.run(["cmake", "--build", "build/release", "--", "-k", "0"], cwd=tree, capture_output=True, text=True)
        if done.returncode == 0:
            return mutants
        wrong = set(re.findall(r"^(\S+?):(\d+):(?:\d+:)? (?:fatal )?error:", done.stdout + done.stderr, re.M))
        wrong = {(os.path.relpath(os.path.join(tree, "build/release", path), tree), int(line)) for path, line in wrong}
        bad = [m for m in mutants if any(path == m["file"] and m["line"] <= line <= m["line"] + 12 for path, line in wrong)]
        if not bad:  # an error in a header that the file includes
            failed = re.findall(r"^FAILED: .*?/([\w.]+)\.o", done.stdout, re.M)
            bad = [m for m in mutants if os.path.basename(m["file"]) in failed]
        if not bad:
            (tree.parent / "build.log").write_text(done.stdout + done.stderr)
            sys.exit(f"the mutated tree does not compile, see {tree.parent / 'build.log'}")
        print(f"{len(bad)} mutants are no C and are dropped", flush=True)
        for mutant in bad:
            shutil.copy2(SOURCE / mutant["file"], tree / mutant["file"])
        mutants = [m for m in mutants if m not in bad]
    sys.exit("the mutated tree does not compile")


def tests_of(tree):
    shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=tree / "build/release", check=True, capture_output=True, text=True).stdout
    tests = []
    for test in json.loads(shown)["tests"]:
        properties = {p["name"]: p["value"] for p in test["properties"]}
        if "command" in test and not NOT_RUN.search(test["name"]) and "nightly" not in properties.get("LABELS", []):
            tests.append({"name": test["name"], "command": test["command"], "properties": properties})
    return tests


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))


def run(test, seconds, running=None):
    """Returns 'passed', 'skipped', 'failed' or 'too long'."""
    properties = test["properties"]
    environment = dict(os.environ) | dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
    process = subprocess.Popen(
        test["command"], cwd=properties["WORKING_DIRECTORY"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limits,
    )  # fmt: skip
    if running is not None:
        running.append(process)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        stop(process)
        process.communicate()
        return "too long"
    finally:
        stop(process)
    if "PASS_REGULAR_EXPRESSION" in properties:
        text = output.decode(errors="replace")
        return "passed" if any(re.search(pattern, text) for pattern in properties["PASS_REGULAR_EXPRESSION"]) else "failed"
    if process.returncode == properties.get("SKIP_RETURN_CODE"):
        return "skipped"
    return "passed" if process.returncode == 0 else "failed"


def stop(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Selection:
    """The file that every process maps."""

    def __init__(self, path, count):
        self.path, self.count = path, count
        self.clear(0)

    def clear(self, number):
        # Written in place, because processes have it mapped.
        with open(self.path, "r+b" if self.path.exists() else "w+b") as file:
            file.write(bytes([number & 255, number >> 8]) + bytes(7 + self.count))

    def reached(self):
        reached = self.path.read_bytes()[8:]
        return [number for number, seen in enumerate(reached) if seen]


def trace(tests, selection, longest):
    """Runs each test alone without a mutant. Returns those that pass within `longest` seconds, with the mutants they reach."""
    kept = []
    for test in tests:
        selection.clear(0)
        begin = time.monotonic()
        answer = run(test, longest)
        test["seconds"] = time.monotonic() - begin
        test["reaches"] = selection.reached()
        if answer == "passed":
            kept.append(test)
        elif answer != "skipped":
            print(f"not used: {test['name']} ({answer} without a mutant)", flush=True)
    return kept


def order(mutant, tests, caught):
    """Returns the tests that reach the mutant. Those that caught most mutants of its folder for their time come first."""
    folder = os.path.dirname(mutant["file"])

    def price(test):
        return (0.2 + test["seconds"]) / (1 + 4 * caught[folder, test["name"]])

    return sorted((t for t in tests if mutant["number"] in t["reaches"]), key=price)


def judge(mutant, reaching, selection):
    """Returns the name of the test that fails with this mutant, or None."""
    number = mutant["number"]
    mutant["tests"] = len(reaching)
    selection.clear(number)
    running = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = iter(reaching)
        started = {pool.submit(run, t, 15 + 6 * t["seconds"], running): t for t in itertools.islice(waiting, os.cpu_count())}
        while started:
            done, _ = concurrent.futures.wait(started, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                test = started.pop(future)
                if future.result() not in ("passed", "skipped"):
                    for process in running:
                        stop(process)
                    return test["name"]
                following = next(waiting, None)
                if following:
                    started[pool.submit(run, following, 15 + 6 * following["seconds"], running)] = following
    return None


def traced(tree, mutants, selection, longest, again):
    """Returns the tests and the mutants they reach, from the interrupted run if there is one."""
    kept = tree.parent / "tests.json"
    wanted = [list(key(m)) for m in mutants]
    if again and kept.exists():
        last = json.loads(kept.read_text())
        if last["mutants"] == wanted:
            return last["tests"]
    tests = trace(tests_of(tree), selection, longest)
    kept.write_text(json.dumps({"mutants": wanted, "tests": tests}))
    return tests


def key(mutant):
    return mutant["file"], mutant["function"], " ".join(mutant["before"].split()), " ".join(mutant["after"].split())


def judged():
    path = HERE / "judged.tsv"
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row and not row[0].startswith("#")]
    return {tuple(row[:4]): row[4] for row in rows}


def tell(mutants):
    """Prints the table by room and the surviving mutants. Returns the share of mutants caught, without equivalent ones."""
    verdicts = judged()
    rows = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        state = "caught" if mutant["by"] else "same" if key(mutant) in verdicts else "left"
        for room in (room_of(mutant["file"]), "all"):
            rows[room][state] += 1
        if state == "left":
            print(f"left: {mutant['file']}:{mutant['line']} {mutant['function']}, {mutant['operator']}, {mutant['tests']} tests reach it\n", end="")
            print(f"      {' '.join(mutant['before'].split())[:150]}\n   -> {' '.join(mutant['after'].split())[:150] or '(nothing)'}")
    print(f"{'room':16}{'mutants':>8}{'caught':>8}{'same':>8}{'left':>8}{'share':>9}")
    for room in ROOMS + ["all"]:
        row = rows[room]
        counted = row["caught"] + row["left"]
        share = 100 * row["caught"] / counted if counted else 100
        print(f"{room:16}{sum(row.values()):>8}{row['caught']:>8}{row['same']:>8}{row['left']:>8}{share:>7.1f} %")
    row = rows["all"]
    return row["caught"] / max(1, row["caught"] + row["left"])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=450)
    parser.add_argument("--work", type=pathlib.Path, default=SOURCE / "build/mutation")
    parser.add_argument("--only", default="", help="judge only mutants whose FILE:LINE matches this expression")
    parser.add_argument("--longest", type=float, default=20, help="leave out tests that take longer (seconds)")
    parser.add_argument("--again", action="store_true", help="keep what an interrupted run found out")
    parser.add_argument("--left", action="store_true", help="run only what the last run left, with the tests of today")
    return parser.parse_args()


def prepare(options, tree, selection_path):
    copy_tree(tree)
    configure(tree)
    # The build writes some sources, so the sites of a changed tree must be found in the tree as it is now.
    found = find_sites(tree)
    print(f"{sum(map(len, found.values()))} places in {len(found)} files", flush=True)
    mutants = sample(found, options.seed, options.count)
    selection = Selection(selection_path, len(mutants))
    return build(tree, mutants, selection_path, len(mutants)), selection


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that running tests are ended too
    work = options.work.resolve()
    tree = work / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    results = work / f"results-{options.seed}-{options.count}.json"
    before = {key(m): m for m in json.loads(results.read_text())} if results.exists() else {}
    mutants, selection = prepare(options, tree, work / "selected")
    print(f"{len(mutants)} mutants", flush=True)
    tests = traced(tree, mutants, selection, options.longest, options.again)
    caught = collections.Counter()
    print(f"{len(tests)} tests, {sum(t['seconds'] for t in tests):.0f} s", flush=True)
    for mutant in mutants:
        old = before.get(key(mutant))
        mutant["by"], mutant["tests"] = (old["by"], old["tests"]) if old else (None, 0)
        if old and (options.again or (options.left and old["by"])):
            continue
        if re.search(options.only, f"{mutant['file']}:{mutant['line']}"):
            reaching = order(mutant, tests, caught)
            mutant["tests"] = len(reaching)
            mutant["by"] = judge(mutant, reaching, selection)
            caught[os.path.dirname(mutant["file"]), mutant["by"]] += 1
            before[key(mutant)] = mutant
            results.write_text(json.dumps(list(before.values()), indent=1))
            print(f"{mutant['number']:4} {mutant['by'] or 'LEFT':30} {mutant['file']}:{mutant['line']} {mutant['operator']}", flush=True)
    selection.clear(0)
    return 0 if tell(mutants) >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
