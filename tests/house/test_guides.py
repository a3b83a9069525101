#!/usr/bin/env python3
"""Tests the examples in the guides: commands with their options, C that compiles, and the output on the PyTorch page.

Usage: test_guides.py ROOT VRAM CC [ADAPTER]      (the tree, the command, a C compiler, the folder of the adapter for PyTorch)

Options and their choices are those of `vram COMMAND --help`. Checks the command lines in the code of all pages (blocks and quoted text) and in the
help itself, and the options that the manual page lists for a command.
"""
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, VRAM, CC = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = re.findall(r"^COMMAND\((\w+),", (ROOT / "cli/commands.def").read_text(encoding="utf-8"), re.MULTILINE)
# Declarations around a fragment of C in a guide: the names that its text has introduced.
AROUND = """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <vram/network.h>
#include <vram/recordings.h>
#include <vram/sim.h>
#include <vram/vram.h>
void use(uint64_t address, uint64_t size_bytes);
void fragment(struct vram_allocator *allocator, struct vram_error error, uint64_t address, size_t size, void *handle, int pipe, int socket,
              uint64_t stream, uint64_t other_stream, struct vram_imported block, struct vram_driver *driver,
              struct vram_graph *graph);
void fragment(struct vram_allocator *allocator, struct vram_error error, uint64_t address, size_t size, void *handle, int pipe, int socket,
              uint64_t stream, uint64_t other_stream, struct vram_imported block, struct vram_driver *driver,
              struct vram_graph *graph) {
    (void)driver, (void)stream, (void)other_stream, (void)graph;
    (void)allocator, (void)error, (void)address, (void)size, (void)handle, (void)pipe, (void)socket, (void)block;
    {
%s    }
}
"""


