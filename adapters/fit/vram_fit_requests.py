"""Requests for a model server under `vram fit --requests`: plays them inside the engine's process, at its scheduler, and writes what the scheduler
counted. The engine's own loop, a single thread, plays them, so the same requests give the same steps on every run.

The command writes the requests into the file `requests` of the run's folder, a line each: arrival in ns, tokens of the prompt, tokens of the output,
and pieces ID:TOKENS of the prompt that other requests also have. The last line, `together N`, is the number of requests that may be in the
engine at once (0: any number). The clock is virtual: a step takes the time that the card needs at its peak (vram_fit_pace.py).

Each engine has a file vram_fit_requests_ENGINE.py. It adds the requests that are due before each step, and reads the scheduler's figures."""
import collections
import os
import time

import _vram_shared as shared

FILE, FACTS = "requests", "played"
OWN = 9  # tokens at the beginning of a prompt that encode its number


class Request:
    """A request to play. `prompt` makes its tokens."""

    def __init__(self, number, line):
        arrival, prompt, output, *pieces = line.split()
        self.number, self.arrival, self.prompt_tokens, self.output_tokens = number, int(arrival), int(prompt), int(output)
        self.pieces = [tuple(map(int, piece.split(":"))) for piece in pieces]

    def prompt(self, vocabulary):
        """Returns token ids. Equal pieces have equal tokens; the rest of the prompt is like no other request's."""
        tokens = [token for piece, count in self.pieces for token in numbered(1 + 2 * piece, count, vocabulary)]
        return tokens[: self.prompt_tokens] + numbered(2 * self.number, self.prompt_tokens - len(tokens), vocabulary)


def numbered(number, count, vocabulary):
    """Returns `count` token ids that begin with the digits of `number`."""
    base = min(vocabulary, 1 << 16)
    digits = [number // base**i % base for i in range(OWN)]
    return (digits + list(range(base)) * (count // base + 1))[: max(count, 0)]


def read(folder):
    """Returns the requests by arrival, and how many may be in the engine at once."""
    with open(os.path.join(folder, FILE), encoding="ascii") as file:
        *lines, last = file.read().splitlines()
    return collections.deque(Request(number, line) for number, line in enumerate(lines)), int(last.split()[1])


class Played:
    """The requests, the virtual clock, and the facts about them (cli/fit_played.h)."""

    def __init__(self, folder):
        self.folder = folder
        self.coming, self.together = read(folder)
        self.now = 0  # ns
        self.inside = 0  # requests that the engine has not finished
        self.begun = time.time_ns() // 1000
        self.facts = collections.Counter(asked=len(self.coming), concurrency=self.together)

    def due(self):
        """Takes the requests that have arrived. If the engine is idle, the clock goes on to the next arrival."""
        if self.inside == 0 and self.coming:
            self.now = max(self.now, self.coming[0].arrival)
        while self.coming and self.coming[0].arrival <= self.now and (self.together == 0 or self.inside < self.together):
            yield self.coming.popleft()

    def most(self, name, value, at=None):
        """Keeps the largest value of a fact, and when it was first reached."""
        if value > self.facts[name]:
            self.facts[name] = value
            if at is not None:
                self.facts[at] = self.now

    def refuse(self, request):
        total = request.prompt_tokens + request.output_tokens
        self.facts["refused"] += 1
        self.facts["refused_tokens"] = min(total, self.facts["refused_tokens"] or total)

    def is_over(self):
        return not self.coming and self.inside == 0

    def end(self, recorder):
        """Writes the facts, and ends the run."""
        self.write()
        recorder.serving.passed("serving", self.begun)
        recorder.finish("played")

    def write(self):
        self.facts["lasted_ns"] = self.now
        path = os.path.join(self.folder, FACTS)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.writelines(f"{name} {value}\n" for name, value in self.facts.items())
        os.rename(path + ".new", path)


ENGINES = ("vllm", "sglang")


def modules(recorder):
    """Maps each module to the function to call after its import."""
    if not os.path.exists(os.path.join(os.environ["VRAM_FIT"], FILE)):
        return {}
    for name in ("vram_fit_pace", "vram_fit_plan"):
        shared.part(name)  # other processes of the engine call their functions by name
    found = {}
    for engine in ENGINES:
        found.update(shared.part(f"vram_fit_requests_{engine}").modules(recorder))
    return found
