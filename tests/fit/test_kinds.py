#!/usr/bin/env python3
"""Tests what `vram fit --fold auto` does with the files that a program's ranks write: `kinds` (adapters/fit/vram_fit_kinds.py) and `refused`
(adapters/fit/vram_fit_fold.py). The program starts its ranks itself, as a launcher does, and writes the files by hand.

usage: test_kinds.py VRAM
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

VRAM = sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith(("VRAM_", "PYTHON"))}

RANK = """
import os, torch
optimizer, rank = torch.Optimizer(), int(os.environ["RANK"])
weights = torch.empty((2 + 2 * rank) << 20)
for step in range(9):
    optimizer.step()
"""
UNEVEN = """
import os, torch
rank = int(os.environ["RANK"])
if rank == 0:
    os.environ["FAKE_IDLE"] = "100"
    torch.free(torch.empty(100 << 20))
weights, optimizer = torch.empty((120 if rank == 0 else 200) << 20), torch.Optimizer()
for step in range(9):
    optimizer.step()
"""
LAUNCHER = """
import os, pathlib, subprocess, sys
kinds, refused, rank = sys.argv[3:6]
folder = pathlib.Path(os.environ["VRAM_FIT"])
if os.environ.get("VRAM_FIT_SCOUTS") == "1":
    (folder / "kinds").write_bytes(kinds.encode("utf-8", "surrogateescape"))
elif refused:
    (folder / "refused").write_text(refused)
