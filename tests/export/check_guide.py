#!/usr/bin/env python3
"""Keeps the outputs in the guide current.
usage: check_guide.py VRAM ROOT [--write]
Runs the lines that begin with "$ " in every ```console block of convert.md and formats/sqlite.md, in a folder with the example recording,
and compares their output with the block; with --write, replaces it.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VRAM, ROOT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(folder, block):
    lines = []
    for command in (line[2:] for line in block.splitlines() if line.startswith("$ ")):
        path = os.pathsep.join([str(VRAM.parent), os.environ.get("PATH", "")])
        result = subprocess.run(["sh", "-c", command], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{command}: {result.returncode}: {result.stderr}")
        lines.append(f"$ {command}\n{result.stdout}")
    return "".join(lines)


def main():
    if shutil.which("sqlite3") is None:
        print("the sqlite3 program is not installed: the guide is not checked")
        return 77
    stale = blocks = 0
    for page in (ROOT / "docs/guides/convert.md", ROOT / "docs/reference/formats/sqlite.md"):
        with tempfile.TemporaryDirectory(prefix="vram-guide-") as folder:
            shutil.copy(ROOT / "examples/recordings/train.json.gz", folder)
            text = page.read_text(encoding="utf-8")
            renewed = BLOCK.sub(lambda match: f"```console\n{run(folder, match.group(1))}```", text)
        blocks += len(BLOCK.findall(text))
        if renewed != text and "--write" in sys.argv[3:]:
            page.write_text(renewed, encoding="utf-8")
        elif renewed != text:
            stale += 1
            print(f"{page.relative_to(ROOT)} shows other outputs; tests/export/check_guide.py VRAM ROOT --write renews them")
    return 1 if stale or blocks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
