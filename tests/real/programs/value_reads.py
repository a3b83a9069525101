"""Checks where a program reads memory that only a kernel would have written: value_reads.py VRAM [NAME...] runs each program of values.py under
`vram sim --reads`, which must list exactly the lines marked there."""
import pathlib
import re
import subprocess
import sys

VALUES = pathlib.Path(__file__).with_name("values.py")


def programs():
    """Returns {name: marked lines}, in the order of the file."""
    found, name = {}, None
    for number, line in enumerate(VALUES.read_text().splitlines(), 1):
        if match := re.match(r"def (\w+)\(", line):
            name = match.group(1)
            found[name] = set()
        elif name and line.endswith("# read"):
            found[name].add(number)
    listed = re.findall(r"^BY_\w+ = \[(.*)\]", VALUES.read_text(), re.M)
    return {name: found[name] for line in listed for name in line.split(", ")}


def places(vram, name):
    """Returns the innermost line of values.py in each place of the list, and the number of places without one."""
    run = subprocess.run([vram, "sim", "--reads", "--", sys.executable, VALUES, name], capture_output=True, text=True)
    if run.returncode != 0 or "ok" not in run.stdout.split():
        return None, run.stderr.strip().splitlines()[-1:]
    listed, without = set(), 0
    for place in re.split(r"\n  (?=\d+ reads?\b)", run.stderr.partition("reads that differ")[2])[1:]:
        lines = re.findall(r"values\.py:(\d+)", place)
        listed |= {int(lines[0])} if lines else set()
        without += not lines
    return listed, without


def main():
    vram, names = sys.argv[1], sys.argv[2:]
    wrong = 0
    for name, marked in programs().items():
        if names and name not in names:
            continue
        listed, without = places(vram, name)
        right = listed == marked and without == 0
        wrong += not right
        print(f"{'right' if right else 'WRONG'}  {name}: marked {sorted(marked)}, listed {sorted(listed) if listed is not None else 'nothing'}, without a line {without}", flush=True)
    if not wrong:
        print("ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
