#!/usr/bin/env python3
"""Sends mutated messages to the servers of the shipped command, and damages files that other processes read about a running program.
usage: servers.py --vram VRAM [--seed N] [--count COUNT] [--only KIND] [--without KIND] [--first I]
  KIND: mcp export view session control environment

`vram mcp` gets lines, `vram export --listen` and `vram view --serve` get requests; after each batch the same server must answer an ordinary
question, and at the end it must exit normally. `vram sim` programs get session files, `vram top` and `vram attach` get a process's control
pages and recordings, and programs under `vram sim` get variables; each must exit with its own code, never by a signal. COUNT (default 2000)
counts all messages; files, each of which starts a process, are fewer. Batch I of a seed is always the same.
"""
import argparse
import errno
import json
import mmap
import os
import pickle
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

BATCH = 50
SECONDS = 60
found = []

EDGES = [0, 1, -1, 2, 9, 63, 64, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -2**63, 10**30, 0.5, -0.0, 1e-320, 1e308]
WORDS = ["", "a", "0", "x" * 5000, "\u0000", "\ud800", "\U0001f600", "\x1b[31m", "%s%n", "../..", "*", "(", "[", "0x0", "0xffffffffffffffff", "b7f0_0", "80GiB", "1e400GiB",
         "-1GiB", "stack", "category", "peak", "end", "all", "8=good.pickle", "=", "8=", "nan=good.pickle"]
CONFS = ["large_segment_size_mb:24,max_split_size_mb:50,large_segment_size_mb:60", "max_split_size_mb:17592186044415,large_segment_size_mb:18446744073709551615",
         "roundup_power2_divisions:[>:4]", "garbage_collection_threshold:1e-320", "paged:True,expandable_segments:True", "backend:cudaMallocAsync", ":", "[", "pytorch:2.0"]
FILES = ["good.pickle", "oom.pickle", "damaged.pickle", "empty", ".", "/", "/dev/null", "missing", "good.pickle/", "conf0.pickle", "conf1.pickle", "conf2.pickle", "conf3.pickle",
         "conf4.pickle", "conf5.pickle", "good.vram"]
QUERIES = ["list", "curve", "timeline", "segments", "map", "state", "events", "event", "allocations", "groups", "tree", "leaks", "churn", "ranks", "steps", "allocation",
           "settings", "prepare", "nonsense", ""]
PARAMETERS = ["pixels", "event", "row", "every", "from", "to", "first", "count", "device", "rank", "file", "by", "match", "address", "x"]


def recording(conf, failed):
    frames = [{"filename": "a.py", "line": 1, "name": "f"}]
    base, mib = 1 << 40, 1 << 20
    trace = [{"action": "segment_alloc", "addr": base, "size": 20 * mib, "stream": 0, "frames": frames, "time_us": 0},
             {"action": "alloc", "addr": base, "size": 5 * mib, "stream": 0, "frames": frames, "time_us": 1}]
    if failed:
        trace.append({"action": "oom", "addr": mib, "size": 1 << 30, "stream": 0, "frames": frames, "time_us": 2, "device_free": mib})
    block = {"size": 5 * mib, "requested_size": 5 * mib, "state": "active_allocated", "frames": frames}
    segment = {"device": 0, "address": base, "total_size": 20 * mib, "allocated_size": 5 * mib, "active_size": 5 * mib, "requested_size": 5 * mib, "stream": 0,
               "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": frames,
               "blocks": [{"address": base, **block}, {"address": base + 5 * mib, "size": 15 * mib, "requested_size": 0, "state": "inactive", "frames": []}]}
    settings = {"PYTORCH_CUDA_ALLOC_CONF": conf, "last_allocator_settings": conf}
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": settings, "external_annotations": []}


def write_files(vram, folder):
    """Makes the recordings that the requests name."""
    def put(name, value):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(value)
    put("good.pickle", pickle.dumps(recording("", False)))
    put("oom.pickle", pickle.dumps(recording("max_split_size_mb:32", True)))
    put("damaged.pickle", pickle.dumps(recording("", True))[:-40])
    put("empty", b"")
    for number, conf in enumerate(CONFS):
        put(f"conf{number}.pickle", pickle.dumps(recording(conf, True)))
    subprocess.run([vram, "convert", "good.pickle", "-o", "good.vram"], cwd=folder, check=True)


