"""Returns the text of each surface for a recording: the command's report, its JSON, the page's answers, the agents' answers, and `vram
leaks`.

The page's answers come from `vram view --serve`, which runs the same C code natively that the page has as WebAssembly.
"""
import http.client
import json
import os
import re
import struct
import subprocess

ENVIRONMENT = {"COLUMNS": "4000", "LC_ALL": "C", "PATH": os.environ.get("PATH", "")}
QUESTIONS = ("list", "oom", "cure", "paged", "notes", "leaks")  # the contents of the page's first screen and of its card of an out-of-memory error
TOOLS = ("open", "summary", "why", "cure", "leaks")
LONG = 200  # seconds for one answer, since test machines are shared


def run(vram, *arguments, given=None):
    return subprocess.run([vram, *arguments], input=given, capture_output=True, text=True, timeout=LONG, env=ENVIRONMENT, check=False)


def lines_of(value, name=""):
    """Yields every value of a JSON tree as a line `name value`, so that patterns can match members and sentences."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from lines_of(one, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for one in value:
            yield from lines_of(one, name)
    else:
        yield f"{name} {value if isinstance(value, str) else json.dumps(value)}"


def text_of(value):
    return "\n".join(lines_of(value))


def report(vram, path, *options):
    return run(vram, "report", *options, path).stdout


def report_json(vram, path, *options):
    return json.loads(run(vram, "report", "--json", *options, path).stdout)


def leaks(vram, path):
    ran = run(vram, "leaks", path)
    return f"{ran.stdout}\nexit {ran.returncode}"


class Page:
    """The server of a page with one recording."""

    def __init__(self, vram, path):
        self.process = subprocess.Popen([vram, "view", "--serve", "--no-open", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        found = re.search(r"http://([^/]+)(/\S+)", self.process.stdout.readline())
        if not found:
            raise AssertionError(f"no page: {self.process.communicate(timeout=LONG)[1]}")
        self.connection, self.root = http.client.HTTPConnection(found[1], timeout=LONG), found[2]

    def ask(self, question):
        self.connection.request("GET", f"{self.root}ask?{question}")
        response = self.connection.getresponse()
        answer = response.read()
        if response.status != 200:  # a recording without a device has no answer
            return {"refused": answer.decode()}
        return json.loads(answer[8 : 8 + struct.unpack_from("<I", answer)[0]])

    def end(self):
        self.connection.close()
        self.process.kill()  # the test view.command checks how it ends
        self.process.communicate(timeout=LONG)


def page(vram, path):
    served = Page(vram, path)
    try:
        return "\n".join(text_of(served.ask(question)) for question in QUESTIONS)
    finally:
        served.end()


def agent_answers(vram, calls):
    """Returns the answers of `vram mcp` to calls of (tool, arguments), in order."""
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize"}]
    lines += [{"jsonrpc": "2.0", "id": i + 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}} for i, (tool, arguments) in enumerate(calls)]
    answers = run(vram, "mcp", "--no-programs", given="".join(json.dumps(line) + "\n" for line in lines)).stdout.splitlines()
    return [json.loads(line)["result"]["content"][0]["text"] for line in answers[1:]]


def agent(vram, path):
    return "\n".join(agent_answers(vram, [(tool, {"file": path}) for tool in TOOLS]))


ALL = {"report": report, "json": lambda vram, path: text_of(report_json(vram, path)), "page": page, "mcp": agent, "leaks": leaks}
