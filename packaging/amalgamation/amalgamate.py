#!/usr/bin/env python3
"""Turns the allocator into two files, vram.h and vram.c, that a program compiles with its own.

Usage: amalgamate.py [--sim] SOURCE OUT

SOURCE is the project's tree, OUT the folder for the files. --sim adds the simulated driver (vram_sim_create()), for programs whose tests
run without a GPU. Histories, snapshots, readers, reports and replay are left out; libvram has them.

Every file is copied unchanged: headers where they are first included, tables (.def) at each include. Names that several files declare for
themselves (static functions, macros) get the file's name as an ending, because in C their scope is the whole file.
"""
import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

# The folders in which included files are searched.
PLACES = [Path("allocator"), Path("recordings"), Path("simulator"), Path("replay"), Path()]
# The rooms of the allocator, lowest first. Folders are copied whole.
ROOMS = ["allocator/" + room for room in ("base", "os/posix", "config", "driver", "driver/cuda", "driver/hip", "core", "core/*", "inspect", "host", "graph", "library")]
SIMULATOR = ["allocator/driver/fault", "simulator/check", "simulator/sim", "simulator/sim/*"]
# Events carry names, which are in a table of the process.
SINGLE = ["recordings/model/builder.c", "allocator/history/thread_text.c"]
# These files read recordings, or serve only the command.
NOT_NEEDED = {"allocator/config/recorded_options.c"}
PUBLIC = ["vram/vram.h"]
LEFT_OUT = {"vram/history.h"}
# Names of the system: a file of ours may use them for its own functions although a header that another file includes declares them.
OF_THE_SYSTEM = {"open", "close", "read", "write", "link", "index", "remove", "send", "accept", "bind", "listen", "wait", "select", "time", "unshare"}
BARE_ENTRY = "packaging/amalgamation/entry.c"

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|->|\s+|.', re.S)
IF, ENDIF = re.compile(r"^[ \t]*#[ \t]*if", re.M), re.compile(r"^[ \t]*#[ \t]*endif", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">].*$', re.M)
OPEN_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
KEYWORDS = {"_Atomic", "__attribute__", "_Alignas"}
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n(?:[^\n\\]|\\.)*)*", re.M)
FEATURE = re.compile(r"^#define _(?:GNU|POSIX_C)_SOURCE.*\n", re.M)


def tokens(text):
    return TOKEN.findall(text)


def is_word(token):
    return token[0].isalpha() or token[0] == "_"


def is_blank(token):
    return token[0].isspace() or token.startswith("//") or token.startswith("/*")


def own_names(text):
    """Returns the file's own names at its outermost level: static functions and variables, and enumerators."""
    names, depth, is_static, enum, previous = set(), 0, False, "no", ""
    for token in tokens(DIRECTIVE.sub("", text)):
        if is_blank(token):
            continue
        if depth == 0:
            # A static declaration's name is the last word before its first parenthesis, bracket, value or end.
            if token in "([=;," and is_static and is_word(previous) and previous not in KEYWORDS:
                names.add(previous)
                is_static = token == ","
            if token in ("static", "VR_INLINE", "enum"):
                is_static, enum = is_static or token != "enum", "head" if token == "enum" else enum
            elif token == "{" and enum == "head":
                enum = "body"
            elif token in "(=;{}":
                is_static, enum = is_static and token in "({", "no"
        elif depth == 1 and enum == "body" and is_word(token) and previous in ("{", ","):
            names.add(token)
        depth += (token in "{([") - (token in "})]")
        previous = token
    return names