def mutated(draw, data):
    """Changes, removes or duplicates a few bytes, or cuts the end."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        if not data:
            break
        at = draw.randrange(len(data))
        kind = draw.randrange(6)
        if kind == 0:
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[at] = draw.choice(b'\x00\xff{}[]",:\\/ ?&=%-+.eE0919\t\r')
        elif kind == 2:
            del data[at:at + draw.choice((1, 2, 9, 100))]
        elif kind == 3:
            data[at:at] = data[at:at + draw.choice((1, 2, 9, 100))] * draw.choice((1, 1, 30))
        elif kind == 4:
            data[at:at] = str(draw.choice(EDGES)).encode()
        elif draw.randrange(4) == 0:
            del data[at:]
    return bytes(data)


# --- vram mcp ---------------------------------------------------------------------------------------------------------------------------

def value(draw, kind):
    if kind == "integer" or kind == "number":
        return draw.choice(EDGES)
    if kind == "array":
        return [value(draw, draw.choice(("string", "number"))) for _ in range(draw.randrange(5))]
    return draw.choice(WORDS)


def argument(draw, name, kind):
    if draw.randrange(12) == 0:
        return draw.choice([None, True, [], {}, {"a": [1]}, 1.5, "x", -1])
    if name in ("path", "file", "recording", "before", "after"):
        return draw.choice(FILES)
    if name == "runs" and draw.randrange(2) == 0:
        return [f"{draw.choice(EDGES)}={draw.choice(FILES)}" for _ in range(draw.randrange(1, 4))]
    return value(draw, kind)


def message(draw, tools):
    kind = draw.randrange(12)
    identity = draw.choice([1, "a", None, 1.5, -1, 2**70, "\u0000", {}])
    if kind == 0:
        return {"jsonrpc": draw.choice(["2.0", "1.0", 2, None]), "id": identity, "method": draw.choice(["initialize", "tools/list", "ping", "x", "", None, 5])}
    if kind == 1:
        return draw.choice([[], {}, 1, "x", None, [[[]]], {"method": "notifications/cancelled", "params": {"requestId": 1}}])
    tool = draw.choice(tools)
    given = {name: argument(draw, name, fact.get("type")) for name, fact in tool["inputSchema"]["properties"].items()
             if name in tool["inputSchema"]["required"] or draw.randrange(2) == 0}
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": {"name": tool["name"], "arguments": given}}


class Mcp:
    """A server that runs no programs, because a mutated message must not start one."""

    def __init__(self, vram, folder):
        self.process = subprocess.Popen([vram, "mcp", "--no-programs"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.number = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "servers", "version": "1"}}
        self.ask("initialize", client)
        self.tools = self.ask("tools/list", {})["result"]["tools"]

    def send(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, method, parameters):
        self.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": parameters}).encode())
        return json.loads(self.process.stdout.readline())

    def batch(self, draw, name):
        """Sends mutated messages, then one that must be answered; every line in between must be JSON."""
        for _ in range(BATCH):
            line = json.dumps(message(draw, self.tools)).encode()
            try:
                self.send((mutated(draw, line) if draw.randrange(2) else line).replace(b"\n", b" "))
                answered = self.ping()
            except BrokenPipeError:
                answered = False
            if not answered:
                found.append(f"{name}: mcp ended by {self.process.wait()} after {line[:2000]!r}: {self.process.stderr.read()[-2000:]!r}")
                return False
        return True

    def ping(self):
        """Checks that the server answers, and that every line before the answer is JSON."""
        self.number += 1
        wanted = f"ping {self.number}"
        self.send(json.dumps({"jsonrpc": "2.0", "id": wanted, "method": "ping"}).encode())
        while answer := self.process.stdout.readline():
            if json.loads(answer).get("id") == wanted:
                return True
        return False

    def end(self, name):
        self.process.stdin.close()
        errors = self.process.stderr.read()
        if self.process.wait(timeout=SECONDS) != 0 or errors:
            found.append(f"{name}: mcp ended with {self.process.returncode}, {errors[:1000]!r}")


def attack_mcp(vram, folder, draw, name):
    server = Mcp(vram, folder)
    # Waiting for an answer that never comes could take forever.
    watch = signal.signal(signal.SIGALRM, lambda *_: server.process.kill())
    signal.alarm(5 * SECONDS)
    good = server.batch(draw, name)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, watch)
    if good:
        server.end(name)
    return BATCH


# --- HTTP ---------------------------------------------------------------------------------------------------------------------------------

def escaped(draw, text):
    return "".join(f"%{byte:02X}" if draw.randrange(3) == 0 else chr(byte) for byte in text.encode(errors="surrogatepass") if byte > 32)


def target(draw, start):
    """Returns a path of the viewer or the exporter."""
    if draw.randrange(5) == 0:
        return draw.choice(["/metrics", "/", start, "/metrics?x", "*", "/../etc/passwd", start + "..", "/" + "a" * 17000, "http://127.0.0.1/metrics", ""])
    query = "&".join(f"{draw.choice(PARAMETERS)}={escaped(draw, str(draw.choice(EDGES + WORDS)))}" for _ in range(draw.randrange(5)))
    return f"{start}ask?{draw.choice(QUERIES)}?{query}"


def request(draw, port, start):
    headers = [f"Host: {draw.choice(['127.0.0.1', 'localhost'])}:{port}"]
    if draw.randrange(4) == 0:
        headers.append(draw.choice(["Connection: close", "Content-Length: 5", "Content-Length: 0", "Transfer-Encoding: chunked", "Sec-Fetch-Site: cross-site", "Host: x",
                                    "X: " + "y" * 20000, ": x", "X", "Expect: 100-continue"]))
    method = draw.choice(["GET", "GET", "GET", "GET", "HEAD", "POST", "get", "", "OPTIONS"])
    lines = [f"{method} {target(draw, start)} {draw.choice(['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2', ''])}"] + headers
    data = ("\r\n".join(lines) + "\r\n\r\n").encode()
    return mutated(draw, data) if draw.randrange(2) else data


def answers(port, data, draw):
    """Sends the request, whole or in pieces, and reads the answer for a moment, or does not wait for it."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            cut = draw.randrange(len(data) + 1) if draw.randrange(4) == 0 else len(data)
            connection.sendall(data[:cut])
            connection.sendall(data[cut:] * draw.choice((1, 1, 1, 3)))
            if draw.randrange(4) == 0:
                return b""  # the connection ends before the answer
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
            return b"".join(parts)
        except OSError as error:
            # The server may end a connection before a long request is complete.
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
                raise
            return b""


