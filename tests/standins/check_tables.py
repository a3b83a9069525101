#!/usr/bin/env python3
"""Tests whether the stand-ins have every function that NVIDIA's headers declare. Headers are looked for in CUDA_HOME, /usr/local/cuda, or
the folders in VRAM_HEADERS (separated by colons); skipped without any. First tests the script that makes the tables, with headers made
here."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import standin_calls  # noqa: E402

HEADER = """
#pragma once
typedef struct thing *curandThing_t; typedef struct curandContext *curandHandle_t;
typedef enum { CURAND_A } curandMode_t;
extern "C" {
int curandDo(curandHandle_t handle, const float *x, void *work, double *y, int n);
int curandDoBatched(curandHandle_t handle, float *const Aarray[], int n);
int curandSetMode(curandHandle_t handle, curandMode_t mode);
int curandGetMode(curandHandle_t handle, curandMode_t *mode);
[[deprecated("old")]] int curandThing_bufferSize(curandHandle_t handle, curandThing_t thing, size_t *bufferSize);
int curandCreateThing(curandThing_t *thing);
static inline int curandInline(void) { return 0; }
}
int curandLoggerOpen(const char *file);
"""
ROWS = [
    "NEW(curandCreateThing)",
    "WORK_ON(curandDo, (struct standin_handle *handle, float *x, void *work, double *y), READS(x), WRITES(y))",
    "WORK(curandDoBatched)",
    "GET(curandGetMode, 1, int)",
    "DONE(curandLoggerOpen)",
    "SET(curandSetMode, 1, int)",
    "QUERY(curandThing_bufferSize, (struct standin_handle *handle, void *thing, size_t *bufferSize), PUT(bufferSize, "
    "(TYPE_OF(bufferSize))standin_size(STANDIN_CUSPARSE_BUFFER, 0)->bytes))",
]


def check_script():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "made.h").write_text(HEADER)
        standin_calls.LIBRARIES["made"] = ("made", "made.h", "curand")
        standin_calls.ACTIONS["made"] = standin_calls.cusparse_actions
        header, numbers = standin_calls.Header("made", [folder]), {}
        rows = [standin_calls.row_of("made", header, name, numbers) for name in sorted(header.prototypes)]
    assert rows == ROWS, rows


def folders():
    named = os.environ.get("VRAM_HEADERS", "").split(":")
    homes = [os.path.join(home, "include") for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    return [folder for folder in named + homes if folder and os.path.isdir(folder)]


def main():
    check_script()
    found = folders()
    absent = 0
    for library, (_, headers, _) in standin_calls.LIBRARIES.items():
        first = headers.split()[0]
        if library == "made" or not any((Path(folder) / first).is_file() for folder in found):
            continue
        absent += subprocess.run([sys.executable, ROOT / "tools/standin_calls.py", library, *found, "--check"], check=False).returncode
    if not found:
        print("skipped: no headers of CUDA's libraries were found (set CUDA_HOME, or VRAM_HEADERS to folders of headers)")
        return 77
    return absent != 0


if __name__ == "__main__":
    sys.exit(main())
