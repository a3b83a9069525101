"""Makes a page for each command: its purpose, its output for an example, and its options. Everything on it is printed by the command."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The recordings of the examples, by the names on the pages.
RECORDINGS = {
    "oom.pickle.gz": ROOT / "examples/recordings/oom.pickle.gz",
    "train.json.gz": ROOT / "examples/recordings/train.json.gz",
    "leak.pickle": "snapshots/o13_leak_2.15.pickle",
    "rows1024.pickle": "snapshots/o14_rows_1024_2.15.pickle",
    "rows2048.pickle": "snapshots/o15_rows_2048_2.15.pickle",
    "rows4096.pickle": "snapshots/o16_rows_4096_2.15.pickle",
}
RUN = "vram sim --card t4 -- vram run -o run.vram -- python3 allocate.py"
LIVE = """vram sim --card t4 -- vram run -o 'live-%p.vram' -- python3 allocate.py 4 >/dev/null 2>&1 &
sleep 2
program=$(echo live-*.vram | tr -dc 0-9)"""
FIRST = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}}
MESSAGES = (  # input of `vram mcp` in its example
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": FIRST},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "why", "arguments": {"file": "oom.pickle.gz"}}},
)
ANSWER = "python3 -c 'import json; print(json.loads(input())[\"result\"][\"content\"][0][\"text\"])'"
# For each command: what runs before (not shown), the line that is shown, and the guide with more details.
EXAMPLES = {
    "fit": ("", "vram fit --card t4,rtx4090 -- python3 allocate.py", "docs/guides/fit.md"),
    "report": ("", "vram report --top 4 oom.pickle.gz", "docs/guides/out-of-memory.md"),
    "view": ("", "vram view --no-open oom.pickle.gz", "docs/guides/view.md"),
    "replay": ("", "vram replay --memory 20GiB --conf '' --conf expandable_segments:True oom.pickle.gz", "docs/guides/tune.md"),
    "convert": ("", "vram convert leak.pickle -o - --to folded | cut -c1-150 | sort | tail -3", "docs/guides/convert.md"),
    "export": (RUN, "vram export run.vram", "docs/guides/prometheus.md"),
    "run": ("", RUN, "docs/guides/run.md"),
    "tune": ("", "vram tune oom.pickle.gz", "docs/guides/tune.md"),
    "symbolize": (RUN, "vram symbolize run.vram -o named.vram", "docs/guides/stacks.md"),
    "sim": ("", "vram sim --card rtx4090 -- python3 allocate.py", "docs/guides/simulator.md"),
    "check": ("", "vram check -- python3 two_streams.py", "docs/guides/check.md"),
    "doctor": ("", "vram doctor --sim", "docs/guides/install.md"),
    "flame": ("", "vram flame leak.pickle -o peak.svg && ls peak.svg", "docs/guides/profile.md"),
    "diff": ("", "vram diff rows1024.pickle rows4096.pickle", "docs/guides/profile.md"),
    "leaks": ("", "vram leaks leak.pickle", "docs/guides/profile.md"),
    "forecast": ("", "vram forecast --size 8192 1024=rows1024.pickle 2048=rows2048.pickle 4096=rows4096.pickle", "docs/guides/profile.md"),
    "top": (RUN, "vram top --once run.vram", "docs/guides/run.md"),
    "attach": (LIVE, "vram attach $program", "docs/guides/run.md"),
    "mcp": ("", f"vram mcp < messages.jsonl | tail -1 | {ANSWER}", "docs/guides/agents.md"),
}


class Shell:
    """Makes a folder with the examples' recordings, in which commands run with VRAM as `vram`."""

    def __init__(self, vram, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        unpacked = folder / ".own"
        unpacked.mkdir()
        subprocess.run(["tar", "--zstd", "-xf", ROOT / "tests/recordings/own.tar.zst", "-C", unpacked], check=True)
        for name, source in RECORDINGS.items():
            shutil.copyfile(source if isinstance(source, Path) else unpacked / source, folder / name)
        for name in ("allocate.py", "two_streams.py"):
            shutil.copyfile(HERE / name, folder / name)
        (folder / "messages.jsonl").write_text("".join(json.dumps(message) + "\n" for message in MESSAGES), encoding="utf-8")
        kept = {name: os.environ[name] for name in ("LANG",) if name in os.environ}
        self.environment = {**kept, "PATH": f"{vram.parent}:/usr/bin:/bin", "COLUMNS": "80", "NO_COLOR": "1", "HOME": str(folder), "TMPDIR": str(folder)}

    def printed(self, line):
        """Returns a line's output, on both streams, without the path of the folder."""
        result = subprocess.run(["sh", "-c", line], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=300, check=False)
        if "Traceback" in result.stdout or result.returncode not in (0, 1):
            raise RuntimeError(f"{line}: exit code {result.returncode}: {result.stdout}")
        return re.sub(r"\S*/\.\./", "/usr/lib/vram/", result.stdout.replace(f"{self.folder}/", ""))  # paths of the build


def commands():
    rows = re.findall(r'^COMMAND\((\w+), "(.*)"\)$', (ROOT / "cli/commands.def").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for name, _ in rows} == set(EXAMPLES), "each command has an example"
    return rows


def picture(shell, name):
    """Returns the flame graph that the example writes, for its page."""
    return f"\n![The flame graph]({name}.svg)\n" if name == "flame" and (shell.folder / "peak.svg").exists() else ""


def page(shell, name, does):
    before, line, guide = EXAMPLES[name]
    output = shell.printed(f"{before}\necho 'THE OUTPUT'\n{line}" if before else f"echo 'THE OUTPUT'\n{line}").partition("THE OUTPUT\n")[2]
    assert output.strip(), f"{line} prints nothing"
    return (f"# vram {name}\n\n{does[0].upper()}{does[1:]}. More: [{Path(guide).stem}](../{guide}).\n\n"
            f"```console\n$ {line}\n{output.rstrip()}\n```\n{picture(shell, name)}\n## Options\n\n```\n{shell.printed(f'vram {name} --help').rstrip()}\n```\n")


def write(vram, pages, scratch):
    """Writes commands/NAME.md for every command, and commands/index.md."""
    shell = Shell(vram, scratch)
    (pages / "commands").mkdir()
    rows = commands()
    for name, does in rows:
        (pages / "commands" / f"{name}.md").write_text(page(shell, name, does), encoding="utf-8")
    shutil.copyfile(shell.folder / "peak.svg", pages / "commands/flame.svg")
    table = "".join(f"| [vram {name}]({name}.md) | {does} |\n" for name, does in rows)
    (pages / "commands/index.md").write_text(f"# Commands\n\n| command | |\n|---|---|\n{table}", encoding="utf-8")
