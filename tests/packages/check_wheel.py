#!/usr/bin/env python3
"""Installs the wheels into fresh virtual environments and uses them.

usage: check_wheel.py native|frames|portable VRAM PACKAGES [PYTHON]   (PACKAGES: the folder with vram-*.whl; skipped (77) if something is missing)
native: the wheel for Linux without other packages. frames: with NumPy, pyarrow, pandas and polars. portable: the wheel without native code, with those
packages and wasmtime. The last two get packages from PyPI, if it can be reached. PYTHON: another one, on musl and without pip; the wheel and wasmtime
are unpacked for it."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OOM = os.path.join(ROOT, "examples", "recordings", "oom.pickle.gz")
FRAMES = ["numpy", "pyarrow", "pandas", "polars"]
MOST_GLIBC = (2, 28)


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def run(*words, **more):
    env = {**os.environ, "LC_ALL": "C"}
    env.pop("PYTHONPATH", None)
    return subprocess.run([str(word) for word in words], capture_output=True, env=env, timeout=500, check=False, **more)


def install(wheel, folder, packages):
    """Makes a fresh environment. Returns its folder of programs."""
    if run(sys.executable, "-m", "venv", folder).returncode != 0:
        skip("no environment can be made (python3-venv)")
    pip = [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if packages and run(*pip, *packages).returncode != 0:
        skip("PyPI cannot be reached for " + " ".join(packages))
    done = run(*pip, "--no-index", "--no-deps", wheel)
    assert done.returncode == 0, done.stderr
    return os.path.join(folder, "bin")


def unpack(python, wheel, folder):
    """Like install(), for a Python without pip and with another C library."""
    site, programs = os.path.join(folder, "site"), os.path.join(folder, "bin")
    done = run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", folder, "--platform",
               "musllinux_1_2_" + os.uname().machine, "--only-binary=:all:", "wasmtime")
    if done.returncode != 0:
        skip("PyPI cannot be reached for wasmtime")
    for path in [wheel, *glob.glob(os.path.join(folder, "wasmtime-*.whl"))]:
        zipfile.ZipFile(path).extractall(site)
    os.mkdir(programs)
    for name, words in (("python", ""), ("vram", "-m vram")):
        with open(os.path.join(programs, name), "w") as file:
            file.write('#!/bin/sh\nPYTHONPATH="%s" exec "%s" %s "$@"\n' % (site, python, words))
        os.chmod(file.name, 0o755)
    return programs


def check_symbols(folder):
    """Checks that the libraries need no C library newer than glibc 2.28, and do not contain the folder they were built in."""
    found, seen = [], 0
    for path in glob.glob(os.path.join(folder, "lib", "python*", "site-packages", "vram", "_native", "**"), recursive=True):
        with open(path, "rb") if os.path.isfile(path) else open(os.devnull, "rb") as file:
            content = file.read()
        # The same commit gives the same bytes, in any folder.
        if ROOT.encode() + b"/" in content:
            found.append("%s names the folder that it was built in" % os.path.basename(path))
        if content[:4] != b"\x7fELF":
            continue
        seen += 1
        for line in run("objdump", "-T", path).stdout.decode().splitlines():
            for word in line.split():
                version = word.strip("()")
                if version.startswith("GLIBC_") and version[6:].replace(".", "").isdigit() and tuple(map(int, version[6:].split("."))) > MOST_GLIBC:
                    found.append("%s: %s" % (os.path.basename(path), line.strip()))
    print("%d programs and libraries, none younger than glibc %d.%d" % (seen, *MOST_GLIBC) if not found else "too young, or built where they say")
    return found + ([] if seen > 20 else ["only %d programs and libraries" % seen])


def first_difference(got, want):
    """Describes where two outputs begin to differ, with a little of both from there on."""
    place = next((i for i in range(min(len(got), len(want))) if got[i] != want[i]), min(len(got), len(want)))
    return "byte %d of %d: %r, not %r" % (place, len(got), got[max(place - 20, 0):place + 40], want[max(place - 20, 0):place + 40])


def same(found, what, got, want):
    """Returns one line if they differ. An answer is an output, or (code, output, errors)."""
    if got == want:
        return
    if isinstance(got, bytes):
        found.append("%s: %s" % (what, first_difference(got, want)))
        return
    for part, one, other in zip(("code", "output", "errors"), got, want):
        if one != other:
            found.append("%s: %s: %s" % (what, part, first_difference(one, other) if isinstance(one, bytes) else "%r, not %r" % (one, other)))
            return


def check_command(native, programs, work):
    found, ours = [], os.path.join(programs, "vram")
    for words in (["report", OOM], ["report", "--json", OOM], ["view", OOM, "-o", "-"], ["flame", OOM, "-o", "-"], ["report", "absent.pickle"], ["reprot"]):
        want, got = run(native, *words, cwd=work), run(ours, *words, cwd=work)
        same(found, "vram " + words[0], (got.returncode, got.stdout, got.stderr), (want.returncode, want.stdout, want.stderr))
    return found


def check_names(kind, native, programs, work):
    """Checks names with spaces and non-English letters, standard input, and bytes that are not text."""
    found, ours, folder = [], os.path.join(programs, "vram"), os.path.join(work, "two words", "Zoë 雪 ☃")
    os.makedirs(folder)
    shutil.copy(OOM, os.path.join(folder, "rank 0.pickle.gz"))
    odd = os.fsencode(work) + b"/caf\xe9.pickle.gz"
    shutil.copy(OOM, odd)
    environment = {**os.environb, b"LC_ALL": b"C.UTF-8", b"ODD": b"\xff\xe9"}
    environment.pop(b"PYTHONPATH", None)

    def both(*words, **more):
        return [subprocess.run([program, *words], capture_output=True, env=environment, cwd=work, timeout=500, check=False, **more) for program in (native, ours)]

    for words in (["report", folder + "/rank 0.pickle.gz"], ["report", "two words/Zoë 雪 ☃"], ["report", "two words/Zoë 雪 ☃/absent 雪.pickle"]):
        want, got = both(*words)
        same(found, " ".join(words), (got.returncode, got.stdout, got.stderr), (want.returncode, want.stdout, want.stderr))
    with open(OOM, "rb") as file:
        data = file.read()
    want, got = both("report", "-", input=data)
    same(found, "report -", (got.returncode, got.stdout, got.stderr), (want.returncode, want.stdout, want.stderr))
    want, got = both("report", odd)
    if kind == "portable":
        same(found, "a name that is no text", (got.returncode, got.stdout, got.stderr.count(b"\n"), b"is not UTF-8" in got.stderr), (3, b"", 1, True))
    else:
        same(found, "a name that is no text", (got.returncode, got.stdout), (want.returncode, want.stdout))
    return found


def check_module(native, programs, work, packages):
    run(native, "convert", OOM, "-o", "all.events.csv", cwd=work)
    run(native, "convert", OOM, "-o", "plain.pickle", cwd=work)
    done = run(os.path.join(programs, "python"), os.path.join(HERE, "use_module.py"), OOM, "plain.pickle", "all.events.csv", *packages, cwd=work)
    print(done.stdout.decode()[-1500:])
    return [] if done.returncode == 0 else ["use_module.py: " + done.stderr.decode()[-2000:]]


# A program with one allocation, which it frees.
ALLOCATES = """import ctypes
cuda, context, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
called = [cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0), cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(3 << 20)), cuda.cuMemFree_v2(address)]
print(called)
"""


def check_recorder(programs, work):
    """Checks `vram run`, with and without its cache."""
    found, command, python = [], os.path.join(programs, "vram"), os.path.join(programs, "python")
    for name, options in (("vram run", []), ("vram run --cache", ["--cache"])):
        made = os.path.join(work, name.replace(" ", "") + ".vram")
        done = run(command, "sim", "--", command, "run", *options, "-o", made, "--", python, "-c", ALLOCATES, cwd=work)
        same(found, name, (done.returncode, done.stdout.strip()), (0, b"[0, 0, 0, 0]"))
        report = run(command, "report", made, cwd=work)
        if b"3.0 MiB" not in report.stdout:
            found.append("%s: the allocation is not in the recording: %r" % (name, (done.stderr[-300:], report.stderr[-200:])))
    return found


def check_native_parts(programs):
    """Checks what only the wheel for Linux has: the simulated driver and the adapters' folder."""
    found, python = [], os.path.join(programs, "python")
    asks = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); c.cuInit(0); c.cuDeviceGetCount(ctypes.byref(n)); print(n.value)"
    same(found, "vram sim", run(os.path.join(programs, "vram"), "sim", "--card", "h100", "--", python, "-c", asks).stdout.strip(), b"1")
    asks = "import vram; mine = vram.allocator(); print(mine.size_of(mine.malloc(1 << 20)))"
    same(found, "vram.allocator()", run(os.path.join(programs, "vram"), "sim", "--", python, "-c", asks).stdout.strip(), b"1048576")
    place = "import importlib.util as u, os; p = u.find_spec('vram_torch').origin; print(os.path.exists(os.path.join(os.path.dirname(p), 'libvram_torch.so')))"
    same(found, "vram_torch", run(python, "-c", place).stdout.strip(), b"True")
    return found


def main():
    kind, native, packages = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3]
    wheels = glob.glob(os.path.join(packages, "vram-*-none-any.whl" if kind == "portable" else "vram-*manylinux*%s.whl" % os.uname().machine))
    if not wheels:
        skip("no wheel (make wheel builds it)")
    python = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else None
    others = [] if kind == "native" or python else FRAMES + (["wasmtime"] if kind == "portable" else [])
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as work:
        if kind != "frames":
            # Like a user who has nothing installed: only what the wheel itself needs.
            begun = time.time()
            first = unpack(python, wheels[0], folder) if python else install(
                wheels[0], os.path.join(folder, "first"), ["wasmtime"] if kind == "portable" else [])
            assert run(os.path.join(first, "vram"), "report", OOM).returncode == 0
            print("from nothing to the first answer: %.1f s" % (time.time() - begun))
        programs = install(wheels[0], os.path.join(folder, "env"), others) if others else first
        found = check_module(native, programs, work, others)
        if kind != "frames":
            found += check_command(native, programs, work) + check_names(kind, native, programs, work)
        if kind == "native":
            found += check_symbols(os.path.join(folder, "first")) + check_native_parts(programs) + check_recorder(programs, work)
    for problem in found:
        print(problem)
    print("%d wrong" % len(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
