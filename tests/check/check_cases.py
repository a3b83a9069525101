#!/usr/bin/env python3
"""Runs the programs of cases.tsv under `vram check`: each mistake has to be found with its kind and its lines, and no twin may have a finding.

Usage: check_cases.py VRAM [--only-run] LANGUAGE [NAME...]

--only-run runs the programs under `vram sim` instead: mistakes and twins have to run to their ends. Skipped (77) without the language's
interpreter or a C compiler, or where VRAM has no command `check`. Prints a line for each mistake that is missed and each twin that has a finding,
and a table by kinds at the end. Mistakes in missed.tsv are not found yet: the test fails once one of them is found.
"""
import argparse
import collections
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import check_programs as sources

SKIPPED = 77
LIMIT_S = 300


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def findings_of(text):
    """Returns the findings of the JSON that `vram check --json` prints after what the program printed."""
    start = max(text.rfind("\n{"), 0 if text.startswith("{") else -1)
    return json.loads(text[start:])["findings"] if start >= 0 else None


def died_at_its_end(result):
    """Returns whether PyTorch ended the process after the program's last line: one of its backward threads drops a tensor of Python while Python
    ends, and Python before 3.14 ends such a thread, which C++ does not allow. It happens without the checker, too."""
    return result.returncode == 134 and "terminate called without an active exception" in result.stderr


def lines_in(value, file):
    """Returns the lines of a file that the frames of a finding's stacks name."""
    if isinstance(value, list):
        return set().union(*(lines_in(part, file) for part in value))
    if not isinstance(value, dict):
        return set()
    own = {value["line"]} if Path(value.get("file", "")).name == file else set()
    return own.union(*(lines_in(part, file) for part in value.values()))


class Runner:
    def __init__(self, options, folder):
        self.vram, self.only_run, self.folder = options.vram, options.only_run, Path(folder)
        self.known = sources.known_misses()
        self.help = subprocess.run([self.vram, "check", "--help"], capture_output=True, text=True, check=False).stdout
        build = Path(self.vram).resolve().parents[1]
        self.libraries = [str(build / name) for name in ("simcudart/libcudart.so.13", "simcuda/libcuda.so.1")]

    def run(self, program, is_twin):
        """Runs a mistake or a twin, each in a folder of its own so that both files have the same name. Without an option that vram does not have yet
        the mistake is missed."""
        folder = self.folder / ("twin" if is_twin else "mistake")
        folder.mkdir(exist_ok=True)
        file = folder / program.path.name
        file.write_text(program.twin() if is_twin else program.source(), encoding="utf-8")
        compiler, arguments = sources.command(program, file, self.libraries)
        if compiler:
            subprocess.run(compiler, check=True)
        how = ["sim"] if self.only_run else ["check", "--json", *(option for option in program.options if option in self.help)]
        return subprocess.run([self.vram, *how, "--devices", "2", "--", *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env={**sources.environment(program.language), "TRITON_CACHE_DIR": str(folder / "triton")})

    def failure(self, program, is_twin):
        """Returns what is wrong with a run, or an empty string."""
        try:
            result = self.run(program, is_twin)
            if died_at_its_end(result):
                result = self.run(program, is_twin)
        except subprocess.TimeoutExpired:
            return f"is not over after {LIMIT_S} s"
        if self.only_run:
            return "" if result.returncode == 0 else f"exits {result.returncode}: {result.stderr[-500:]}"
        found = findings_of(result.stdout)
        if found is None:
            return f"printed no findings (exit {result.returncode}): {result.stderr[-500:]}"
        if is_twin:
            return self.false_alarm(result, found)
        missed = self.missed(program, result, found)
        if program.name in self.known:
            return "" if missed else "is found: take it out of missed.tsv"
        return missed

    @staticmethod
    def false_alarm(result, found):
        if found:
            return "has findings: " + json.dumps(found)[:1500]
        return "" if result.returncode == 0 else f"exits {result.returncode}: {result.stderr[-500:]}"

    @staticmethod
    def missed(program, result, found):
        if not found:
            return "is missed"
        right = [finding for finding in found if finding["kind"] in program.kinds]
        if not right:
            return f"is found as {', '.join(sorted({finding['kind'] for finding in found}))}"
        lacks = [program.missing(lines_in(finding, program.path.name)) for finding in right]
        if all(lacks):
            return f"is found without the line of {' and '.join(min(lacks, key=len))}: {json.dumps(right[0])[:1500]}"
        return "" if result.returncode == 1 else f"is found, and the exit code is {result.returncode}"


def ready(language):
    """Skips the test if something that the language needs is missing."""
    if language in sources.C_LANGUAGES:
        if not shutil.which("cc"):
            skip("no C compiler")
    elif not Path(sources.interpreter(language)).exists():
        skip(f"no interpreter for {language} ({sources.PYTHONS[language][0]}, or `make check-real ROWS={sources.PYTHONS[language][1]}`)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vram")
    parser.add_argument("language", choices=sources.LANGUAGES)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--only-run", action="store_true")
    options = parser.parse_args()
    ready(options.language)
    programs = [program for program in sources.programs() if program.language == options.language and (not options.names or program.name in options.names)]
    failures, counts = 0, collections.defaultdict(lambda: [0, 0, 0])
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options, folder)
        for program in programs:
            counts["|".join(program.kinds)][0] += 1
            for is_twin in (False, True):
                if failure := runner.failure(program, is_twin):
                    failures += 1
                    counts["|".join(program.kinds)][1 + is_twin] += 1
                    print(f"{program.language}/{program.name} ({'twin' if is_twin else '|'.join(program.kinds)}) {failure}", flush=True)
    for kind, (number, mistakes, twins) in sorted(counts.items()):
        print(f"{kind}: {number - mistakes} of {number} mistakes and {number - twins} of {number} twins as they should be")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
