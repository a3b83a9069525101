"""Multiplies a test's waits for programs by ten on an emulated processor, which is ten times slower (tools/check_arm64.sh adds this to
PYTHONPATH)."""

import subprocess

FACTOR = 10


def patiently(wait):
    def waiting(self, *arguments, timeout=None, **more):
        return wait(self, *arguments, timeout=timeout if timeout is None else FACTOR * timeout, **more)

    return waiting


# run() and others end in communicate(), which may call wait(). Each multiplies only its own timeout, so inner calls are left alone.
subprocess.Popen.communicate = patiently(subprocess.Popen.communicate)