def serves(port, path):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        return connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def attack_http(command, folder, draw, name):
    server = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = (server.stderr if "export" in command else server.stdout).readline()
    port, path = re.search(r"http://127\.0\.0\.1:(\d+)(/\S*)", line).groups()
    port, start = int(port), path if "view" in command else "/"
    try:
        for _ in range(BATCH):
            data = request(draw, port, start)
            answer = answers(port, data, draw)
            if answer and not re.match(rb"HTTP/1\.1 \d{3} ", answer):
                found.append(f"{name}: {data[:1000]!r} was answered {answer[:200]!r}")
        if not serves(port, path):
            found.append(f"{name}: an ordinary request is not answered any more")
    except OSError as error:
        found.append(f"{name}: {error} after {data[:2000]!r}")
    server.send_signal(signal.SIGTERM)
    errors = server.communicate(timeout=SECONDS)[1]
    if server.returncode not in (0, -signal.SIGTERM, 130, 143) or "Assertion" in errors:
        found.append(f"{name}: {command[1]} ended with {server.returncode}, {errors[-1000:]!r}; the last request was {data[:2000]!r}")
    return BATCH


# --- files that other processes read-------------------------------------------------------------------------------------------------------

def words(draw, count):
    return b"".join((draw.choice([0, 1, 255, 256, 257, 2**31, 2**32 - 1, 2**63, 2**64 - 1, os.getpid(), draw.getrandbits(64)])).to_bytes(8, "little") for _ in range(count))


# Calls NVML, which sums the rows of a session.
ASK_NVML = """
import ctypes, sys
nvml, handle, room, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), (ctypes.c_ulonglong * 4096)(), ctypes.c_uint(16)
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(handle, room) == 0 and room[1] <= room[0] and room[2] <= room[0], list(room[:3])
nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), room)
sys.exit(7)
"""


def attack_session(vram, folder, draw, name):
    """Starts programs in a session whose file has arbitrary rows or length."""
    path = os.path.join(folder, "session")
    content = bytearray((0x316E6F6973736573).to_bytes(8, "little") + words(draw, 1) + words(draw, 66) * draw.choice((1, 4, 256)))
    content = content[:draw.choice((0, 7, 16, 100, len(content), len(content)))] + bytes(draw.choice((0, 0, 200000)))
    if draw.randrange(4) == 0:
        content = bytearray(mutated(draw, content))
    with open(path, "wb") as file:
        file.write(content)
    build = os.path.dirname(os.path.dirname(vram))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VRAM_")}
    environment.update(VRAM_SIM_SESSION=path, LD_LIBRARY_PATH=os.path.join(build, "simcuda"))
    for command in ([os.path.join(build, "tests/sim/sim_tiny"), "7"], [sys.executable, "-c", ASK_NVML]):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS, check=False)
        if done.returncode != 7:
            found.append(f"{name}: {command[0]} with this session file ended with {done.returncode}: {bytes(content[:64])!r}, {len(content)} bytes, {done.stderr[-500:]!r}")
    return 2


