"""Runs numba-cuda's own tests of its driver layer, from its wheel. Kernels compute nothing, so failed assertions about values do not count.

usage: numba_suite.py [MODULE]   MODULE: a memory manager, as in NUMBA_CUDA_MEMORY_MANAGER"""
import os
import sys
import unittest

LEAST = 200

if len(sys.argv) > 1:
    os.environ["NUMBA_CUDA_MEMORY_MANAGER"] = sys.argv[1]
    sys.path.insert(0, os.path.join(os.environ["VRAM_BUILD"], "site-packages"))
    os.environ["PYTHONPATH"] = sys.path[0]  # for processes that tests start


class Result(unittest.TextTestResult):
    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addError(self, test, error):
        # pytest skips with this exception; it may come from a package that is not installed.
        if error[0].__name__ == "Skipped":
            return self.addSkip(test, str(error[1]))
        return super().addError(test, error)


def main():
    tests = unittest.defaultTestLoader.discover(__import__("numba.cuda.tests.cudadrv", fromlist=["x"]).__path__[0], top_level_dir=None)
    done = unittest.TextTestRunner(resultclass=Result, verbosity=1, stream=sys.stdout).run(tests)
    print(f"{done.testsRun} tests: {done.passed} passed, {len(done.failures)} values, {len(done.skipped)} skipped, {len(done.errors)} errors")
    if done.errors or done.passed < LEAST:
        sys.exit(1)
    print("ok")


if __name__ == "__main__":  # processes that tests start import this module
    main()
