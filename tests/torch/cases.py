"""Runs each test function of a file in its own process, because a process has one allocator.

Test functions are called test_*. main() runs all of them, or, given a name, that one in this process.
"""
import os
import subprocess
import sys
import unittest

SKIPPED = 77


def environment(**variables):
    """Decorator that sets environment variables of the process that runs the function."""

    def mark(function):
        function.environment = variables
        return function

    return mark


def _variables(function):
    dropped = ("VRAM_SIM", "VRAM_LIBCUDA", "VRAM_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "VRAM_TORCH_LIBRARY", "VRAM_TORCH_WAY",
               "VRAM_TORCH_PREBUILT")
    variables = {name: value for name, value in os.environ.items() if name not in dropped}
    variables.update(getattr(function, "environment", {}))
    return variables


def _test(path, name, function):
    def run(self):
        result = subprocess.run([sys.executable, path, name], env=_variables(function), capture_output=True, text=True, timeout=120)
        if result.returncode == SKIPPED:
            self.skipTest(result.stdout.strip())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    return run


def skip(reason):
    """Skips a test that does not apply here, by ending its process."""
    print(reason)
    sys.exit(SKIPPED)


def main(path, namespace):
    functions = {name: value for name, value in namespace.items() if name.startswith("test_") and callable(value)}
    if len(sys.argv) > 1:
        functions[sys.argv[1]]()
        return
    case = type("Cases", (unittest.TestCase,), {name: _test(path, name, function) for name, function in functions.items()})
    outcome = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    if outcome.testsRun == 0 or not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if len(outcome.skipped) == outcome.testsRun else 0)
