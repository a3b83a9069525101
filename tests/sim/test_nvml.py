#!/usr/bin/env python3
"""NVML reports the same about simulated cards as about real ones.

Usage: test_nvml.py VRAM
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import unittest

VRAM = sys.argv[1]
FOLDER = pathlib.Path(__file__).parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith("VRAM_")}


def ask(*options):
    result = subprocess.run([VRAM, "sim", *options, "--", sys.executable, str(FOLDER / "nvml_card.py")], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def captures():
    with open(FOLDER / "nvml_captures.tsv", encoding="ascii", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))


class Nvml(unittest.TestCase):
    def test_cards_are_as_nvidia_smi_showed_them(self):
        rows = captures()
        self.assertEqual(len(rows), 7)
        for row in rows:
            major, minor = row["cuda"].split(".")
            answer = ask("--card", row["device"], "--set", f"driver={int(major) * 1000 + int(minor) * 10}")
            for name in set(row) - {"device", "driver", "cuda"}:
                self.assertEqual(str(answer[name]), row[name], (row["device"], name))
            self.assertEqual(answer["driver"].split(".")[0], row["driver"].split(".")[0])
            self.assertRegex(answer["driver"], r"^\d{3}\.\d{2,3}\.\d{2}$")
            self.assertEqual(answer["library"], f"{major}.{answer['driver']}")

    def test_what_is_not_known_is_not_supported(self):
        answer = ask("--card", "rtx4070", "--set", "driver=13000")
        self.assertEqual([answer[name] for name in ("bar1", "least_watts", "most_watts", "video", "application", "ecc", "mig")], ["-"] * 7)
        self.assertEqual(answer["watts"], 200)

    def test_links_lead_to_a_switch_where_there_is_another_card(self):
        for link in ask("--card", "h100,h100")["links"]:
            self.assertEqual(link, {"count": 18, "states": [1] * 18 + [-2], "ends": [[2, 0xe0]] * 18, "version": 6, "reaches": True})
        self.assertEqual(ask("--card", "h100")["links"], [{"count": 18, "states": [0] * 18 + [-2], "ends": [], "version": 6, "reaches": False}])
        # Cards of different models have no links to each other.
        self.assertEqual([link["ends"] for link in ask("--card", "h100,a100-80")["links"]], [[], []])

    def test_links_of_volta_lead_to_the_other_cards(self):
        answer = ask("--card", "v100", "--devices", "3")["links"]
        self.assertEqual([link["ends"] for link in answer], [[[0, 2], [0, 3]] * 3, [[0, 1], [0, 3]] * 3, [[0, 1], [0, 2]] * 3])
        self.assertEqual(answer[0]["version"], 2)

    def test_a_card_without_links_says_so(self):
        for link in ask("--card", "l40s,l40s")["links"]:
            self.assertEqual(link, {"count": "-", "states": [-3] * 19, "ends": [], "version": "-", "reaches": False})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
