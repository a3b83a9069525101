#!/usr/bin/env python3
"""Tests a program built with `nvcc -cudart shared`: it runs under `vram sim`, and `vram run` records it.

Usage: test_nvcc.py NVCC VRAM FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

NVCC, VRAM, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
SOURCE = pathlib.Path(__file__).with_name("program.cu")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("VRAM_")}


def build(name, *flags):
    program = FOLDER / name
    result = subprocess.run([NVCC, "-cudart", "shared", *flags, "-o", program, SOURCE], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        print(f"nvcc builds nothing here: {result.stdout}{result.stderr}")
        sys.exit(77)
    return program


def sim(*command):
    return subprocess.run([VRAM, "sim", "--", *map(str, command)], capture_output=True, text=True, env=ENVIRONMENT, check=False)


class Nvcc(unittest.TestCase):
    def test_the_program_runs(self):
        for name, flags in (("program", ()), ("program_per_thread", ("--default-stream", "per-thread"))):
            result = sim(build(name, *flags))
            self.assertEqual((result.stdout, result.returncode), ("all is well\n", 0), result.stderr)

    def test_the_recording_is_right(self):
        program, recording = build("program"), FOLDER / "program.vram"
        recording.unlink(missing_ok=True)
        result = sim(VRAM, "run", "-o", recording, "--", program)
        self.assertEqual((result.stdout, result.returncode), ("all is well\n", 0), result.stderr)
        report = json.loads(subprocess.run([VRAM, "report", "--json", recording], capture_output=True, check=True).stdout)
        device = report["devices"]["0"]
        # cudaMalloc twice, a pitched and a stream-ordered allocation, two variables; the end of the context frees the variables.
        self.assertEqual(device["events_by_action"]["alloc"], 6)
        self.assertEqual(device["events_by_action"]["oom"], 1)
        self.assertEqual(device["allocated"]["end_bytes"], 0)


unittest.main(argv=[sys.argv[0]])
