"""Judges `vram leaks --serving` on simulated days of three servers (server_day.c): seeded leaks of 1 MiB an hour, and days without a leak.

    check_server_days.py VRAM SERVER_DAY [LEAKS CLEAN [REQUESTS [FIRST_SEED]]]   without numbers: a small set; --table prints each kind of leak

`vram top` must name the same call sites. A day with a leak is right if its line is named as a leak; a clean day if no line is.
"""
import concurrent.futures
import json
import os
import resource
import subprocess
import sys
import tempfile

SMALL = (6, 4, 20000, 1)
LEAST_FOUND = 28 / 30  # of the leaks
MOST_ALARMS = 1 / 100  # of the clean days, rounded down
KINDS = ("none", "own line", "request's line", "errors only", "long prompts only", "periodic work", "entries evicted", "sessions")
ENGINES = ("vLLM", "SGLang", "llama.cpp")


def judge(vram, server_day, folder, engine, seed, leak, requests):
    path = os.path.join(folder, f"{leak}-{engine}-{seed}.vram")
    made = subprocess.run([server_day, path, f"engine={engine}", f"seed={seed}", f"leak={leak}", f"requests={requests}"], capture_output=True, check=True)
    ran = subprocess.run([vram, "leaks", "--serving", "--json", "-n", "100", path], capture_output=True, timeout=300)
    top = subprocess.run([vram, "top", "--json", path], capture_output=True, check=True, timeout=300)
    os.unlink(path)
    answer, truth = json.loads(ran.stdout), json.loads(made.stdout)["leak"]
    named = [group for group in answer["groups"] if group["verdict"] == "leak"]
    if ran.returncode != (1 if named else 0) or answer["leaks"] != len(named) or (answer["answer"] == "leak") != bool(named):
        raise AssertionError(f"exit code {ran.returncode}, {answer['leaks']} leaks, answer {answer['answer']}, {len(named)} groups leak")
    sites = [group["name"] for group in named if group["by"] == "site"][:3]
    watched = [leak["label"].replace(" ", ":") for leak in json.loads(top.stdout)["leaks"]]
    if watched != sites:
        raise AssertionError(f"vram top names {watched}, vram leaks {sites}")
    return truth, [group for group in named if truth and group["name"] == truth["site"]], [group for group in named if not truth or group["name"] != truth["site"]]


def show(counts, title, names):
    print(f"{title}:")
    for name, (days, found, sure, wrong) in counts.items():
        print(f"  {names[name]}: {found} of {days} found, {sure} of them sure; {wrong} days name another line")


def main():
    table = "--table" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--table"]
    vram, server_day = words[0], words[1]
    leaks, clean, requests, first = [int(word) for word in words[2:]] + list(SMALL[len(words) - 2:])
    days = [(i % 3, first + i, 0) for i in range(clean)] + [(i % 3, first + 1000000 + i, 1 + i % 7) for i in range(leaks)]
    kinds, engines, wrong_days, found_days = {}, {}, 0, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda day: (day, judge(vram, server_day, folder, *day, requests)), days)
        for (engine, seed, leak), (truth, right, wrong) in results:
            for counts, key in ((kinds, leak), (engines, engine)):
                row = counts.setdefault(key, [0, 0, 0, 0])
                row[0] += 1
                row[1] += bool(right)
                row[2] += any(group["sure"] for group in right)
                row[3] += bool(wrong)
            found_days += bool(right)
            wrong_days += bool(wrong) and not truth
            for group in wrong:
                print(f"wrong: {ENGINES[engine]}, seed {seed}, leak {leak}: {group['name']}: {group['reason']}")
            if truth and not right:
                print(f"missed: {ENGINES[engine]}, seed {seed}: {truth}")
    if table:
        show(kinds, "by kind", KINDS)
        show(engines, "by engine", ENGINES)
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{found_days} of {leaks} leaks found; {wrong_days} of {clean} clean days raise an alarm; at most {megabytes:.0f} MiB of memory")
    return 0 if found_days >= int(LEAST_FOUND * leaks) and wrong_days <= int(MOST_ALARMS * clean) else 1


if __name__ == "__main__":
    sys.exit(main())
