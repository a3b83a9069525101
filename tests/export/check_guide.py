#!/usr/bin/env python3
"""Keeps the outputs in guides current.
usage: check_guide.py VRAM ROOT TEN_LINES [--write]
Runs the lines that begin with "$ " in every ```console block of PAGES, and compares their output with the block. With --write, replaces it.
The folder has the example recording and the program TEN_LINES (examples/ten_lines.c).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VRAM, ROOT, TEN_LINES = (Path(name).resolve() for name in sys.argv[1:4])
PAGES = ("docs/guides/convert.md", "docs/guides/history.md", "docs/guides/prometheus.md", "docs/reference/formats/sqlite.md")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(folder, block):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VRAM_") and "RANK" not in name}
    lines = []
    for command in (line[2:] for line in block.splitlines() if line.startswith("$ ")):
        path = os.pathsep.join([str(VRAM.parent), os.environ.get("PATH", "")])
        result = subprocess.run(["sh", "-c", command], cwd=folder, env={**environment, "PATH": path}, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{command}: {result.returncode}: {result.stderr}")
        lines.append(f"$ {command}\n{result.stdout}")
    return "".join(lines)


def main():
    if shutil.which("sqlite3") is None:
        print("the sqlite3 program is not installed: the guide is not checked")
        return 77
    stale = blocks = 0
    for page in (ROOT / name for name in PAGES):
        with tempfile.TemporaryDirectory(prefix="vram-guide-") as folder:
            shutil.copy(ROOT / "examples/recordings/train.json.gz", folder)
            shutil.copy(TEN_LINES, folder)
            text = page.read_text(encoding="utf-8")
            renewed = BLOCK.sub(lambda match: f"```console\n{run(folder, match.group(1))}```", text)
        blocks += len(BLOCK.findall(text))
        if renewed != text and "--write" in sys.argv[4:]:
            page.write_text(renewed, encoding="utf-8")
        elif renewed != text:
            stale += 1
            print(f"{page.relative_to(ROOT)} shows other outputs; tests/export/check_guide.py VRAM ROOT TEN_LINES --write renews them")
    return 1 if stale or blocks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