def attack_control(vram, folder, draw, name):
    """Makes this process look like a recorded program, with a damaged control page and mapped recording."""
    page = words(draw, 3)
    if draw.randrange(3):
        page = (0x314C54434D415256).to_bytes(8, "little") + page[8:]
    with open(os.path.join(folder, "good.vram"), "rb") as file:
        good = file.read()
    path = os.path.join(folder, "live.vram")
    with open(path, "wb") as file:
        file.write(mutated(draw, good) or b"\0")
    control = os.memfd_create("vram-control")
    os.write(control, page[:draw.choice((0, 8, 24, 24, 24))])
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        for command in (["top", "--json", str(os.getpid())], ["attach", str(os.getpid())], ["attach", "--pause", str(os.getpid())], ["report", "--json", path]):
            done = subprocess.run([vram, *command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
            if done.returncode < 0 or done.returncode > 4:
                found.append(f"{name}: {command} ended with {done.returncode}: {done.stderr[-1000:]!r}")
        del mapped
    os.close(control)
    return 4


VARIABLES = {"VRAM_SIM": ["devices=2,memory=16GiB,profile=dear,addresses=reuse,manual", "device=h100,reserve_base=0x302000000", "backed,kernel_ns=1,alloc_alignment=2MiB",
                          "alloc_base=18446744073709551615,reserve_base=18446744073709551615", "visible=1.0,devices=64", "alloc_small_alignment=0,alloc_alignment=3"],
             "VRAM_SIM_FAIL": ["cuMemAlloc_v2:3", "cuMemAlloc_v2:1:2", "cuInit", "x:-1", ":"], "VRAM_SIM_VALUES": ["item:max=3", "*:0", "a:b\nc:d", "item:true,item:false"],
             "VRAM_SIM_LOG": ["log", "/", ""], "VRAM_HISTORY": ["h.vram", "1000", ""], "VRAM_ON_OOM": ["report", "snapshot:x", ""], "VRAM_SIM_NCCL_SECONDS": ["1", "-1", "1e99"]}


def attack_environment(vram, folder, draw, name):
    """Runs a program on the simulated driver with arbitrary variables."""
    build = os.path.dirname(os.path.dirname(vram))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VRAM_")}
    environment["LD_LIBRARY_PATH"] = os.path.join(build, "simcuda")
    for variable in draw.sample(list(VARIABLES), draw.randrange(1, 4)):
        text = draw.choice(VARIABLES[variable])
        value = mutated(draw, text.encode()) if draw.randrange(3) else text.encode()
        environment[variable] = os.fsdecode(value.replace(b"\0", b"").replace(b"/", b""))
    given = {k: v for k, v in environment.items() if k.startswith("VRAM_")}
    for command in ([os.path.join(build, "tests/sim/sim_tiny"), "7"], [vram, "sim", "--set", given.get("VRAM_SIM", ""), "--", os.path.join(build, "tests/sim/sim_tiny"), "7"]):
        done = subprocess.run([os.fsencode(word) for word in command], cwd=folder, env=environment, capture_output=True, timeout=SECONDS, check=False)
        if done.returncode not in (7, 2, 3, 4):
            found.append(f"{name}: {command} with {given} ended with {done.returncode}: {done.stderr[-1000:]!r}")
    return 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vram", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only")
    parser.add_argument("--without")
    options = parser.parse_args()
    vram = os.path.abspath(options.vram)
    attacks = {"mcp": attack_mcp, "export": lambda *a: attack_http([vram, "export", "good.vram", "--listen", "0"], *a[1:]),
               "view": lambda *a: attack_http([vram, "view", "--serve", "--no-open", "oom.pickle"], *a[1:]), "session": attack_session, "control": attack_control,
               "environment": attack_environment}
    build = os.path.dirname(os.path.dirname(vram))
    if not all(os.path.exists(os.path.join(build, name)) for name in ("tests/sim/sim_tiny", "simcuda/libnvidia-ml.so.1")):
        del attacks["session"], attacks["environment"]  # a build without the simulated driver
    attacks.pop(options.without, None)
    names = [options.only] if options.only else list(attacks)
    sent, number = dict.fromkeys(names, 0), options.first
    with tempfile.TemporaryDirectory(prefix="vram-servers-") as folder:
        write_files(vram, folder)
        while sum(sent.values()) < options.count and len(found) < 10:
            kind = names[number % len(names)]
            label = f"batch {number} of seed {options.seed} ({kind})"
            sent[kind] += attacks[kind](vram, folder, random.Random(f"{options.seed} {number}"), label)
            number += 1
    for finding in found:
        print(finding)
    print(f"seed {options.seed}: " + ", ".join(f"{count} to {kind}" for kind, count in sent.items()) + f": {len(found)} findings")
    return len(found) != 0


if __name__ == "__main__":
    sys.exit(main())
