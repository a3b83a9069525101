#!/usr/bin/env python3
"""Checks that the core's functions assert the locks that their comments name.

Usage: check_locks.py [ROOT]

A comment above a function of allocator/core that says "Under all locks", "Under the device's lock" or "Called with the device locked" is a
promise of the caller. The function must contain VR_ASSERT_ALL_LOCKED, VR_ASSERT_LOCKED or VR_ASSERT_SETTLED. Functions in headers are not
checked: their callers are. EXCEPTIONS have no assertion, for the reason given. Prints the functions that lack the assertion, and exits 1 if there are any.
"""
import re
import sys
from pathlib import Path

PROMISE = re.compile(r"Under all locks|Under the device's locks?|Called (?:under all locks|with the device locked)|[Uu]nder the lock of the")
ASSERTION = re.compile(r"\bVR_ASSERT_(?:ALL_LOCKED|LOCKED|SETTLED)\(")
FUNCTION = re.compile(r"((?:^//[^\n]*\n)+)^((?:[a-z]\w*[ *]+)+)(\w+)\([^;{}]*\)(;| \{)", re.MULTILINE)
BODY = re.compile(r"^(?:[A-Za-z]\w*[ *]+)+(\w+)\([^;{}]*\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
EXCEPTIONS = {
    "vr_device_apply_options": "also called before others see the device",
    "vr_device_listen": "also called before others see the device",
    "vr_device_gate": "one gate is set on without a lock",
    "vr_fences_check": "it knows no device",
    "vr_exported_forget": "it knows no device",
}


def unchecked(root):
    """Yields (file, name, comment) of functions that promise a lock and do not assert it."""
    files = {file: file.read_text() for file in sorted((root / "allocator/core").rglob("*.[ch]"))}
    bodies = {name: body for file, text in files.items() if file.suffix == ".c" for name, body in BODY.findall(text)}
    for file, text in files.items():
        for comment, _, name, end in FUNCTION.findall(text):
            words = " ".join(line.removeprefix("//").strip() for line in comment.splitlines())
            if PROMISE.search(words) and name in bodies and name not in EXCEPTIONS and not ASSERTION.search(bodies[name]):
                yield file.relative_to(root), name, words


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    missing = list(unchecked(root))
    for file, name, words in missing:
        print(f"{file}: {name}() does not assert its lock: {words}")
    print(f"{len(missing)} functions do not assert the locks that their comments name")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
