"""On an emulated processor, ten times slower, a test waits ten times as long for a program (tools/check_arm64.sh has it in PYTHONPATH)."""

import subprocess

FACTOR = 10


def patiently(wait):
    def waiting(self, *arguments, timeout=None, **more):
        return wait(self, *arguments, timeout=timeout if timeout is None else FACTOR * timeout, **more)

    return waiting


# run() and the others come down to communicate(), which may come to wait(): each for itself, so the inner ones are left alone.
subprocess.Popen.communicate = patiently(subprocess.Popen.communicate)
