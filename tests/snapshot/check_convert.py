"""check_convert.py VRAM: tests `vram convert` with names, compression, existing outputs, mistakes, and folders as input."""
import bz2
import copy
import gzip
import json
import lzma
import os
import pickle
import random
import re
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import make_corpus

VRAM = sys.argv.pop(1)
SNAPSHOT = make_corpus.samples()["generation_3"]


def any_value(shuffled, depth):
    """Returns a random value of the types that a pickle can hold without code."""
    leaf = [lambda: shuffled.choice([float("inf"), float("-inf"), float("nan"), -0.0, 1.0, 1e300, 5e-324]), lambda: None,
            lambda: shuffled.choice([True, False]), lambda: shuffled.randint(-2**70, 2**70), lambda: shuffled.randint(-3, 300),
            lambda: bytes(shuffled.randrange(256) for _ in range(shuffled.randrange(4))), lambda: bytearray(b"\0\xff"),
            lambda: shuffled.choice(["", "$", "$tuple", "$dict", "a\0b", "\u20ac\U0001f600", '"\\\n', "size", "\ud800"])]
    if depth == 0 or shuffled.random() < 0.2:
        return shuffled.choice(leaf)()
    def items(make):
        return [make() for _ in range(shuffled.randrange(4))]
    def inner():
        return any_value(shuffled, depth - 1)
    def key():
        return shuffled.choice([lambda: shuffled.choice(["$tuple", "$float", "$dict", "a", "a\0b", ""]), lambda: shuffled.randrange(3),
                                lambda: (1, "x"), lambda: frozenset([2]), lambda: b"k", lambda: 1.5, lambda: None, lambda: True])()
    return shuffled.choice([lambda: items(inner), lambda: tuple(items(inner)), lambda: set(items(key)), lambda: frozenset(items(key)),
                            lambda: dict(zip(items(key), items(inner))), lambda: {"$set": inner()}, lambda: {"n": inner(), "$m": 1},
                            lambda: (shuffled.randrange(300), shuffled.randrange(2**30))])()


