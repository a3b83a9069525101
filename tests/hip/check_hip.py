#!/usr/bin/env python3
"""Compares the driver for AMD's HIP with the driver for NVIDIA's, both over the simulated device; also tests a machine with neither.

usage: check_hip.py SAME_REQUESTS SIMCUDA_FOLDER STANDIN_FOLDER VRAM PROGRAM"""
import os
import subprocess
import sys

requests, simcuda, standins, vram, program = sys.argv[1:6]
OPTIONS = ["", "expandable_segments:True", "paged:True", "backend:cudaMallocAsync", "max_split_size_mb:20,garbage_collection_threshold:0.6"]
# A separate thread makes pages ahead, at varying times.
THREADED = "grow_ahead:True,paged:True"
found = []


def play(driver, options, library=None, **more):
    env = {**os.environ, "LD_LIBRARY_PATH": simcuda, "VRAM_SIM": "memory=8GiB,bytes=all", "VRAM_LIBHIP": library or standins + "/libamdhip64.so.6", **more}
    return subprocess.run([requests, driver, options], env=env, capture_output=True, text=True, timeout=200, check=False)


def expect(what, good, *facts):
    if not good:
        found.append(what)
        print("failed:", what, *facts)


for options in OPTIONS:
    cuda, hip = play("cuda", options), play("hip", options)
    expect("works: " + options, cuda.returncode == 0 and hip.returncode == 0, cuda.stderr[-300:], hip.stderr[-300:])
    different = next(((a, b) for a, b in zip(cuda.stdout.splitlines(), hip.stdout.splitlines()) if a != b), None)
    expect("the same, line for line: " + options, cuda.stdout == hip.stdout and cuda.stdout.count("malloc") > 1000, different)

expect("works: " + THREADED, play("hip", THREADED).returncode == 0)

# The newest release, and one without virtual memory, where pages are refused and everything else works.
expect("ROCm 7", play("hip", "", standins + "/libamdhip64.so.7").returncode == 0)
old = play("hip", "", standins + "/libamdhip64.so.5")
expect("ROCm 5", old.returncode == 0 and "pages of 0, pools 1, files 0" in old.stdout, old.stdout[:200], old.stderr[-300:])

# Without a runtime, its functions, or a device, the program fails with one line.
for what, env, words in (("no runtime", {"VRAM_LIBHIP": "/nowhere/libamdhip64.so"}, "no HIP runtime found: /nowhere/libamdhip64.so"),
                         ("no functions", {"VRAM_LIBHIP": "libm.so.6"}, "the HIP runtime lacks hipInit"),
                         ("no device", {"LD_LIBRARY_PATH": "", "VRAM_SIM": ""}, "hipInit: CUDA_ERROR_NO_DEVICE")):
    done = play("hip", "", **env)
    expect(what, done.returncode != 0 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr)

# Without a named driver, the existing one is used.
env = {**os.environ, "LD_LIBRARY_PATH": simcuda, "VRAM_LIBCUDA": "/nowhere/libcuda.so.1", "VRAM_LIBHIP": standins + "/libamdhip64.so.6", "VRAM_SIM": "device=h100"}
doctor = subprocess.run([vram, "doctor"], env=env, capture_output=True, text=True, timeout=60, check=False)
expect("vram doctor names HIP", "HIP runtime" in doctor.stdout and "HIP 6.3" in doctor.stdout, doctor.stdout[:300])

# A HIP program on the simulated device; without --hip there is no such runtime.
env = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
done = subprocess.run([vram, "sim", "--hip", "--", program], env=env, capture_output=True, text=True, timeout=60, check=False)
expect("vram sim --hip", done.returncode == 0 and "all as it should be" in done.stdout, done.stdout, done.stderr)
done = subprocess.run([vram, "sim", "--", program], env=env, capture_output=True, text=True, timeout=60, check=False)
expect("vram sim without --hip", "no libamdhip64.so.6" in done.stdout, done.stdout)

# Runs the distribution's real runtime, if installed, with or without a device.
real = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"
if os.path.exists(real):
    done = play("hip", "", real)
    print("libamdhip64 of the system:", (done.stderr or done.stdout).splitlines()[:1])
    expect("the system's runtime says what it has", done.returncode == 0 or done.stderr.count("\n") == 1, done.stderr[-300:])
else:
    print("libamdhip64 of the system: not installed")
print("%d wrong" % len(found))
sys.exit(1 if found else 0)
