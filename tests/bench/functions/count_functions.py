"""Counts the functions, and their files, that a call of the allocator enters outside the simulator, and its depth.

    count_functions.py [BUILD_FOLDER]      prints the table; exit code 1 if a row exceeds its limit
    count_functions.py --list CALL         lists the functions of one row in order

The library is built without optimization and with -finstrument-functions, into build/functions, which takes about half a minute of CPU
time. Each function counts once, as it must be read once; `entered` is the number of calls.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
FLAGS = "-O0 -g -gdwarf-4 -finstrument-functions"  # addr2line names wrong files for some inline functions of DWARF 5
OUTSIDE = ("simulator/", "tests/")
LIMITS = {"malloc, best fit": (28, 8), "free with a merge": (25, 8), "malloc, new segment": (110, 20)}  # functions, files


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, cwd=ROOT).stdout


def build(folder):
    run("cmake", "-B", folder, "-S", ROOT, "-DVRAM_TESTS=OFF", "-DVRAM_TOOLS=OFF", "-DVRAM_INSTALL=OFF", "-DCMAKE_BUILD_TYPE=None",
        f"-DCMAKE_C_FLAGS={FLAGS}")
    run("cmake", "--build", folder, "--parallel", "2", "--target", "vram_static", "vram_sim_static")
    includes = [f"-I{ROOT / room}" for room in ("allocator/include", "simulator/include")]
    program = folder / "functions"
    run("gcc", "-std=c11", *FLAGS.split(), "-no-pie", *includes, pathlib.Path(__file__).with_name("functions.c"), folder / "libvram-sim.a",
        folder / "libvram.a", "-lpthread", "-ldl", "-lm", "-o", program)
    return program


def resolve(program, addresses):
    """Returns {address: (function, file)} from the debug information."""
    known = sorted(set(addresses))
    lines = run("addr2line", "-f", "-e", program, *known).splitlines()
    places = {}
    for address, function, place in zip(known, lines[::2], lines[1::2]):
        path = pathlib.Path(os.path.normpath(ROOT / place.rsplit(":", 1)[0]))
        places[address] = (function, str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path))
    return places


def calls_of(program):
    """Returns [(name, [(function, file, depth)])], in the program's order."""
    calls = []
    for line in run(program).splitlines():
        if line.startswith("# "):
            calls.append((line[2:], []))
        else:
            address, depth = line.split()
            calls[-1][1].append((address, int(depth)))
    places = resolve(program, [address for _, entered in calls for address, _ in entered])
    return [(name, [(*places[address], depth) for address, depth in entered]) for name, entered in calls]


def main():
    arguments = sys.argv[1:]
    wanted = arguments.pop(1) if arguments[:1] == ["--list"] else None
    folder = ROOT / "build" / "functions" if wanted or not arguments else pathlib.Path(arguments[0]).resolve()
    far = 0
    print(f"{'call':<40} {'functions':>9} {'files':>6} {'entered':>8} {'depth':>6}")
    for name, entered in calls_of(build(folder)):
        ours = [row for row in entered if not row[1].startswith(OUTSIDE)]
        functions, files = {row[:2] for row in ours}, {row[1] for row in ours}
        most = LIMITS.get(name)
        beyond = most is not None and (len(functions) > most[0] or len(files) > most[1])
        far += beyond
        limit = f"  at most {most[0]} in {most[1]}" if most else ""
        print(f"{name:<40} {len(functions):>9} {len(files):>6} {len(ours):>8} {max(row[2] for row in ours):>6}{limit}")
        if name == wanted:
            for function, file, depth in ours:
                print("  " * depth + f"{function}  {file}")
    return 1 if far else 0


sys.exit(main())