class Amalgam:
    def __init__(self, source, folders):
        self.source = source
        self.included = set()
        self.files = [source / name for name in SINGLE]
        self.files += [path for folder in folders for path in sorted(source.glob(f"{folder}/*.c"))]
        self.files = [path for path in self.files if str(path.relative_to(source)) not in NOT_NEEDED] + [source / BARE_ENTRY]
        owners = defaultdict(list)
        for path in self.files + sorted(source.glob("allocator/**/*.h")):
            for name in own_names(path.read_text()):
                owners[name].append(path)
        self.shared = {name for name, paths in owners.items() if len(paths) > 1 or name in OF_THE_SYSTEM}

    def find(self, name):
        for place in [*PLACES, *(product / "include" for product in PLACES)]:
            if (self.source / place / name).is_file():
                return self.source / place / name
        sys.exit(f"amalgamate.py: no file {name}")

    def unfolded(self, text, public):
        """Returns the text with its included files in their places."""

        def replaced(match):
            kind, name = match.groups()
            if kind == "<":
                return match.group(0)
            if name.startswith("vram/") and not public or name in LEFT_OUT:
                return ""
            path = self.find(name)
            if path.suffix == ".h":
                if path in self.included:
                    return ""
                self.included.add(path)
            return self.unfolded(path.read_text(), public).rstrip("\n")

        return INCLUDE.sub(replaced, FEATURE.sub("", text))

    def renamed(self, text, own, ending):
        """Returns the text with the file's ending on its own names. Members of structs keep their names, in declarations and uses."""
        result, previous, before, braces, brackets = [], "", "", [], 0
        for token in tokens(text):
            is_member = previous in (".", "->") or (braces and braces[-1] and brackets == 0)
            result.append(f"{token}_of_{ending}" if token in own and not is_member else token)
            if is_blank(token):
                continue
            if token == "{":
                braces.append(previous in ("struct", "union") or before in ("struct", "union"))
            elif token == "}" and braces:
                braces.pop()
            brackets += (token == "[") - (token == "]")
            before, previous = previous, token
        return "".join(result)

    def ending(self, path):
        place = next(self.source / place for place in PLACES if path.is_relative_to(self.source / place))
        return re.sub(r"\W", "_", str(path.relative_to(place).with_suffix("")))

    def part(self, path):
        """Returns a C file as a part of the result: the headers it adds, its text, and the end of its macros."""
        text = FEATURE.sub("", path.read_text())
        own = self.shared & own_names(text)
        headers = []

        def hoisted(match):
            # Includes for one processor or system stay under their condition.
            if match.group(2).endswith(".def") or len(IF.findall(text, 0, match.start())) > len(ENDIF.findall(text, 0, match.start())):
                return match.group(0)
            headers.append(match.group(0))
            return ""

        body = self.renamed(INCLUDE.sub(hoisted, text), own, self.ending(path))
        body = self.unfolded(body, False)
        ends = "".join(f"#undef {name}\n" for name in sorted(set(OPEN_MACRO.findall(body))))
        before = self.unfolded("\n".join(headers) + "\n", False)
        return f"{before}\n// {path.relative_to(self.source)}\n{body.strip()}\n{ends}"


def without_undefined(header, body):
    """Returns the public header without the functions that this amalgamation lacks, and without the comments above them."""
    defined = set(re.findall(r"^(?!static)\w[^;={}]*?\b(vram_\w+)\([^;{}]*\)\s*\{", body, re.M))

    def kept(match):
        return match.group(0) if match.group(1) in defined else ""

    return re.sub(r"(?:^//[^\n]*\n)*^VRAM_API[^;]*?\b(vram_\w+)\([^;]*;[^\n]*\n", kept, header, flags=re.M)


def tidy(text):
    return re.sub(r"\n{3,}", "\n\n", text)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    source = chosen.source.resolve()
    version = re.search(r"project\(vram VERSION ([\d.]+)", (source / "CMakeLists.txt").read_text()).group(1)
    amalgam = Amalgam(source, ROOMS + (SIMULATOR if chosen.sim else []))
    head = (f"// vram {version}: an inspectable malloc for GPU memory. The allocator{' and the simulated driver' if chosen.sim else ''}"
            f" in one file; made by a script, not to be edited.\n// License: Apache-2.0 (http://www.apache.org/licenses/LICENSE-2.0).\n")
    public = PUBLIC + (["vram/sim.h"] if chosen.sim else [])
    header = amalgam.unfolded("".join(f'#include "{name}"\n' for name in public), True)
    body = "".join(amalgam.part(path) for path in amalgam.files)
    header = without_undefined(header, body)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "vram.h").write_text(tidy(f"{head}#ifndef VRAM_H\n#define VRAM_H\n{header}\n#endif\n"))
    features = "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n#ifndef VRAM_CHECK\n#define VRAM_CHECK 1\n#endif\n"
    (chosen.out / "vram.c").write_text(tidy(f'{head}{features}#include "vram.h"\n\n{body}'))


if __name__ == "__main__":
    main()