def exact(value):
    """Returns a text that is equal for two values only if they are equal by type and value. The order of keys and of sets does not
    count."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join(sorted("%s: %s" % (exact(key), exact(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple, set, frozenset)):
        held = [exact(item) for item in value]
        return "%s(%s)" % (type(value).__name__, ", ".join(held if isinstance(value, (list, tuple)) else sorted(held)))
    return repr(value)


class Convert(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("in.pickle", pickle.dumps(SNAPSHOT))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def vram(self, *arguments, data=None):
        return subprocess.run([VRAM] + list(arguments), cwd=self.folder.name, input=data, capture_output=True, timeout=60)

    def convert(self, *arguments, data=None, tuples=False):
        """`tuples`: the input has tuples other than pool ids, and the output may be JSON, which has no tuples."""
        result = self.vram("convert", *arguments, data=data)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stderr == b"" or (tuples and result.stderr.count(b"\n") == 1 and b": JSON has no tuples; " in result.stderr),
                        result.stderr)
        return result.stdout

    def refused(self, code, message, *arguments, data=None):
        before = {name: self.read(name) for name in os.listdir(self.folder.name) if os.path.isfile(self.path(name))}
        result = self.vram("convert", *arguments, data=data)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(message, result.stderr.decode())
        self.assertEqual(result.stdout, b"")
        after = {name: self.read(name) for name in os.listdir(self.folder.name) if os.path.isfile(self.path(name))}
        self.assertEqual(before, after)

    def test_the_extension_tells_the_format_and_the_compression(self):
        unpack = {"": bytes, ".gz": gzip.decompress, ".xz": lzma.decompress}
        for suffix, function in unpack.items():
            for extension in ("pickle", "pkl"):
                self.convert("in.pickle", "-o", "out." + extension + suffix)
                self.assertEqual(pickle.loads(function(self.read("out." + extension + suffix))), SNAPSHOT)
            self.convert("in.pickle", "-o", "out.json" + suffix)
            self.assertEqual(json.loads(function(self.read("out.json" + suffix))), json.loads(json.dumps(SNAPSHOT)))
        for name in ("out.pickle.zst", "out.vram", "out.vram.zst", "out.json.gz"):
            self.convert("in.pickle", "-o", name)
            self.assertEqual(pickle.loads(self.convert(name, "--to", "pickle")), SNAPSHOT)

    def test_keys_of_the_future_stay(self):
        """Unknown keys keep their values: dicts that look like segments and events, one or several, deep lists, both addresses of an
        event."""
        def nested(levels):
            return [nested(levels - 1)] if levels else 1
        segment, events = copy.deepcopy(SNAPSHOT["segments"][0]), copy.deepcopy(SNAPSHOT["device_traces"][0])
        held = {"segments": [segment, segment], "segment": [segment], "events": events, "event": [events[0]], "lists": [[events[0]]],
                "dict": {"x": 1, "list": events}, "of one": {"list": events}, "mixed": [segment, events[0], {"a": 1}], "deep": nested(70),
                "deeper": nested(400)}
        cases = [dict(copy.deepcopy(SNAPSHOT), **{key: copy.deepcopy(value)}) for key, value in held.items()]
        cases.append(dict(copy.deepcopy(SNAPSHOT), **{key: copy.deepcopy(value) for key, value in held.items()}))
        cases.append(copy.deepcopy(SNAPSHOT))
        cases[-1]["device_traces"][0][0]["deep"] = nested(70)
        cases.append(copy.deepcopy(SNAPSHOT))
        for number, event in enumerate(cases[-1]["device_traces"][0]):
            event.update(addr=event.get("addr", 7), device_free=number)
        for case in cases:
            wanted = json.loads(json.dumps(case))
            for name, data in (("new.json", json.dumps(case).encode()), ("new.pickle", pickle.dumps(copy.deepcopy(case), 4)),
                               ("old.pickle", pickle.dumps(copy.deepcopy(case), 2))):
                self.write(name, data)
                for extension in ("json", "pickle", "vram"):
                    self.convert(name, "-o", "out." + extension, tuples=True)
                    got = json.loads(self.convert("out." + extension, "--to", "json", tuples=True))
                    lost = [key for key in sorted({*got, *wanted}) if got.get(key) != wanted.get(key)]
                    self.assertEqual(lost, [], "%s by way of %s" % (name, extension))

    def test_what_nests_too_deep_is_refused(self):
        deep = b"\x80\x04}(\x8c\x08segments]\x8c\x04deep" + b"]" * 600 + b"a" * 599 + b"u."
        self.refused(3, "nests deeper than 500 levels", "-", "--to", "json", data=deep)

    def test_what_two_keys_share_stays(self):
        """A pickle can refer to a list or dictionary a second time. Both keys keep it, whichever is read first."""
        def with_history():
            case = copy.deepcopy(SNAPSHOT)
            case["segments"][0]["blocks"][0]["history"] = [{"addr": 4096, "real_size": 100, "frames": [], "new": [1]}]
            case["allocator_settings"] = {"a": 1, "b": True}
            case["device_traces"][0][0].update(pool_id=(0, 1), addr=7, device_free=8, new=[1], user_metadata={"k": [2]})
            return case
        def event(case):
            return case["device_traces"][0][0]
        found = {"events": lambda case: case["device_traces"][0], "event": event, "one": lambda case: [event(case)],
                 "segments": lambda case: case["segments"], "segment": lambda case: {"x": case["segments"][0]},
                 "blocks": lambda case: case["segments"][0]["blocks"], "block": lambda case: case["segments"][0]["blocks"][0],
                 "tenants": lambda case: case["segments"][0]["blocks"][0]["history"], "settings": lambda case: case["allocator_settings"],
                 "traces": lambda case: case["device_traces"], "frames": lambda case: event(case).get("frames", []),
                 "new": lambda case: [event(case)["new"], event(case)["user_metadata"]]}
        for name, find in found.items():
            for first in (False, True):
                known = with_history()
                future = {"future": find(known), "another": {"x": find(known)}}
                case = {**future, **known} if first else {**known, **future}
                wanted = json.loads(json.dumps(case))
                for protocol in (0, 2, 4):
                    self.write("shared.pickle", pickle.dumps(case, protocol))
                    got = json.loads(self.convert("shared.pickle", "--to", "json", tuples=True))
                    lost = [key for key in sorted({*got, *wanted}) if got.get(key) != wanted.get(key)]
                    self.assertEqual(lost, [], "%s, %s, protocol %d" % (name, "first" if first else "last", protocol))

    def test_many_keys_of_the_future(self):
        """A value that looks like a row stays the value of its key, however many values are pending."""
        segment, event = SNAPSHOT["segments"][0], SNAPSHOT["device_traces"][0][0]
        for count in (1, 63, 64, 65, 127, 128, 129, 998, 999, 1000, 1001):
            case = {"k%d" % i: i for i in range(count)}
            case.update(a=[event], b=[segment], c=event, d=segment, **SNAPSHOT)
            case.update(e=[event], f=[segment], g=event, h=segment)
            self.write("many.pickle", pickle.dumps(copy.deepcopy(case), 4))
            self.write("many.json", json.dumps(case).encode())
            for name in ("many.pickle", "many.json"):
                self.assertEqual(json.loads(self.convert(name, "--to", "json", tuples=True)), json.loads(json.dumps(case)),
                                 "%s, %d" % (name, count))

    def test_numbers_of_more_than_64_bits(self):
        """Numbers keep every digit, and integers stay integers, where any value is allowed. Where a number has a meaning, one line reports
        the error."""
        numbers = [2**64, 2**64 + 1, -2**63 - 1, -2**64, 2**70 + 1, -2**70 - 1, 10**40 + 7, -10**40, 2**200 - 1, 2**63, -2**63, 2**64 - 1, 0]
        for place in (lambda case: case, lambda case: case["device_traces"][0][0], lambda case: case["segments"][0],
                      lambda case: case.setdefault("allocator_settings", {})):
            case = copy.deepcopy(SNAPSHOT)
            place(case).update(future=numbers, one=2**70 + 1)
            for data in (json.dumps(case).encode(), *(pickle.dumps(case, protocol) for protocol in (0, 2, 4))):
                for extension in ("json", "pickle", "vram"):
                    self.write("big", data)
                    self.convert("big", "-o", "out." + extension)
                    self.assertEqual(json.loads(self.convert("out." + extension, "--to", "json")), json.loads(json.dumps(case)))
                    got = pickle.loads(self.convert("out." + extension, "--to", "pickle"))
                    self.assertEqual([repr(number) for number in place(got)["future"]], [repr(number) for number in numbers])
        for key in ("size", "addr", "stream", "time_us"):
            for number in (2**64, 2**70 + 1, -2**70, 10**300):
                case = copy.deepcopy(SNAPSHOT)
                case["device_traces"][0][0][key] = number
                for data in (json.dumps(case).encode(), *(pickle.dumps(case, protocol) for protocol in (0, 2, 4))):
                    self.refused(3, "`%s` is a number with more than 64 bits; expected a" % key, "-", "--to", "json", data=data)

    def same_or_refused(self, case, what):
        """Converts a pickle to a pickle, directly and by way of .vram. The result is equal by type and value, or the input is rejected with
        a reason."""
        self.write("python.pickle", pickle.dumps(case, 5))
        kept = 0
        for way in (("out.pickle",), ("out.vram", "out.pickle")):
            source = "python.pickle"
            for target in way:
                done = self.vram("convert", source, "-o", target)
                if done.returncode != 0:
                    self.assertEqual((done.returncode, source), (3, "python.pickle"), what)
                    self.assertTrue(done.stderr.startswith(b"vram: python.pickle: ") and done.stderr.count(b"\n") == 1, done.stderr)
                    break
                source = target
            else:
                self.assertEqual(exact(pickle.loads(self.read("out.pickle"))), exact(case), what)
                kept += 1
        return kept

    def test_what_python_alone_has_stays(self):
        """Tuples, sets, bytes, infinities, keys that are not strings: as values of unknown keys, anywhere."""
        shuffled, kept = random.Random(33), 0
        for number in range(150):
            case = copy.deepcopy(SNAPSHOT)
            places = {"top": case, "event": case["device_traces"][0][0], "segment": case["segments"][0],
                      "block": case["segments"][0]["blocks"][0], "settings": case.setdefault("allocator_settings", {})}
            for place in places.values():
                place["zzz"] = any_value(shuffled, 4)
            kept += self.same_or_refused(case, "number %d" % number)
        self.assertEqual(kept, 300)

    def test_what_would_change_is_refused(self):
        """Known keys whose values have unexpected types, and unknown keys."""
        def segment(case):
            return case["segments"][0]
        changes = {
            "a tuple or a set": [lambda case: case.update(segments=tuple(case["segments"])),
                                 lambda case: case.update(device_traces=tuple(case["device_traces"])),
                                 lambda case: case["device_traces"].__setitem__(0, tuple(case["device_traces"][0])),
                                 lambda case: segment(case).update(blocks=tuple(segment(case)["blocks"])),
                                 lambda case: segment(case).update(segment_pool_id={1, 2}),
                                 lambda case: segment(case).update(frames=({"name": "f", "filename": "a.py", "line": 1},)),
                                 lambda case: segment(case).update(frames=())],
            "numbers that are not integers": [lambda case: segment(case).update(segment_pool_id=(True, 0)),
                                              lambda case: segment(case).update(segment_pool_id=[1.0, 0])],
            "a key that is not a string": [lambda case: case.__setitem__(1, 2), lambda case: segment(case).__setitem__(None, 2),
                                        lambda case: case.setdefault("allocator_settings", {}).__setitem__(1, 2)],
            "differ in other keys": [lambda case: segment(case).update(frames=[{"name": "f", "filename": "a.py", "line": 1, "col": col}
                                                                               for col in (1, 2)])]}
        for reason, cases in changes.items():
            for i, change in enumerate(cases):
                case = copy.deepcopy(SNAPSHOT)
                change(case)
                self.write("odd.pickle", pickle.dumps(case, 4))
                self.assertEqual(self.vram("report", "odd.pickle").returncode, 0, "%s, %d" % (reason, i))
                for extension in ("json", "pickle", "vram"):
                    self.refused(3, reason, "odd.pickle", "-o", "out." + extension)
        case = copy.deepcopy(SNAPSHOT)
        segment(case)["segment_pool_id"] = [2**40, 1]
        self.assertEqual(self.same_or_refused(case, "a list of large numbers"), 2)
        segment(case)["segment_pool_id"] = (2**40, 1)
        self.assertEqual(self.same_or_refused(case, "a pair of large numbers"), 2)

    def test_what_json_cannot_say_is_named(self):
        cases = {"tuples; `zzz` is written as a list": ((1, 2), [1, 2]), "sets; `zzz` is": ({1}, [1]),
                 "keys other than strings; those of `zzz`": ({1: 2}, {"1": 2}), "infinity or NaN; `zzz` is written as null": (float("nan"), None),
                 "bytes; `zzz` is written as hexadecimal digits": (b"ab", "6162")}
        for line, (value, wanted) in cases.items():
            self.write("odd.pickle", pickle.dumps(dict(SNAPSHOT, zzz=value), 4))
            done = self.vram("convert", "odd.pickle", "-o", "out.json")
            self.assertEqual((done.returncode, done.stderr.count(b"\n")), (0, 1))
            self.assertIn(line, done.stderr.decode())
            self.assertEqual(json.loads(self.read("out.json"))["zzz"], wanted)
        self.assertEqual(self.vram("convert", "in.pickle", "-o", "out.json").stderr, b"")

    def test_what_python_writes_is_read(self):
        """However many rows one byte of the file makes: each event has its own frame, annotations have two keys, events two."""
        def case(events, annotations=()):
            return {"segments": [], "device_traces": [events], "allocator_settings": {}, "external_annotations": list(annotations)}
        event = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 1}
        few = [{"action": "alloc", "addr": 1}]
        cases = {"sites": case([dict(event, frames=[{"filename": "train.py", "line": i, "name": "f%d" % i}]) for i in range(60000)]),
                 "annotations": case(few, [{"name": "%x" % i, "time_us": 1} for i in range(60000)]),
                 "small": case([{"action": "alloc", "addr": i & 255} for i in range(60000)])}
        for name, recording in cases.items():
            for protocol in (2, 4, 5):
                self.write("valid.pickle", pickle.dumps(recording, protocol))
                self.convert("valid.pickle", "-o", "valid.vram")
            self.assertEqual(pickle.loads(self.convert("valid.vram", "--to", "pickle")), recording, name)

    def test_text_that_is_much_is_announced(self):
        """A pickle refers to a stack that JSON repeats: 20,000 events with 2,000 frames each make 3 GB, with 100 frames a hundred MB."""
        def case(frames):
            stack = [{"filename": "a.py", "line": i, "name": "f"} for i in range(frames)]
            return {"segments": [], "device_traces": [[{"action": "alloc", "addr": i, "size": 1, "stream": 0, "frames": stack}
                                                       for i in range(20000)]]}
        self.write("bomb.pickle", pickle.dumps(case(4000), 4))
        for name, form in (("out.json", "json"), ("out.events.csv", "events")):
            self.refused(3, "as %s it would be about" % form, "bomb.pickle", "-o", name)
        self.convert("bomb.pickle", "-o", "out.vram")
        self.write("long.pickle", pickle.dumps(case(150), 4))
        done = self.vram("convert", "long.pickle", "-o", "out.json")
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (0, 1))
        told = re.search(rb"as json it will be about (\S+) MiB, [0-9]+ times the input", done.stderr)
        self.assertTrue(0.7 < float(told.group(1)) * 2**20 / os.path.getsize(self.path("out.json")) < 1.4, done.stderr)

    def test_what_is_too_much_is_refused(self):
        """A value with 8 ** 12 strings in 2 KB: reports omit it, and no conversion drops it silently."""
        value = ["a" * 1000]
        for _ in range(12):
            value = [value] * 8
        self.write("bomb.pickle", pickle.dumps(dict(SNAPSHOT, future=value), 4))
        self.assertEqual(self.vram("report", "bomb.pickle").returncode, 0)
        for extension in ("json", "pickle", "vram"):
            self.refused(3, "the value of `future` was not read", "bomb.pickle", "-o", "out." + extension)

    def test_a_folder_is_read_past_pipes_and_sockets(self):
        """Opening one would block: a user with write access to a folder could stop all reports of it."""
        os.mkdir(self.path("job"))
        os.rename(self.path("in.pickle"), self.path("job/a.pickle"))
        os.mkfifo(self.path("job/b.pickle"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path("job/c.vram"))
            done = self.vram("report", "job")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stderr.decode().splitlines()),
                         ["vram: job/%s: not a regular file; skipped" % name for name in ("b.pickle", "c.vram")])
        for command in ("export", "top"):
            done = self.vram(command, "job/b.pickle")
            self.assertEqual(done.returncode, 3)
            self.assertIn(b"not a regular file", done.stderr)

    def test_pipes(self):
        for arguments in (("--to", "json"), ("-o", "-", "--to", "json")):
            self.assertEqual(json.loads(self.convert("-", *arguments, data=self.read("in.pickle"))), json.loads(json.dumps(SNAPSHOT)))
        lines = self.convert("in.pickle", "--to", "json", "--pretty").decode().splitlines()
        self.assertEqual(sum(line.strip().startswith('{"action":') for line in lines), sum(map(len, SNAPSHOT["device_traces"])))

    def test_format_by_name_goes_before_the_extension(self):
        self.convert("in.pickle", "-o", "out.pickle", "--to", "json")
        json.loads(self.read("out.pickle"))

    def test_outputs_are_replaced_as_a_whole(self):
        self.write("out.json", b"old")
        os.chmod(self.path("out.json"), 0o640)
        os.symlink("out.json", self.path("link.json"))
        self.convert("in.pickle", "-o", "link.json")
        self.assertTrue(os.path.islink(self.path("link.json")))
        self.assertEqual(json.loads(self.read("out.json")), json.loads(json.dumps(SNAPSHOT)))
        self.assertEqual(os.stat(self.path("out.json")).st_mode & 0o777, 0o640)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["in.pickle", "link.json", "out.json"])

    def test_outputs_are_this_users_alone(self):
        self.convert("in.pickle", "-o", "new.json")
        self.assertEqual(os.stat(self.path("new.json")).st_mode & 0o777, 0o600)
        if os.geteuid() != 0:
            return
        # A link planted by another user is not followed, and its target's permissions are not copied.
        self.write("mine.json", b"mine")
        os.symlink("mine.json", self.path("planted.json"))
        os.chown(self.path("planted.json"), 65534, 65534, follow_symlinks=False)
        self.refused(3, "planted.json: cannot write", "in.pickle", "-o", "planted.json")
        self.write("open.json", b"")
        os.chmod(self.path("open.json"), 0o666)
        os.chown(self.path("open.json"), 65534, 65534)
        self.convert("in.pickle", "-o", "open.json")
        self.assertEqual(os.stat(self.path("open.json")).st_mode & 0o777, 0o600)

    def test_mistakes_change_nothing(self):
        self.write("out.json", b"old")
        self.write("cut.pickle", self.read("in.pickle")[:-5])
        os.link(self.path("in.pickle"), self.path("same.pickle"))
        os.mkdir(self.path("folder.json"))
        self.refused(2, "would replace the input", "in.pickle", "-o", "in.pickle")
        self.refused(2, "would replace the input", "in.pickle", "-o", "same.pickle")
        self.refused(3, "cut short", "cut.pickle", "-o", "out.json")
        self.refused(3, "No such file", "absent.pickle", "-o", "out.json")
        self.refused(3, "absent/out.json: cannot write: No such file", "in.pickle", "-o", "absent/out.json")
        self.refused(3, "Is a directory", "in.pickle", "-o", "folder.json")
        self.refused(2, "cannot infer a format from", "in.pickle", "-o", "out.xyz")
        self.refused(2, "cannot infer a format from", "in.pickle", "-o", "out.gz")
        self.refused(2, "cannot infer the format of standard output", "in.pickle", "-o", "-")
        self.refused(2, "did you mean 'pickle'", "in.pickle", "-o", "out", "--to", "pickel")
        self.refused(2, "is required", "in.pickle")
        self.refused(3, "not a recording but compressed with bzip2", "-", "-o", "out.json", data=bz2.compress(b"x"))
        if os.path.exists("/dev/full"):
            self.refused(3, "No space left", "in.pickle", "-o", "/dev/full", "--to", "json")

    def test_a_folder_is_its_recordings(self):
        os.mkdir(self.path("job"))
        os.mkdir(self.path("job/folder.json"))
        for name in ("rank10.pickle", "rank2.pickle", "rank1.pickle", "notes.txt", ".hidden.pickle"):
            self.write("job/" + name, self.read("in.pickle"))
        self.convert("in.pickle", "-o", "job/rank3.vram")
        self.convert("in.pickle", "-o", "job/rank02.json.gz")
        found = json.loads(self.vram("report", "--json", "job").stdout)
        self.assertEqual([report["file"] for report in found], ["rank1.pickle", "rank02.json.gz", "rank2.pickle", "rank3.vram", "rank10.pickle"])
        os.mkdir(self.path("empty"))
        self.assertIn(b"holds no recording", self.vram("report", "empty").stderr)
        self.write("one.pickle", self.read("in.pickle"))
        os.mkdir(self.path("single"))
        self.write("single/x.pickle", self.read("in.pickle"))
        self.assertIsInstance(json.loads(self.vram("report", "--json", "single/").stdout), list)
        self.assertIsInstance(json.loads(self.vram("report", "--json", "one.pickle").stdout), dict)


if __name__ == "__main__":
    unittest.main()
