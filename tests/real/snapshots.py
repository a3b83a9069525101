"""Compares two PyTorch memory snapshots of one program, one made on a GPU and one here. Peaks are computed from the events (requested
bytes)."""
import array
import base64
import collections
import io
import json
import pickle
import re

FREES = ("free_requested", "free")
USER = ("alloc", "free_requested", "free_completed", "free")
MOVES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


class Plain(pickle.Unpickler):
    """Unpickles plain values only, and rejects every object."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"refused {module}.{name}")

    def persistent_load(self, pid):
        raise pickle.UnpicklingError("refused")


def load(path):
    data = path.read_bytes()
    if data[:1] != b"\x80":
        packed = re.search(rb'"base64":\s*"([^"]+)"', data)
        if not packed:
            return as_dict(json.loads(data))
        data = base64.b64decode(packed.group(1))
    return as_dict(Plain(io.BytesIO(data)).load())


def as_dict(data):
    return data if isinstance(data, dict) else {"segments": data, "device_traces": []}


class Snapshot:
    def __init__(self, path, device=0):
        data = load(path)
        traces = data["device_traces"]
        self.trace = traces[device] if device < len(traces) else []
        self.segments = [segment for segment in data["segments"] if segment["device"] == device]
        self.user = [(event["action"], event["size"]) for event in self.trace if event["action"] in USER]
        self.sizes = [size for action, size in self.user if action == "alloc"]
        self.moves = [(event["action"], event["size"]) for event in self.trace if event["action"] in MOVES]
        self.start = self.live_at_start()
        self.allocated_peak = self.peak_allocated()
        self.reserved_peak = self.peak_reserved()

    def live_at_end(self):
        live = {}
        for segment in self.segments:
            at = segment["address"]
            for block in segment["blocks"]:
                address = block.get("address", at)
                at = address + block["size"]
                if block["state"] == "active_allocated":
                    live[address] = block.get("requested_size", block["size"])
        return live

    def live_at_start(self):
        """Returns the memory allocated before the first event: the final state with the events undone."""
        live = self.live_at_end()
        for event in reversed(self.trace):
            if event["action"] == "alloc":
                live.pop(event["addr"], None)
            elif event["action"] in FREES:
                live[event["addr"]] = event["size"]
        return live

    def live_along(self):
        """Returns the requested bytes before each entry of the trace, and after the last."""
        live, total = dict(self.start), sum(self.start.values())
        along = [total]
        for event in self.trace:
            if event["action"] == "alloc":
                total += event["size"] - live.pop(event["addr"], 0)
                live[event["addr"]] = event["size"]
            elif event["action"] in FREES:
                total -= live.pop(event["addr"], 0)
            along.append(total)
        return along

    def peak_allocated(self, window=None):
        """Returns the highest sum of requested bytes, within a window (first entry, one after the last) if one is given."""
        begin, end = window or (0, len(self.trace))
        return max(self.live_along()[begin : end + 1])

    def peak_reserved(self, window=None):
        begin, end = window or (0, len(self.trace))
        now = sum(segment["total_size"] for segment in self.segments) - sum(MOVES[action] * size for action, size in self.moves)
        along = [now]
        for event in self.trace:
            now += MOVES.get(event["action"], 0) * event["size"]
            along.append(now)
        return max(along[begin : end + 1])


def find_sequences(all_items, part):
    """Returns every index at which `part` occurs in `all_items`."""
    numbers, found = {}, []
    pack = lambda items: array.array("Q", (numbers.setdefault(item, len(numbers)) for item in items)).tobytes()
    text, wanted = pack(all_items), pack(part)
    at = text.find(wanted)
    while at >= 0:
        if at % 8 == 0:
            found.append(at // 8)
        at = text.find(wanted, at + 1)
    return found


def windows_of(whole, part):
    """Returns the ranges (first entry, one after the last) of a whole program's trace that match another run's shorter history. The order
    of frees does not matter. If the history begins with freed segments, so do the ranges."""
    lead = next((i for i, event in enumerate(part.trace) if event["action"] in USER), 0)
    for wanted in (lambda event: event["action"] in USER, lambda event: event["action"] == "alloc"):
        places = [i for i, event in enumerate(whole.trace) if wanted(event)]
        items = [[(event["action"], event["size"]) for event in side.trace if wanted(event)] for side in (whole, part)]
        found = find_sequences(*items) if items[1] else []
        ends = [*places, len(whole.trace)]
        if found:
            return [(max(0, places[at] - lead), ends[at + len(items[1])]) for at in found]
    return []


def window_of(whole, part):
    """Returns the first matching range with the same live bytes at its beginning as the part, else the last range: a step's forward pass
    has the same events as a forward pass alone."""
    live, begun = whole.live_along(), sum(part.start.values())
    found = windows_of(whole, part)
    return next((window for window in found if live[window[0]] == begun), found[-1] if found else None)


def sorted_frees(user):
    """Sorts consecutive frees by size: a cache keyed by host addresses is cleared in any order."""
    out, run = [], []
    for action, size in user:
        if action == "alloc":
            out += sorted(run) + [(action, size)]
            run = []
        else:
            run.append((action, size))
    return out + sorted(run)


def common(a, b):
    """Returns the length of the longest common subsequence, with the bits of a number as one row (Hyyrö 2004)."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    where = collections.defaultdict(int)
    for i, item in enumerate(a):
        where[item] |= 1 << i
    full = (1 << len(a)) - 1
    row = full
    for item in b:
        met = row & where.get(item, 0)
        row = ((row + met) | (row - met)) & full
    return head + tail + len(a) - row.bit_count()


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return f"event {i}: {x[0]} {x[1]:,} recorded, {y[0]} {y[1]:,} here"
    return "" if len(a) == len(b) else f"{len(a)} events recorded, {len(b)} here"


def only_in(a, b, most=6):
    left = collections.Counter(a) - collections.Counter(b)
    rows = sorted(left.items(), key=lambda item: -item[0] * item[1])[:most]
    return ", ".join(f"{count} x {size:,}" for size, count in rows)


def compare(recorded, here):
    return {
        "events": len(recorded.user),
        "equal": common(recorded.user, here.user),
        "equal_any_order_of_frees": common(sorted_frees(recorded.user), sorted_frees(here.user)),
        "sizes": len(recorded.sizes),
        "sizes_equal": common(recorded.sizes, here.sizes),
        "sizes_here": len(here.sizes),
        "allocated": [recorded.allocated_peak, here.allocated_peak],
        "reserved": [recorded.reserved_peak, here.reserved_peak],
        "start": [sum(recorded.start.values()), sum(here.start.values())],
        "segments_equal": [sum((collections.Counter(recorded.moves) & collections.Counter(here.moves)).values()), len(recorded.moves), len(here.moves)],
    }


def explain(recorded, here):
    """Returns lines that describe the differences."""
    lines = [first_difference(recorded.user, here.user), f"sizes only recorded: {only_in(recorded.sizes, here.sizes)}",
             f"sizes only here: {only_in(here.sizes, recorded.sizes)}",
             f"before the trace only recorded: {only_in(recorded.start.values(), here.start.values())}",
             f"before the trace only here: {only_in(here.start.values(), recorded.start.values())}"]
    return [line for line in lines if line and not line.endswith(": ")]
