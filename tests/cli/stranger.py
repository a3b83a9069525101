#!/usr/bin/env python3
"""Tests the mistakes of a newcomer: every command in every situation of a table.
usage: stranger.py VRAM
Each gives help, or one clear line and a documented exit code; no repetition, no traceback, no hang, no output into a closed descriptor.
"""
import os
import pickle
import pty
import signal
import subprocess
import sys
import tempfile
import threading

from check_cli import recording

TIMEOUT = 20
# Options and operands that make a command work. prints: the answer is on standard output.
READERS = {
    "report": ([], ["good.pickle"], True), "replay": ([], ["good.pickle"], True), "tune": (["-j1"], ["good.pickle"], True),
    "leaks": ([], ["good.pickle"], True), "diff": ([], ["good.pickle", "good.pickle"], True), "export": ([], ["good.vram"], True),
    "top": (["--once"], ["good.vram"], True), "convert": (["-o", "out.json"], ["good.pickle"], False),
    "symbolize": (["-o", "out.json"], ["good.pickle"], True), "flame": (["-o", "out.svg"], ["good.pickle"], False),
    "view": (["--no-open", "-o", "out.html"], ["good.pickle"], False),
}
OTHERS = ["run", "sim", "check", "doctor", "attach"]
# Exit codes of bare commands; the others report what is missing.
BARE = {"view": {0, 4}, "top": {0}, "doctor": {0, 1, 4}}
NOT_RECORDINGS = ["absent", "dir", "empty", "/dev/null", "/dev/zero", "fifo", "dir/absent", "good.pickle/x", "secret"]


class Stranger:
    def __init__(self, vram, folder):
        self.vram, self.folder, self.found, self.count = vram, folder, [], 0
        self.env = {k: v for k, v in os.environ.items() if k not in ("VRAM_STYLE", "COLUMNS", "NO_COLOR", "DISPLAY", "BROWSER")}
        self.env.update(LC_ALL="C", TMPDIR=folder)

    def run(self, arguments, situation="", stdin=subprocess.DEVNULL, closed=(), env=None, **files):
        """Returns the result; closed: descriptors closed before the command starts."""
        self.count += 1
        self.what = "vram %s%s" % (" ".join(arguments), situation and " (%s)" % situation)
        files.setdefault("stdout", subprocess.PIPE)
        files.setdefault("stderr", subprocess.PIPE)
        shut = "".join(" %d>&-" % number for number in closed)
        command = ["sh", "-c", 'exec "$0" "$@"' + shut, self.vram] + arguments if closed else [self.vram] + arguments
        try:
            done = subprocess.run(command, cwd=self.folder, env=dict(self.env, **(env or {})), stdin=stdin, timeout=TIMEOUT, **files)
        except subprocess.TimeoutExpired:
            self.found.append("%s: still running after %d s" % (self.what, TIMEOUT))
            return None
        for name in os.listdir(self.folder):
            if name.startswith("out."):
                os.unlink(os.path.join(self.folder, name))
        return done

    def expect(self, done, codes, lines=None, words=(), prints=None):
        """lines: number on standard error; prints: whether standard output has anything."""
        if done is None:
            return
        err = (done.stderr or b"").decode(errors="replace")
        wrong = []
        if done.returncode not in codes:
            wrong.append("exit code %d, not of %s" % (done.returncode, sorted(codes)))
        if lines is not None and len(err.splitlines()) != lines:
            wrong.append("%d lines on standard error, not %d" % (len(err.splitlines()), lines))
        if not all(word in err for word in words):
            wrong.append("does not say %s" % (words,))
        if prints is not None and bool(done.stdout) != prints:
            wrong.append("%d bytes on standard output" % len(done.stdout or b""))
        if wrong:
            self.found.append("%s: %s: %r" % (self.what, "; ".join(wrong), err[:300]))


def help_and_mistakes(s):
    for command in [*READERS, *OTHERS]:
        for arguments in ([command, "--help"], [command, "-h"], ["help", command], [command, "absent", "--help"]):
            done = s.run(arguments)
            s.expect(done, {0}, 0, prints=True)
            if done is not None and not done.stdout.startswith(b"vram %s " % command.encode()):
                s.found.append("%s: begins with %r" % (s.what, done.stdout[:40]))
        done = s.run([command] + (["--no-open"] if command == "view" else []))
        if command in BARE:
            s.expect(done, BARE[command], prints=done is not None and done.returncode != 4 or command == "doctor")
        else:
            s.expect(done, {2}, 2, ("vram: %s needs " % command, "Try 'vram %s --help'." % command), False)
        s.expect(s.run([command, "--no-such-option", "x"]), {2}, 2, ("'--no-such-option'", "Try 'vram %s --help'." % command), False)
        s.expect(s.run([command, "-?", "x"]), {2}, 2, ("'-?'",), False)
    for operands in (["doctor", "x"], ["attach", "1", "status", "x"], ["convert", "-o", "out.json", "a", "x"], ["diff", "a", "b", "x"]):
        s.expect(s.run(operands), {2}, 2, ("unexpected argument 'x'",), False)
    s.expect(s.run(["reprot", "x"]), {2}, 2, ("'reprot'", "'report'"), False)
    s.expect(s.run([""]), {2}, 2, ("unknown command",), False)
    s.expect(s.run(["help", "nothing"]), {2}, 2, ("'nothing'",), False)


