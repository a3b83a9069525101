"""Runs a project's own tests under pytest. Kernels compute nothing, so failed assertions about values do not count, nor do exceptions caused by a value.

usage: pytest_suite.py LEAST [--value EXCEPTION:WORDS]... PATH...   at least LEAST tests must pass, and none may end with another exception"""
import re
import sys

import pytest


class Counter:
    def __init__(self, of_values):
        self.of_values, self.passed, self.skipped, self.values, self.errors = of_values, 0, 0, [], []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if report.skipped:
            self.skipped += 1
        elif report.passed:
            self.passed += report.when == "call"
        elif call.excinfo.errisinstance(AssertionError) or self.is_of_values(call.excinfo):
            self.values.append(item.nodeid)
        else:
            self.errors.append(f"{item.nodeid}: {call.excinfo.typename}: {str(call.excinfo.value)[:200]}")

    def is_of_values(self, info):
        return any(info.typename == name and words in str(info.value) for name, _, words in (rule.partition(":") for rule in self.of_values))

    def pytest_collectreport(self, report):
        if report.failed:
            self.errors.append(f"{report.nodeid}: not collected: {str(report.longrepr)[-200:]}")


def main():
    words, of_values = sys.argv[2:], []
    while words and words[0] == "--value":
        of_values.append(words[1])
        words = words[2:]
    counter = Counter(of_values)
    pytest.main(["-q", "-p", "no:cacheprovider", "--tb=short", *words], plugins=[counter])
    print("\n".join(re.sub(r"\s+", " ", error) for error in counter.errors))
    print(f"{counter.passed} passed, {len(counter.values)} values, {counter.skipped} skipped, {len(counter.errors)} errors")
    if counter.errors or counter.passed < int(sys.argv[1]):
        sys.exit(1)
    print("ok")


main()
