#!/usr/bin/env python3
"""Compares options that change what is counted or shown with the answer without them. Usage: check_choices.py VRAM EXAMPLE LIBRARY NM OBJCOPY
EXAMPLE is a recording that releases memory meanwhile; LIBRARY a shared library with debug information, whose functions are named.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

VRAM, EXAMPLE, LIBRARY, NM, OBJCOPY = sys.argv[1:6]
MIB = 1 << 20


def run(*words):
    result = subprocess.run([VRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode in (0, 1), (words, result.returncode, result.stderr)
    return result.stdout


def event(action, address, size, time, frames=()):
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time,
            "frames": [{"filename": file, "line": 1, "name": name} for file, name in frames]}


def waiting():
    """A freed block of 8 MiB waits for another stream while one of 4 MiB is live. Both come from the same line, through torch."""
    stack = [("/x/torch/nn/functional.py", "linear"), ("/home/me/model.py", "forward"), ("/home/me/train.py", "main")]
    return {"segments": [], "device_traces": [[event("alloc", 0, 8 * MIB, 1, stack), event("free_requested", 0, 8 * MIB, 2, stack),
                                               event("alloc", 16 * MIB, 4 * MIB, 3, stack), event("free_completed", 0, 8 * MIB, 4, stack),
                                               event("alloc", 32 * MIB, MIB, 5, stack)]]}


def leaking(names):
    """Steps that begin at marks with each of the names, one every time unit; every step leaves a block."""
    events, marks = [], []
    for step in range(8):
        events += [event("alloc", (2 * step) * MIB, MIB, 10 * step + 1), event("alloc", 100 * MIB, MIB, 10 * step + 2), event("free_completed", 100 * MIB, MIB, 10 * step + 3)]
        marks += [{"device": 0, "name": name, "stage": stage, "time_us": 10 * step + time} for name in names for stage, time in (("START", 0), ("END", 8))]
    return {"segments": [], "device_traces": [events], "external_annotations": marks}


class Choices(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, name, recording):
        path = self.folder / name
        path.write_text(json.dumps(recording))
        return path

    def test_active_counts_memory_that_waits(self):
        path = self.put("waiting.json", waiting())
        held = [json.loads(run("report", "--site", "--json", *more, path))["groups"][0]["bytes"] for more in ((), ("--active",))]
        self.assertEqual(held, [8 * MIB, 12 * MIB])
        for command in (("flame", "-o", "-", path), ("diff", "--json", path, path)):
            self.assertNotEqual(run(*command), run(*command[:1], "--active", *command[1:]), command)

    def test_frames_of_a_flame_graph(self):
        path = self.put("waiting.json", waiting())
        out = self.folder / "flame.folded"
        lines = []
        for more in ((), ("--all-frames",), ("--bottom-up",)):
            run("flame", *more, "-o", out, path)
            lines.append(out.read_text().splitlines()[0].rsplit(" ", 1)[0].split(";"))
        usual, every, upside_down = lines
        self.assertEqual([any("linear" in frame for frame in frames) for frames in (usual, every)], [False, True])
        self.assertEqual(upside_down, usual[::-1])

    def test_releases_are_left_out(self):
        answers = [json.loads(run("replay", "--json", *more, EXAMPLE)) for more in ((), ("--ignore-releases",))]
        self.assertNotEqual(*[re.sub(r'"(file)": "[^"]*"', "", json.dumps(answer)) for answer in answers])

    def test_steps_by_name(self):
        path = self.put("leaking.json", leaking(["train", "other"]))
        for name in ("train", "other"):
            answer = json.loads(run("leaks", "--json", "--step", name, path))
            self.assertEqual((answer["step_name"], answer["leaks"]), (name, 1), answer["text"])
        self.assertEqual(json.loads(run("leaks", "--json", "--step", "none", path))["answer"], "no_steps")

    def named(self, module, *options):
        """Returns the frame that `vram symbolize` makes for the library's vram_version()."""
        table = subprocess.run([NM, LIBRARY], capture_output=True, text=True, check=True).stdout
        offset = int(re.search(r"^([0-9a-f]+) T vram_version$", table, re.M).group(1), 16) + 1  # as a return address, which is named by the preceding byte
        build_id = re.search(r"Build ID: ([0-9a-f]+)", subprocess.run(["readelf", "-n", LIBRARY], capture_output=True, text=True, check=True).stdout)
        recording = {"segments": [], "device_traces": [[event("alloc", 4096, 512, 1)]],
                     "vram_modules": [{"path": str(module), "build_id": build_id.group(1) if build_id else ""}]}
        recording["device_traces"][0][0]["frames"] = [{"filename": str(module), "line": 0, "name": hex(offset)}]
        out = self.folder / "named.json"
        run("symbolize", *options, self.put("machine.json", recording), "-o", out)
        return json.loads(out.read_text())["device_traces"][0][0]["frames"][0]

    def test_names_and_lines(self):
        frame = self.named(LIBRARY)
        self.assertEqual((frame["name"], frame["line"] > 0), ("vram_version", True))
        frame = self.named(LIBRARY, "--names-only")
        self.assertEqual((frame["name"], frame["line"]), ("vram_version", 0))

    def test_debug_information_elsewhere(self):
        notes = subprocess.run(["readelf", "-n", LIBRARY], capture_output=True, text=True, check=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)
        if build_id is None:
            self.skipTest("the library has no build id")
        stripped, symbols = self.folder / "libvram.so", self.folder / "symbols/.build-id" / build_id.group(1)[:2]
        symbols.mkdir(parents=True)
        subprocess.run([OBJCOPY, "--only-keep-debug", LIBRARY, symbols / (build_id.group(1)[2:] + ".debug")], check=True)
        subprocess.run([OBJCOPY, "--strip-all", LIBRARY, stripped], check=True)
        self.assertEqual(self.named(stripped)["line"], 0)
        self.assertGreater(self.named(stripped, "--debug-dir", self.folder / "symbols")["line"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
