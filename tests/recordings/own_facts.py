#!/usr/bin/env python3
"""Records a program with its own history. `vram report` must agree with the reference program about the file, and it must replay exactly.

usage: own_facts.py VRAM TRAIN_SIM
Exit 0 if all agree, 1 if something differs.
"""
import json
import os
import subprocess
import sys
import tempfile

from check_facts import FILE_KEYS, differences


def main(vram, program):
    reference = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay_reference.py")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "own.pickle")
        settings = dict(os.environ, VRAM_HISTORY=f"all,stacks=c,dump={path}")
        subprocess.run([program], env=settings, stdout=subprocess.DEVNULL, check=True)
        facts = json.loads(subprocess.run([sys.executable, reference, path], stdout=subprocess.PIPE, check=True).stdout)
        report = json.loads(subprocess.run([vram, "report", "--json", "--plain-sites", path], stdout=subprocess.PIPE, check=True).stdout)
        replay = subprocess.run([vram, "replay", "--exact", path], stdout=subprocess.PIPE)
    found = list(differences(facts["devices"], report["devices"], "devices"))
    for key in FILE_KEYS:
        if key in facts and key in report and key != "file":
            found += differences(facts[key], report[key], key)
    for line in found[:20]:
        print(line)
    print(replay.stdout.decode())
    return 1 if found or replay.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
