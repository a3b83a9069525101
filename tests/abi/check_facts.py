#!/usr/bin/env python3
"""Compares simulator/standins/facts with headers, if any are found: in CUDA_HOME, /usr/local/cuda, or wheels in the folder VRAM_WHEELS.
Skipped otherwise. With --extractor: checks the extractor itself, with headers made here."""

import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import api_facts  # noqa: E402

OLD = """
#define NVML_API_VERSION 12
typedef int nvmlReturn_t;
nvmlReturn_t nvmlOne(const char *name, unsigned long long values[4]);
nvmlReturn_t nvmlGone(void);
"""
NEW = """
/** One. */
#define NVML_API_VERSION 13
typedef enum nvmlReturn_enum { NVML_SUCCESS = 0, NVML_ERROR_LATE = 7, NVML_ERROR_NEXT } nvmlReturn_t;
nvmlReturn_t nvmlOne(const char *name, unsigned long long values[4]);
nvmlReturn_t nvmlOne_v2(void (*callback)(int, void *), struct one *one);
static inline nvmlReturn_t nvmlInline(void) { return 0; }
const char *other(void);
"""


def check_extractor():
    with tempfile.TemporaryDirectory() as folder:
        inputs = []
        for name, text in (("old", OLD), ("new", NEW)):
            os.mkdir(os.path.join(folder, name))
            with open(os.path.join(folder, name, "nvml.h"), "w") as file:
                file.write(text)
            inputs.append(api_facts.Headers(os.path.join(folder, name), folder, []))
        _, rows, values, hidden = api_facts.gather(api_facts.LIBRARIES["nvml"], inputs, folder)
    assert rows == {
        "nvmlOne": (12000, 13000, ("nvmlReturn_t", "const char *name, unsigned long long *values")),
        "nvmlGone": (12000, 12000, ("nvmlReturn_t", "void")),
        "nvmlOne_v2": (13000, 13000, ("nvmlReturn_t", "void (*callback)(int, void *), struct one *one")),
    }, rows
    assert {(member, row[2]) for (_, member), row in values.items()} == {("NVML_SUCCESS", 0), ("NVML_ERROR_LATE", 7), ("NVML_ERROR_NEXT", 8)}
    assert hidden == {}


def inputs_for(library):
    given = [home for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home and os.path.isdir(home)][:1]
    given += sorted(glob.glob(os.path.join(os.environ.get("VRAM_WHEELS", "/nonexistent"), "*.whl")))
    for one in given:
        with tempfile.TemporaryDirectory() as scratch:
            if any(map(api_facts.Headers(one, scratch, []).has, api_facts.LIBRARIES[library]["headers"])):
                yield one


def main():
    if sys.argv[1:] == ["--extractor"]:
        check_extractor()
        return 0
    wrong = compared = 0
    for library in ("cuda", "cudart", "nvml"):
        found = list(inputs_for(library))
        compared += len(found)
        if found:
            wrong |= subprocess.run([sys.executable, os.path.join(ROOT, "tools", "api_facts.py"), "--check", library, *found]).returncode
    if compared == 0:
        print("skipped: no headers of CUDA were found (set CUDA_HOME, or VRAM_WHEELS to a folder of wheels)")
        return 77
    return wrong


if __name__ == "__main__":
    sys.exit(main())
