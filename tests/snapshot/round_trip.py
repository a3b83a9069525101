"""round_trip.py REWRITE [FILE...]: written files have the same values and types as the files that were read, as Python loads them.

Every file is written as a pickle, as JSON, and by way of JSON as a pickle again (and as .vram, if REWRITE can), and loaded with Python's
pickle and json. Pickles are also read by a stricter version of the interpreter in PyTorch's own viewer, which knows few opcodes. Without
files: small snapshots made here, in every encoding.
"""
import glob
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import tempfile
from base64 import b64decode

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import make_corpus
import viewer_pickle

SMALL_BYTES = 700_000  # up to this size, all conversions are compared
PICKLE, JSON, ROWS, VRAM = "0", "1", "2", "3"


def load(data):
    if data[:1] == b"\x80":
        return pickle.loads(data)
    match = re.search(rb'"base64"\s*:\s*"([^"]+)"', data)
    return pickle.loads(b64decode(match.group(1))) if match else json.loads(data.decode("utf-8-sig"))


def is_json(data):
    return data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def listed(value):
    """Replaces tuples by lists and keys by strings, as JSON does."""
    if isinstance(value, dict):
        return {str(key): listed(item) for key, item in value.items()}
    return [listed(item) for item in value] if isinstance(value, (list, tuple)) else value


def paired(value):
    """Replaces pool ids by pairs, PyTorch's own type, which JSON lacks."""
    if isinstance(value, dict):
        return {key: tuple(item) if key in ("pool_id", "segment_pool_id") and isinstance(item, list) and len(item) == 2 else paired(item)
                for key, item in value.items()}
    return [paired(item) for item in value] if isinstance(value, list) else value


def difference(ours, theirs, path=""):
    """Returns where two values differ, by type or value, or None. Equal parts that are the same objects are compared once."""
    seen, work = set(), [(ours, theirs, path)]
    while work:
        a, b, place = work.pop()
        if type(a) is not type(b):
            return "%s: %.80r (%s), not %.80r (%s)" % (place, a, type(a).__name__, b, type(b).__name__)
        if isinstance(b, (dict, list, tuple)):
            if (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            if isinstance(b, dict):
                if a.keys() != b.keys():
                    return "%s: keys %s, not %s" % (place, sorted(map(str, a)), sorted(map(str, b)))
                work += [(a[key], b[key], "%s/%s" % (place, key)) for key in b]
            else:
                if len(a) != len(b):
                    return "%s: %d items, not %d" % (place, len(a), len(b))
                work += [(x, y, "%s/%d" % (place, index)) for index, (x, y) in enumerate(zip(a, b))]
        elif a != b:
            return "%s: %.80r, not %.80r" % (place, a, b)
    return None


class Failed(Exception):
    pass


def rewrite(program, form, source, target):
    result = subprocess.run([program, form, source, target], capture_output=True, text=True)
    if result.returncode != 0:
        raise Failed("not rewritten as %s: %s" % (form, result.stderr.strip()))
    with open(target, "rb") as file:
        return file.read()


def same(what, ours, theirs):
    found = difference(ours, theirs)
    if found:
        raise Failed("%s: %s" % (what, found))


def same_pickle(what, made, known, wanted):
    """Skips bytes that were already compared, because Python makes gigabytes of objects from a long history."""
    if made != known:
        same(what, pickle.loads(made), wanted)


def check(program, data, folder, has_vram):
    paths = {name: os.path.join(folder, name) for name in ("in", "pickle", "json", "rows", "vram", "again")}
    with open(paths["in"], "wb") as file:
        file.write(data)
    original = load(data)
    is_small = len(data) < SMALL_BYTES
    wanted = paired(original) if is_json(data) else original
    made = rewrite(program, PICKLE, paths["in"], paths["pickle"])
    same("pickle", pickle.loads(made), wanted)
    same("viewer", viewer_pickle.load(made), wanted)
    strict = {"parse_constant": lambda word: (_ for _ in ()).throw(Failed("the JSON has %s" % word))}
    for form, name in ((JSON, "json"), (ROWS, "rows"))[:2 if is_small else 1]:
        text = rewrite(program, form, paths["in"], paths[name])
        # Only for a small file: Python makes gigabytes of objects from a long history.
        found = json.loads(text.decode("ascii"), **strict) if is_small else None
        if isinstance(found, dict):
            found.pop("vram_pool_id_lists", None)
        if is_small:
            same(name, found, listed(original))
        same_pickle("%s to pickle" % name, rewrite(program, PICKLE, paths[name], paths["again"]), made, wanted)
    if has_vram:
        rewrite(program, VRAM, paths["in"], paths["vram"])
        same_pickle(".vram to pickle", rewrite(program, PICKLE, paths["vram"], paths["again"]), made, wanted)


def failure_of(task):
    """Returns the difference in one file, or ""."""
    program, name, data, has_vram = task
    if data is None:
        with open(name, "rb") as file:
            data = file.read()
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(program, data, folder, has_vram)
        except (Failed, viewer_pickle.Refused) as failure:
            return "%s: %s" % (os.path.basename(name), failure)
    return ""


def main():
    program, files = sys.argv[1], [file for name in sys.argv[2:] for file in (sorted(glob.glob(name + "/snapshots/*")) or [name])]
    cases = []
    for name, snapshot in {**make_corpus.samples(), **make_corpus.odd_samples()}.items() if not files else ():
        cases += [("%s.%s" % (name, suffix), data) for suffix, data in make_corpus.encodings(snapshot).items()]
    with tempfile.TemporaryDirectory() as folder:
        small = os.path.join(folder, "small")
        with open(small, "wb") as file:
            file.write(pickle.dumps({"segments": []}))
        has_vram = subprocess.run([program, VRAM, small, small + ".vram"], capture_output=True).returncode == 0
    # Longest first, so that no process still has one at the end.
    tasks = [(program, path, None, has_vram) for path in sorted(files, key=os.path.getsize, reverse=True)]
    tasks += [(program, name, data, has_vram) for name, data in cases]
    with multiprocessing.Pool() as pool:
        failures = [failure for failure in pool.imap_unordered(failure_of, tasks, 1) if failure]
    print("\n".join(failures + ["%d files written%s, %d differ" % (len(cases or files), "" if has_vram else " (not as .vram)", len(failures))]))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
