#!/usr/bin/env python3
"""Writes the manual page of each command, docs/reference/man/vram-COMMAND.1, from the output of `vram COMMAND --help`.

Usage: manual.py VRAM [--write]

Without --write, names the pages that differ from the current help of the command VRAM, and exits 1 if there is one.
"""
import re
import subprocess
import sys
from pathlib import Path

PAGES = Path(__file__).parent.parent / "docs/reference/man"
OPTION = re.compile(r"^  (?:(-.), |    )(--[a-z][a-z-]*)(?: (\S.*?))?(?:  +(\S.*))?$")


def printed(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True, env={"COLUMNS": "100"}).stdout


def roff(text):
    """Returns text for a manual page: escapes backslashes and dashes, and lets no line begin as a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def sections(text):
    """Returns the usage line, description lines, option lines and example lines of a help text."""
    usage, _, rest = text.partition("\n\n")
    description, _, rest = rest.partition("\nOptions:\n")
    options, _, rest = rest.partition("\n\n")
    examples = rest.partition("Examples:\n")[2]
    return usage, description.strip("\n").split("\n"), options.split("\n"), examples.rstrip("\n").split("\n") if examples else []


def option_rows(lines):
    """Returns each option's letter, name and value with its text. The text's further lines are indented further than any option."""
    rows = []
    for line in lines:
        match = OPTION.match(line)
        if match:
            letter, name, value, text = match.groups()
            rows.append([letter, name, value, [text] if text else []])
        elif line.strip():
            rows[-1][3].append(line.strip())
    return rows


def page(command, summary, text, version):
    usage, description, options, examples = sections(text)
    lines = [f'.TH VRAM\\-{command.upper()} 1 "" "vram {version}" "User Commands"', ".SH NAME", f"vram\\-{command} \\- {roff(summary)}", ".SH SYNOPSIS",
             f".B {roff(usage.split(' [')[0]) if '[' in usage else roff(usage)}", roff(usage[len(usage.split(' [')[0]):].strip()), ".SH DESCRIPTION"]
    for line in description:
        # A list in the description stays a list.
        lines += [".PP" if not line else f".br\n{roff(line.strip())}" if line.startswith("  ") else roff(line)]
    lines.append(".SH OPTIONS")
    for letter, name, value, words in option_rows(options):
        head = (f"\\fB{roff(letter)}\\fR, " if letter else "") + f"\\fB{roff(name)}\\fR" + (f" \\fI{roff(value)}\\fR" if value else "")
        lines += [".TP", head, roff(" ".join(words))]
    if examples:
        lines += [".SH EXAMPLES", ".nf", *(roff(line[2:]) for line in examples), ".fi"]
    lines += [".SH EXIT STATUS", "0 success, 1 finding, 2 usage error, 3 bad input, 4 device error." if command not in ("run", "sim") else
              "That of the program; else 2 usage, 3 bad input, 4 device.", ".SH SEE ALSO", ".BR vram (1)"]
    return "\n".join(line for line in lines if line) + "\n"


def main():
    program, write = str(Path(sys.argv[1]).resolve()), "--write" in sys.argv[2:]
    version = printed(program, "--version").split()[1]
    commands = re.search(r"^Commands:\n(.*?)\n\n", printed(program, "--help"), re.MULTILINE | re.DOTALL).group(1)
    wanted = {}
    for row in commands.split("\n"):
        command, summary = row.split(None, 1)
        wanted[f"vram-{command}.1"] = page(command, summary, printed(program, command, "--help"), version)
    stale = [name for name, text in wanted.items() if not (PAGES / name).is_file() or (PAGES / name).read_text(encoding="utf-8") != text]
    left = [path.name for path in PAGES.glob("vram-*.1") if path.name not in wanted]
    if write:
        for name in stale:
            (PAGES / name).write_text(wanted[name], encoding="utf-8")
        for name in left:
            (PAGES / name).unlink()
        return 0
    for name in stale + left:
        print(f"docs/reference/man/{name} is not what the command says; `tools/manual.py build/release/cli/vram --write` renews it")
    return 1 if stale or left else 0


if __name__ == "__main__":
    sys.exit(main())