def help_of(command):
    return subprocess.run([VRAM, command, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout


def options_of(text):
    """Returns {option: None for a flag, else the list of its choices ([] for any value)}, with letters as -x and names as --name."""
    options = {}
    for letter, name, value in re.findall(r"^ +(?:(-\w), +)?(--[\w-]+)(?: (\S+))?(?:  .*)?$", text, re.MULTILINE):
        choices = None if not value else value.split("|") if re.fullmatch(r"[a-z]+(\|[a-z]+)+", value) else []
        options[name] = choices
        if letter:
            options[letter] = choices
    return options


HELP = {command: help_of(command) for command in COMMANDS}
OPTIONS = {command: options_of(text) for command, text in HELP.items()}


def code_of(page):
    """Returns the lines of a page's code: fenced and indented blocks, with lines that end in a backslash joined, and quoted code in the
    text."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    fenced = re.compile(r"^( *)```[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
    lines = [line for _, block in fenced.findall(text) for line in block.splitlines()]
    rest = fenced.sub("", text)
    lines += re.findall(r"^ {4,}(\S.*)$", rest, re.MULTILINE)
    return lines + [quoted.replace("\n", " ") for quoted in re.findall(r"`(vram [^`]+)`", rest)]


def words_of(line):
    # `--site|--stack` means either of them; the shell's bar has spaces around it.
    line = re.sub(r"(?<=\S)\|(?=-)", "/", line)
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
        lexer.whitespace_split = True
        return list(lexer)
    except ValueError:
        return line.split()


def calls_in(words):
    """Returns the calls of vram in the words of a shell line, each as a list that begins with its command. Includes calls after `--`."""
    calls = []
    for index, word in enumerate(words[:-1]):
        if re.search(r"(^|/)vram$", word) and re.fullmatch(r"[a-z]+", words[index + 1]):
            call = []
            for following in words[index + 1:]:
                if re.fullmatch(r"[;|&<>]+", following) or following == "--":
                    break
                call.append(following)
            calls.append(call)
    return calls


def mistakes_in(call):
    """Returns the options of a call that the command does not have, and the values it does not accept."""
    if call[0] not in OPTIONS:
        return [] if call == ["help"] or call[0] == "help" and call[1] in COMMANDS else [f"there is no vram {call[0]}"]
    options, found, index = OPTIONS[call[0]], [], 1
    while index < len(call):
        word, index = call[index], index + 1
        name, equals, value = word.partition("=")
        for option in re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", name) if word.startswith(("-", "[-")) else []:
            if option not in options:
                found.append(f"vram {call[0]} has no {option}")
            elif options[option] is not None and not equals and "/-" not in name and index < len(call):
                value, index = call[index], index + 1
            if options.get(option) and re.fullmatch(r"[a-z]+", value) and value not in options[option]:
                found.append(f"vram {call[0]} {option} does not take {value}")
    return found


class Guides(unittest.TestCase):
    def check(self, lines):
        """Returns the number of calls and the mistakes in them."""
        calls = [call for line in lines for call in calls_in(words_of(line.split("  #")[0]))]
        return len(calls), [mistake for call in calls for mistake in mistakes_in(call)]

    def test_mistakes_are_found(self):
        self.assertGreater(len(OPTIONS["report"]), 8)
        for line, wanted in (
            ("$ vram report --sites x", ["vram report has no --sites"]),
            ("A=b build/release/cli/vram replay -x a | less -S", ["vram replay has no -x"]),
            ("vram replay --costs free a", ["vram replay --costs does not take free"]),
            ("vram sim --costs free -- vram run --cash -- ./program --any", ["vram run has no --cash"]),
            ("vram report --site|--stack|--on-oom x", ["vram report has no --on-oom"]),
            ("vram tunes a b", ["there is no vram tunes"]),
            ("vram report --top 5 --check x > out && vram diff -n 3 a b", []),
        ):
            self.assertEqual(self.check([line])[1], wanted, line)

    def test_commands_in_pages_exist(self):
        count, mistakes = 0, []
        for page in PAGES:
            found, wrong = self.check(code_of(page))
            count += found
            mistakes += [f"{page.relative_to(ROOT)}: {mistake}" for mistake in wrong]
        self.assertGreater(count, 60)
        self.assertEqual(mistakes, [])

    def test_examples_of_the_help_exist(self):
        for command, text in HELP.items():
            lines = text.partition("\nExamples:\n")[2].splitlines()
            count, mistakes = self.check(lines)
            self.assertGreater(count, 0, command)
            self.assertEqual(mistakes, [])

    def test_options_of_the_manual_exist(self):
        manual = (ROOT / "docs/reference/man/vram.1").read_text(encoding="utf-8").replace("\\-", "-")
        parts = re.split(r"^\.TP\n\.B (\w+)\n", manual.partition(".SH COMMANDS")[2].partition(".SH EXIT")[0], flags=re.MULTILINE)
        named = dict(zip(parts[1::2], parts[2::2]))
        self.assertEqual(sorted(named), sorted(COMMANDS))
        wrong = {command: [name for name in re.findall(r"(?<![\w-])(--?[a-z][\w-]*)", text) if name not in OPTIONS[command]]
                 for command, text in named.items()}
        self.assertEqual({command: names for command, names in wrong.items() if names}, {})


    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_manual_has_no_mistakes_of_form(self):
        for manual in sorted((ROOT / "docs/reference/man").glob("*.1")):
            result = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-z", manual], capture_output=True, text=True, timeout=60)
            self.assertEqual((manual.name, result.returncode, result.stderr), (manual.name, 0, ""))


class Torch(unittest.TestCase):
    @unittest.skipUnless(len(sys.argv) > 4, "the adapter for PyTorch is not there, or not for Python")
    def test_what_the_page_shows_is_printed(self):
        page = (ROOT / "docs/guides/torch.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```console\n\$ ([^\n]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 0)
        for command, shown in blocks:
            path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
            environment = {"PATH": path, "PYTHONPATH": sys.argv[4], "PYTHONDONTWRITEBYTECODE": "1"}
            result = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=120)
            self.assertEqual((result.stdout, result.stderr), (shown, ""))


class Code(unittest.TestCase):
    def compiles(self, source):
        flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result", "-fsyntax-only", "-x", "c"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fragment.c"
            path.write_text(source, encoding="utf-8")
            return subprocess.run([CC, *flags, *(f"-I{folder}" for folder in sorted(ROOT.glob("*/include"))), path], capture_output=True, text=True, timeout=120)

    def test_c_in_pages_compiles(self):
        count = 0
        for page in PAGES:
            for block in re.findall(r"^```c\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
                source = block if "int main(" in block else AROUND % block.replace("...\n", "\n")
                result = self.compiles(source)
                self.assertEqual(result.returncode, 0, f"{page.relative_to(ROOT)}:\n{block}\n{result.stderr}")
                count += 1
        self.assertGreater(count, 3)

    def test_a_wrong_fragment_does_not(self):
        self.assertNotEqual(self.compiles(AROUND % "vram_history_begin(allocator);\n").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
