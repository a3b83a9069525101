#!/usr/bin/env python3
"""Checks that an option means the same in every command, and is on a page and in a test. Usage: check_options.py VRAM SOURCE
Uses the output of `vram COMMAND --help`, which is made from the commands' tables of options.
"""
import pathlib
import re
import subprocess
import sys
import unittest

VRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
ROW = re.compile(r"^  (?:-(.), |    )--([a-z][a-z-]*)(?: (\S+))?(?:  .*)?$", re.M)
# Options with one meaning but different values. A running program has fewer groupings than a recording; --output may be a file, a page or a
# pattern for names; diff's --fail-over may be a share; and a replay without driver costs has no times.
SAME_VALUES = {"by", "output", "fail-over", "costs"}


def run(*words):
    return subprocess.run([VRAM, *words], capture_output=True, text=True, check=False, timeout=60)


COMMANDS = re.findall(r"^  ([a-z]+)  ", run("--help").stdout.split("Commands:")[1], re.M)
OPTIONS = {command: [row for row in ROW.findall(run(command, "--help").stdout) if row[1] != "help"] for command in COMMANDS}


def texts_of(folders, endings):
    """Returns the text of every file that people or the build read, except what is made from --help."""
    paths = [path for folder in folders for path in (SOURCE / folder).rglob("*") if path.suffix in endings]
    return [path.read_text(encoding="utf-8") for path in paths if not {"golden", "man", "node_modules"} & set(path.parts)]


class Options(unittest.TestCase):
    def test_the_tables_are_read(self):
        self.assertGreater(len(COMMANDS), 15)
        self.assertGreater(sum(map(len, OPTIONS.values())), 100)

    def each(self):
        return [(command, *row) for command in COMMANDS for row in OPTIONS[command]]

    def test_a_letter_is_one_option(self):
        names, letters = {}, {}
        for command, letter, name, _ in self.each():
            self.assertEqual(letters.setdefault(name, letter), letter, f"vram {command} --{name} has another letter elsewhere")
            if letter:
                self.assertEqual(names.setdefault(letter, name), name, f"vram {command} -{letter} is another option elsewhere")

    def test_an_option_takes_the_same_values(self):
        values = {}
        for command, _, name, value in self.each():
            if name not in SAME_VALUES:
                self.assertEqual(values.setdefault(name, value), value, f"vram {command} --{name} takes other values elsewhere")

    def test_every_option_is_on_a_page_of_its_command(self):
        self.check("page", texts_of(["docs"], {".md"}), "vram {}")

    def test_every_option_is_in_a_test_of_its_command(self):
        self.check("test", texts_of(["tests", "viewer/web/tests"], {".py", ".sh", ".mjs", ".txt", ".toml", ".c"}), "{}")

    def check(self, kind, texts, call):
        """A row shared by several commands suffices for one of them."""
        missing, found = [], set()
        for command, letter, name, value in self.each():
            wanted = re.compile(rf"(?<![\w-])--{name}(?![\w-])" + (rf"|(?<![\w-])-{letter}(?![\w-])" if letter else ""))
            with_command = [text for text in texts if re.search(rf"\b{call.format(command)}\b", text)]
            if any(wanted.search(text) for text in with_command):
                found.add((name, value))
            missing.append((command, name, value))
        self.assertEqual([row for row in missing if row[1:] not in found], [], f"no {kind} has these")

    def test_values_are_refused_by_name(self):
        """If the help lists values, others are refused, and the message lists the same ones."""
        for command, _, name, value in self.each():
            words = [word for word in value.split("|") if re.fullmatch("[a-z][a-z-]*", word)] if "|" in value else []
            if words != value.split("|"):
                continue
            operands = {"diff": ["a.pickle", "b.pickle"], "forecast": ["--size", "3", "1=a.pickle", "2=b.pickle"]}.get(command, ["none.pickle"])
            refused = run(command, f"--{name}", "no-such-value", *operands)
            self.assertEqual(refused.returncode, 2, (command, name, refused.stderr))
            for word in words:
                self.assertIn(word, refused.stderr, (command, name))

    def test_a_size_has_a_unit(self):
        self.assertEqual(run("sim", "--memory", str(4 << 30), "--", "true").returncode, 0)
        for command, _, name, value in self.each():
            if value == "SIZE" and (command, name) != ("forecast", "size"):
                refused = run(command, f"--{name}", "24", "none.pickle")
                self.assertEqual((refused.returncode, f"--{name}: '24' has no unit" in refused.stderr), (2, True), (command, name, refused.stderr))

    def test_what_others_call_it_is_taken_with_a_note(self):
        for command, word, wanted, value in (("fit", "device", "card", "h101"), ("sim", "profile", "costs", "none"), ("fit", "limit", "memory", "24"),
                                             ("forecast", "at", "size", "x"), ("run", "memory", "limit", "24")):
            said = run(command, f"--{word}", value)
            self.assertEqual((said.returncode, f"vram: --{word} was renamed to --{wanted}\n" in said.stderr), (2, True), (command, word, said.stderr))
        self.assertEqual(run("sim", "--device", "h100", "--", "true").returncode, 0)

    def test_near_misses_are_suggested(self):
        for words, wanted in ((["report", "--jsn"], "--json"), (["--versoin"], "--version"), (["reprot"], "report"), (["versio"], "version")):
            said = run(*words)
            self.assertEqual((said.returncode, f"did you mean '{wanted}'?" in said.stderr), (2, True), (words, said.stderr))

    def test_the_version(self):
        texts = {run(word).stdout for word in ("--version", "-V", "version")}
        self.assertEqual(len(texts), 1)
        self.assertRegex(texts.pop(), r"^vram \d+\.\d+\.\d+\n$")

    def test_cards_are_listed_where_one_is_unknown(self):
        said = run("fit", "--card", "h101", "--", "true")
        self.assertEqual(said.returncode, 2)
        for card in ("did you mean 'h100'", "rtx4090", "b200"):
            self.assertIn(card, said.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
