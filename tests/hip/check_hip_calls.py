#!/usr/bin/env python3
"""Tests that the stand-in for HIP's runtime has every function that PyPI's wheels import, for each of its three major versions, on AMD's devices.

usage: check_hip_calls.py VRAM"""
import os
import pathlib
import subprocess
import sys

program = pathlib.Path(__file__).parent / "hip_calls.py"
env = {name: value for name, value in os.environ.items() if not name.startswith("VRAM_") and name != "LD_LIBRARY_PATH"}
wrong = 0
for major in ("5", "6", "7"):
    done = subprocess.run([sys.argv[1], "sim", "--hip", "--card", "mi300x", "--", sys.executable, str(program), major], env=env, capture_output=True, text=True,
                          timeout=60, check=False)
    if done.stdout != "agreed\n":
        wrong = 1
        print("ROCm", major, done.stdout, done.stderr[-2000:])
sys.exit(wrong)