def not_recordings(s):
    for command, (options, good, _) in READERS.items():
        for name in NOT_RECORDINGS:
            writer = None
            if name == "fifo":  # opens it and closes it again
                writer = subprocess.Popen(["sh", "-c", ": > fifo"], cwd=s.folder)
            done = s.run([command, *options, *good[1:], name])
            # Root can read everything.
            if name == "secret" and os.geteuid() == 0:
                s.expect(done, {0, 1, 4} if command == "view" else {0, 1})  # 4: built without the page
            else:
                s.expect(done, {3, 4} if command == "view" else {3}, 1, () if done is not None and done.returncode == 4 else (name,), False)
            if done is not None and done.stderr.decode().count(name + ": ") > 1:
                s.found.append("%s: says the name twice: %r" % (s.what, done.stderr))
            if writer is not None:  # the writer waits forever if the command opened nothing
                end = os.open(os.path.join(s.folder, "fifo"), os.O_RDONLY | os.O_NONBLOCK)
                writer.wait()
                os.close(end)
        if command != "diff":
            s.expect(s.run([command, *options, "-"], "nothing comes"), {3, 4}, 1, prints=False)
            s.expect(s.run([command, *options, "-"], "standard input is closed", closed=(0,)), {3, 4}, 1, prints=False)


def outputs(s):
    for command, (options, good, prints) in READERS.items():
        normal = s.run([command, *options, *good])
        s.expect(normal, {0, 4} if command == "view" else {0}, prints=prints)
        if normal is None or normal.returncode == 4:
            continue
        s.expect(s.run([command, *options, *good], "standard input is closed", closed=(0,)), {0}, 0, prints=prints)
        for arguments, full in (([command, *options, *good], {3} if prints else {0}), ([command, "--help"], {3})):
            with open("/dev/full", "wb") as disk:
                s.expect(s.run(arguments, "the disk is full", stdout=disk), full, len(full - {0}), ("standard output",) * len(full - {0}))
            s.expect(s.run(arguments, "standard output is closed", closed=(1,)), full, len(full - {0}), ("standard output",) * len(full - {0}))
            reading, writing = os.pipe()
            os.close(reading)  # its reader is gone
            s.expect(s.run(arguments, "nobody reads", stdout=writing), {-signal.SIGPIPE} if 3 in full else {0}, 0)
            os.close(writing)
        s.expect(s.run([command, *options, *good], "standard error is closed", closed=(2,)), {0}, prints=prints)
        s.expect(s.run([command, *options, "absent", *good[1:]], "standard error is closed", closed=(2,)), {3}, prints=False)
        if not prints or command == "export":
            place = {"convert": ["--to", "json"], "view": ["--no-open"]}.get(command, [])
            s.expect(s.run([command, *place, "-o", "/dev/full", *good]), {3}, 1, ("/dev/full",), False)
            with open("/dev/full", "wb") as disk:
                s.expect(s.run([command, *place, "-o", "-", *good], "the disk is full", stdout=disk), {3}, 1, ("standard output",))


def on_a_terminal(s, arguments, **env):
    """Returns what the command writes to a terminal."""
    inside, outside = pty.openpty()
    pieces = []

    def read():
        try:
            while not pieces or pieces[-1]:
                pieces.append(os.read(inside, 65536))
        except OSError:  # the end of a terminal
            pass
    reader = threading.Thread(target=read)
    reader.start()
    done = s.run(arguments, "on a terminal", stdout=outside, stderr=outside, env=dict({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}, **env))
    os.close(outside)
    reader.join()
    os.close(inside)
    s.expect(done, {0, 1, 4})
    return b"".join(pieces).decode(errors="replace")


def terminals(s):
    for command in ("report", "replay", "tune", "leaks", "diff", "top", "doctor"):
        options, good, _ = READERS.get(command, ([], [], True))
        arguments = [command, *options, *good]
        coloured = on_a_terminal(s, arguments)
        if command in ("report", "tune", "doctor", "top") and "\x1b[" not in coloured:
            s.found.append("%s: no colour on a terminal" % s.what)
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            plain = on_a_terminal(s, arguments, **env)
            if "\x1b" in plain.replace("\x1b[K", ""):
                s.found.append("%s: colour with %s" % (s.what, env))
        for columns in ("40", "80", "0", "-1", "99999999999999999999", "wide"):
            text = on_a_terminal(s, arguments, COLUMNS=columns, NO_COLOR="1")
            if not text.strip():
                s.found.append("%s: nothing at COLUMNS=%s" % (s.what, columns))


def widths(s):
    """Help fits the terminal, up to a readable width."""
    for command in ["", *READERS, *OTHERS]:
        for columns, most in (("40", 60), ("80", 80), ("300", 140)):
            text = on_a_terminal(s, ([command] if command else []) + ["--help"], COLUMNS=columns)
            examples = False
            for line in text.splitlines():
                examples = examples or line == "Examples:"
                if len(line) > most and not examples:  # lines to paste are not wrapped
                    s.found.append("%s: %d columns at COLUMNS=%s: %r" % (s.what, len(line), columns, line))
    for line in on_a_terminal(s, ["doctor", "--sim"], COLUMNS="80", NO_COLOR="1").splitlines():
        if len(line) > 80 and "/" not in line:
            s.found.append("%s: %r" % (s.what, line))


def main(vram):
    with tempfile.TemporaryDirectory() as folder:
        s = Stranger(os.path.abspath(vram), folder)
        for name, data in (("good.pickle", pickle.dumps(recording(), 4)), ("empty", b"")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        os.mkdir(os.path.join(folder, "dir"))
        os.mkfifo(os.path.join(folder, "fifo"))
        for name in ("good.vram", "secret"):
            subprocess.run([s.vram, "convert", "--to", "vram", "-o", name, "good.pickle"], cwd=folder, check=True)
        os.chmod(os.path.join(folder, "secret"), 0)
        help_and_mistakes(s)
        not_recordings(s)
        outputs(s)
        terminals(s)
        widths(s)
    for line in s.found:
        print(line)
    print("%d cases, %d wrong" % (s.count, len(s.found)))
    return 1 if s.found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