count = int(sys.argv[2])
ranks = [subprocess.Popen([sys.executable, "-c", rank], env={**os.environ, "RANK": str(i), "LOCAL_RANK": str(i), "CUDA_VISIBLE_DEVICES": str(i), "WORLD_SIZE": str(count)})
         for i in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
"""


def fit(kinds, *options, refused="", rank=RANK):
    with tempfile.TemporaryDirectory() as folder:
        program = (sys.executable, "-c", LAUNCHER, "--nproc-per-node", "64", kinds, refused, rank)
        result = subprocess.run([VRAM, "fit", "-q", *options, "--", *program], capture_output=True, text=True, check=False,
                                env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake"), "TMPDIR": folder})
        assert os.listdir(folder) == [], os.listdir(folder)
    return result


class Kinds(unittest.TestCase):
    def answer(self, kinds):
        result = fit(kinds, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        for kind in answer["kinds"]:
            kind["host_bytes"] = kind.get("host_bytes", 0) > MIB
        return answer["kinds"], [one["rank"] for one in answer["holdings"]]

    def test_each_kind_has_the_peaks_of_its_highest_rank(self):
        kinds, ran = self.answer("run 0 3 5\nkind 40 0 pp 1 of 2\nkind 24 3,5 pp 2 of 2\n")
        self.assertEqual(ran, [0, 3, 5])
        self.assertEqual(kinds, [{"name": "pp 1 of 2", "ranks": 40, "ran": "0", "rank": 0, "allocated_bytes": 2 * MIB, "reserved_bytes": 2 * MIB, "outside_bytes": 0, "host_bytes": True,
                                  "card": "rtx3070"},
                                 {"name": "pp 2 of 2", "ranks": 24, "ran": "3, 5", "rank": 5, "allocated_bytes": 12 * MIB, "reserved_bytes": 12 * MIB, "outside_bytes": 0, "host_bytes": True,
                                  "card": "rtx3070"}])

    def test_the_least_memory_is_that_of_the_rank_that_needs_the_most(self):
        """Rank 0 reserves the most, but completes in less memory than rank 5."""
        answer = json.loads(fit("run 0 5\n", "--json", "--memory", "180MiB", rank=UNEVEN).stdout)
        self.assertEqual({one["rank"]: (one["allocated_bytes"], one["reserved_bytes"]) for one in answer["holdings"]},
                         {0: (120 * MIB, 220 * MIB), 5: (200 * MIB, 200 * MIB)})
        outside = answer["holdings"][0]["outside_bytes"]
        self.assertEqual((answer["smallest_bytes"] - outside, answer["fits"]), (200 * MIB, False))

    def test_the_table(self):
        text = fit("run 0 5\nkind 40 0 a\x1b[31mb\x07\udcff\nkind 20 5 pp 2 of 2\n").stdout
        self.assertIn("  Kinds          ranks  allocated   reserved  card      kind\n"
                      "                    40    2.0 MiB    2.0 MiB  rtx3070   a\\x1B[31mb\\x07\\xFF (ran:\n                    0)\n"
                      "                    20   12.0 MiB   12.0 MiB  rtx3070   pp 2 of 2 (ran: 5)\n"
                      "                 4 ranks are of other kinds, which did not run\n", text)

    def test_what_the_highest_kind_holds(self):
        """The stack shows that the memory is the state of an optimizer."""
        made = "def _init_group(): return torch.empty((2 + 2 * rank) << 20)"
        rank = RANK.replace("weights = torch.empty((2 + 2 * rank) << 20)", f"exec(compile({made!r}, '/site-packages/torch/optim/adamw.py', 'exec'))\nstate = _init_group()")
        text = " ".join(fit("run 0 5\nkind 40 0 first\nkind 24 5 last\n", rank=rank).stdout.split())
        self.assertIn("Highest last; at its peak, more than first: optimizer state 10.0 MiB", text)
        self.assertRegex(text, r"host memory: up to \d+\.\d MiB a rank, \d\.\d GiB for the 64 ranks of a machine")

    def test_a_kind_without_a_recording(self):
        self.assertIn("    40          ?          ?  ?         pp 1 of 2 (ran: 7; no\n                    recording)\n", fit("run 0 1\nkind 40 7 pp 1 of 2\n").stdout)

    def test_invalid_lines_are_left_out(self):
        wrong = ("run", "run x", "run 64", "kind 40", "kind 40 0", "kind x 0 name", "kinds 1 0 name", "", "\n\n", "kind " + "9" * 3000)
        self.assertEqual(self.answer("\n".join(wrong)), ([], [0, 1, 32, 63]))

    def test_more_ranks_than_run(self):
        lines = [f"kind 1 {i % 64} kind {i}" for i in range(70)]
        kinds, ran = self.answer("\n".join(["run 0 99 1 64", *lines]))
        self.assertEqual((len(kinds), kinds[-1]["name"], ran), (64, "kind 63", [0, 1]))

    def test_a_long_name(self):
        kinds, _ = self.answer("run 0 1\nkind 1 0 " + "é" * 390 + "\nkind 2 1 last\n")
        self.assertEqual((len(kinds), kinds[0]["name"][:3], kinds[1]["name"]), (2, "ééé", "last"))

    def test_recordings_are_kept_in_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            result = fit("run 0 3 63\n", "--output", folder + "/kept/")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(sorted(os.listdir(folder + "/kept")), ["rank-0.pickle", "rank-3.pickle", "rank-63.pickle"])
            report = json.loads(subprocess.run([VRAM, "report", "--json", folder + "/kept/rank-3.pickle"], capture_output=True, check=True).stdout)
            self.assertEqual(report["devices"]["0"]["allocated"]["peak_bytes"], 8 * MIB)

    def test_the_kinds_are_kept_in_the_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            result = fit("run 0 5\nkind 40 0 pp 1 of 2\nkind 24 5 pp 2 of 2\n", "--json", "--output", folder + "/kept/")
            self.assertEqual(result.returncode, 0, result.stderr)
            kept, answer = json.loads(pathlib.Path(folder, "kept/kinds.jsonl").read_text()), json.loads(result.stdout)
            self.assertEqual(kept, {"ranks": 64, "ran": 2, "highest_kind": answer["highest_kind"], "kinds": answer["kinds"]})
            page = subprocess.run([VRAM, "view", "-o", "-", "--no-open", folder + "/kept"], capture_output=True, text=True, check=False)
            if page.returncode == 0:  # the command may be built without the page
                self.assertIn('<meta name="vram-kinds" content="{&#34;ranks&#34;:64,', page.stdout)

    def test_what_cannot_be_folded_is_one_sentence(self):
        result = fit("run 0 1\n", refused="rank 0 sends \x1b[31mobjects. Name it in --fold\nmore\n")
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertEqual(result.stderr.splitlines()[-1], "vram fit: rank 0 sends \\x1B[31mobjects. Name it in --fold")


if __name__ == "__main__":
    unittest.main()
