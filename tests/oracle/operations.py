"""Makes lists of random operations for oracle.py: each kind of play has its operations and settings. The same kind, seed, steps and version
of PyTorch give the same list (format.md)."""
import random

MIB = 1 << 20
STREAMS = 4


class Kind:
    """A kind of play: the weights of its operations, and the settings drawn per seed."""

    def __init__(self, weights, conf=("",), memory=("",), addresses=("rising",), devices=1, threads=1, streams=STREAMS, largest=300 * MIB,
                 live=8 << 30, since=(2, 6), pools=("",), fraction=None, until=(99, 0)):
        self.weights = {"malloc": 40, "free": 34, "empty": 0.3, "stream": 4, **weights}
        self.conf, self.memory, self.addresses, self.devices, self.threads = conf, memory, addresses, devices, threads
        self.streams, self.largest, self.live, self.since, self.pools = streams, largest, live, since, pools
        self.fraction, self.until = fraction, until


PENDING = {"record": 10, "wait": 3, "sync": 0.7}
CAPTURE = {"capture": 1.2, "endcapture": 1.5, "dropgraph": 0.5, "work": 8, "fork": 2.5, "join": 1, **PENDING}
POOLS = {"pool": 1, "droppool": 0.7, "use": 4, "unuse": 4, **PENDING}
SMALL = dict(memory=("1GiB", "1536MiB", "2GiB"), largest=160 * MIB, live=1 << 30)
EXPANDABLE = "expandable_segments:True"
KINDS = {
    "default": Kind({}, streams=1),
    "streams": Kind({"stream": 20}),
    "record_stream": Kind({"record": 25, "wait": 5, "sync": 1, "stream": 8}),
    "gc": Kind(PENDING, conf=("garbage_collection_threshold:0.6", "garbage_collection_threshold:0.8,max_split_size_mb:64",
                              "garbage_collection_threshold:0.3"), memory=("3GiB", "4GiB"), live=2 << 30, fraction=(0.4, 0.95)),
    "split": Kind(PENDING, conf=("max_split_size_mb:21", "max_split_size_mb:64", "max_split_size_mb:128"), memory=("4GiB", ""), live=3 << 30),
    "no_split_rounding": Kind(PENDING, conf=("max_split_size_mb:32,max_non_split_rounding_mb:64",
                                             "max_split_size_mb:64,max_non_split_rounding_mb:100"), memory=("4GiB",), live=3 << 30, since=(2, 7)),
    "roundup": Kind(PENDING, conf=("roundup_power2_divisions:4", "roundup_power2_divisions:[1:4,16:8,>:8]", "roundup_power2_divisions:16",
                                   "roundup_power2_divisions:[64:8,256:4,1024:4,>:4],max_split_size_mb:128")),
    "roundup_rest": Kind(PENDING, conf=("roundup_power2_divisions:[1:4,16:8,>:2]", "roundup_power2_divisions:[1:2,>:4]"), since=(2, 10)),
    "fraction": Kind({"fraction": 1, **PENDING}, fraction=(0.1, 1.0), memory=("3GiB",), live=2 << 30),
    "oom": Kind(PENDING, **SMALL),
    "oom_split": Kind(PENDING, conf=("max_split_size_mb:40", "max_split_size_mb:100,garbage_collection_threshold:0.7"), **SMALL),
    "expandable": Kind(PENDING, conf=(EXPANDABLE,)),
    "expandable_oom": Kind(PENDING, conf=(EXPANDABLE, EXPANDABLE + ",max_split_size_mb:100"), **SMALL),
    "reserve": Kind(PENDING, conf=(EXPANDABLE + ",expandable_segments_reserve:0.2", EXPANDABLE + ",expandable_segments_reserve:0.6"),
                    since=(2, 15), **SMALL),
    "falling": Kind(PENDING, addresses=("falling",), conf=("", "max_split_size_mb:64"), memory=("", "2GiB"), live=2 << 30, largest=100 * MIB),
    "reused": Kind({"empty": 2, **PENDING}, addresses=("reuse", "driver", "windows"), conf=("", "max_split_size_mb:64"),
                   memory=("", "2GiB"), live=2 << 30, largest=100 * MIB),
    "devices": Kind({"stream": 15, **PENDING}, devices=2, memory=("", "3GiB"), live=2 << 30, conf=("", EXPANDABLE)),
    "threads": Kind({"thread": 20, **PENDING}, threads=4),
    "settings": Kind({"conf": 1, **PENDING}, live=3 << 30),  # short of memory, a lower max_split_size makes PyTorch fail
    "capture": Kind(CAPTURE, conf=("", "max_split_size_mb:64", "roundup_power2_divisions:4")),
    "capture_reuse": Kind(CAPTURE, conf=("graph_capture_record_stream_reuse:True",), since=(2, 15)),
    "capture_oom": Kind(CAPTURE, conf=("",), **SMALL),
    "expandable_capture": Kind(CAPTURE, conf=(EXPANDABLE,)),
    "pools": Kind(POOLS, pools=("",)),
    "pools_oom": Kind(POOLS, **SMALL),
    "no_split": Kind(POOLS, pools=("", "no_split"), since=(2, 10)),
    "use_on_oom": Kind(POOLS, pools=("use_on_oom",), since=(2, 11), **SMALL),
    "pools_threads": Kind({"thread": 15, **POOLS}, threads=3, since=(2, 7)),
    "pools_capture": Kind({**CAPTURE, **POOLS}),
    "expandable_pools": Kind(POOLS, conf=(EXPANDABLE,)),
    "mixed": Kind({**CAPTURE, **POOLS, "conf": 0.2, "fraction": 0.2, "stream": 8}, devices=2, addresses=("rising", "falling", "reuse"),
                  memory=("", "6GiB"), live=3 << 30, conf=("", EXPANDABLE, "roundup_power2_divisions:8")),
    "pinned": Kind({"pin": 12, "unpin": 10, "pinuse": 8, "pinempty": 0.3, "wait": 5, "sync": 1, "malloc": 3, "free": 2, "stream": 0},
                   conf=("pinned_max_round_threshold_mb:128",), since=(2, 13), largest=20 * MIB),
}

def has(kind, version):
    """Returns whether a version can play a kind. In 2.12 each graph allocates its own two blocks for random numbers on the default stream,
    so captures are left out. 2.7 has no MemPool with expandable segments."""
    if version == (2, 7) and "pool" in KINDS[kind].weights and EXPANDABLE in KINDS[kind].conf:
        return False
    return KINDS[kind].since <= version < KINDS[kind].until and (version != (2, 12) or "capture" not in KINDS[kind].weights)


SETTINGS = ("", "max_split_size_mb:64", "roundup_power2_divisions:4", "expandable_segments:True", "expandable_segments:False",
            "garbage_collection_threshold:0.7", "expandable_segments:True,roundup_power2_divisions:[1:2,64:4,>:4]")
EDGES = (1, 511, 512, 513, 4096, MIB - 512, MIB - 1, MIB, MIB + 1, 2 * MIB, 10 * MIB - 1, 10 * MIB, 10 * MIB + 1, 18 * MIB, 19 * MIB, 20 * MIB,
         20 * MIB + 512, 21 * MIB, 64 * MIB, 64 * MIB - 512)


class Maker:
    def __init__(self, kind, seed, steps, version):
        self.kind, self.steps, self.version = KINDS[kind], steps, version
        self.name, self.seed = kind, seed
        self.random = random.Random(f"{kind} {seed}")
        self.lines = []
        self.next_id = self.next_pool = 0
        self.next_graph = 0
        self.live = {}                    # block -> (device, bytes, stream)
        self.bytes = 0
        self.recorded, self.captured = {}, {}  # block -> streams recorded outside and inside captures
        self.stale = False                # PyTorch remembers uses inside a capture longer than the block
        self.thread = 0
        self.current = {0: (0, 0)}        # thread -> (device, stream)
        self.pools = {}                   # MemPool -> device
        self.used = []                    # (thread, pool)
        self.shared = {}                  # pools of live graphs: pool -> device
        self.graphs = {}                  # graph -> pool
        self.references = {}
        self.capturing = None             # (graph, device, origin, participating streams)
        self.lender = None                # the pool with use_on_oom
        self.pinned = set()
        self.next_pin = 0

    def say(self, *words):
        self.lines.append(" ".join(str(word) for word in words))

    # --- the list -----------------------------------------------------------------------------------------------------------------------
    def make(self):
        pick = self.random.choice
        conf, memory, addresses = pick(self.kind.conf), pick(self.kind.memory), pick(self.kind.addresses)
        # PyTorch miscounts expandable segments in a pool that ends, and forgets the pool too early (differences.md).
        self.expandable = "expandable_segments:True" in conf
        # With live pools of graphs, the newest versions free oversize blocks under pressure and collect garbage (differences.md).
        unwanted = ["expandable"] * ("pool" in self.kind.weights) + ["max_split", "garbage"] * ("capture" in self.kind.weights)
        self.settings = [text for text in SETTINGS if not any(word in text for word in unwanted)]
        self.reuse = "graph_capture_record_stream_reuse" in conf
        sim = f"device=h100,devices={self.kind.devices},bytes=none,context=0,manual,addresses={addresses}"
        sim += f",memory={memory}" if memory else ""
        head = [f"# kind {self.name} seed {self.seed} steps {self.steps}", f"# sim {sim}", f"# devices {self.kind.devices}", f"# conf {conf}"]
        for device in reversed(range(self.kind.devices)):  # an unused device counts nothing
            self.go(device, 0)
            self.do_malloc()
        if "capture" in self.kind.weights:
            for device in reversed(range(self.kind.devices)):
                self.go(device, 1)
                self.say("generator")
        if self.kind.fraction:
            for device in range(self.kind.devices):
                self.fraction(device)
        names, weights = zip(*self.kind.weights.items())
        while len(self.lines) < self.steps:
            getattr(self, "do_" + self.random.choices(names, weights)[0])()
        self.finish()
        return head, self.lines

    def finish(self):
        if self.capturing:
            self.end_capture()
        for thread, pool in list(self.used):  # in some versions a snapshot taken inside a route shows only its pool
            self.go_thread(thread)
            self.go(self.pools[pool], self.current[thread][1])
            self.say("unuse", pool)
        self.say("stats")
        self.say("map")
        self.say("events")

    # --- helpers ------------------------------------------------------------------------------------------------------------------------
    def go(self, device, stream):
        if self.current[self.thread] != (device, stream):
            self.current[self.thread] = (device, stream)
            self.say("stream", device, stream)

    def go_thread(self, thread):
        if thread != self.thread:
            self.thread = thread
            self.current.setdefault(thread, (0, 0))
            self.say("thread", thread)

    def size(self):
        form = self.random.random()
        if form < 0.12:
            size = self.random.choice(EDGES)
        elif form < 0.13:
            size = 0
        elif form < 0.45:
            size = int(2 ** self.random.uniform(0, 20))
        elif form < 0.75:
            size = int(2 ** self.random.uniform(20, 24.5))
        else:
            size = int(2 ** self.random.uniform(23, 28.5))
        return min(size, self.kind.largest)

    def in_capture(self):
        return self.capturing is not None

    # --- operations -----------------------------------------------------------------------------------------------------------------------
    def do_malloc(self, size=None):
        size = self.size() if size is None else size
        for _ in range(200):
            if self.live and self.bytes + size > self.kind.live:
                self.free(self.random.choice(list(self.live)))
        self.next_id += 1
        self.say("malloc", self.next_id, size)
        self.live[self.next_id] = (*self.current[self.thread], size)
        self.bytes += size

    def free(self, block):
        # If a block with uses inside a capture is freed outside, a later block inherits them (differences.md). With reuse in captures such
        # frees are always skipped. Before 2.13 a route into a pool counts as a capture.
        putting_off = self.capturing or (self.version < (2, 13) and self.used)
        if putting_off and (self.stale or self.reuse) and block in self.recorded:
            return
        inside = self.capturing and self.capturing[1] == self.live[block][0]
        self.stale |= block in self.captured and not inside
        self.bytes -= self.live.pop(block)[2]
        self.say("free", block)

    def do_free(self):
        if self.live:
            blocks = list(self.live)
            self.free(self.random.choice(blocks[-12:] if self.random.random() < 0.5 else blocks))

    def do_record(self):
        if not self.live or (self.version < (2, 13) and self.used):  # a route forgets a use as a capture does
            return
        block = self.random.choice(list(self.live))
        device = self.live[block][0]
        if self.capturing and device != self.capturing[1]:
            return
        streams = sorted(self.capturing[3]) if self.capturing else range(self.kind.streams)
        stream = self.random.choice(list(streams))
        # PyTorch forgets a use outside captures if there is also one inside (differences.md).
        mine, other = (self.captured, self.recorded) if self.capturing else (self.recorded, self.captured)
        if stream not in other.get(block, ()):
            mine.setdefault(block, set()).add(stream)
            self.say("record", block, stream)

    def do_stream(self):
        if self.capturing:
            self.go(self.capturing[1], self.random.choice(sorted(self.capturing[3])))
        elif not any(thread == self.thread for thread, _ in self.used):
            self.go(self.random.randrange(self.kind.devices), self.random.randrange(self.kind.streams))
        else:
            self.go(self.current[self.thread][0], self.random.randrange(self.kind.streams))

    def do_thread(self):
        if not self.capturing:
            self.go_thread(self.random.randrange(self.kind.threads))

    def quiet(self):
        """Returns whether a capture may begin. Before 2.13 a route into a pool counts as a capture, and a capture in it aborts."""
        return not self.capturing and (self.version >= (2, 13) or not self.used)

    def do_empty(self):
        if self.quiet():
            self.say("empty")

    def do_wait(self):
        if not self.capturing:
            self.say("wait", self.random.randrange(self.kind.devices), self.random.randrange(self.kind.streams))

    def do_sync(self):
        if not self.capturing:
            self.say("sync")

    def do_work(self):
        self.say("work")

    def do_fork(self):
        here = self.current[self.thread][1]
        stream = self.random.randrange(1, self.kind.streams)
        if stream != here and (not self.capturing or stream not in self.capturing[3]):
            self.say("fork", stream)
            if self.capturing:
                self.capturing[3].add(stream)

    def do_join(self):
        here = self.current[self.thread][1]
        streams = sorted(self.capturing[3]) if self.capturing else range(1, self.kind.streams)
        stream = self.random.choice(list(streams))
        if stream != here:
            self.say("join", stream)

    def do_capture(self):
        if self.capturing or self.used:
            return
        device = self.random.randrange(self.kind.devices)
        self.go(device, self.random.randrange(1, self.kind.streams))
        self.next_graph += 1
        # A pool whose graphs are all destroyed accepts no further capture (differences.md).
        known = [pool for pool, at in {**self.shared, **self.pools}.items() if at == device and self.references.get(pool) != 0]
        if known and self.random.random() < 0.5:
            pool = self.random.choice(known)
        else:
            self.next_pool += 1
            pool = self.next_pool
            self.shared[pool] = device
        self.references[pool] = self.references.get(pool, 0) + 1
        self.graphs[self.next_graph] = pool
        self.say("capture", self.next_graph, pool)
        origin = self.current[self.thread][1]
        self.capturing = (self.next_graph, device, origin, {origin})
        self.say("work")

    def end_capture(self):
        graph, device, origin, streams = self.capturing
        self.go(device, origin)
        for stream in sorted(streams - {origin}):
            self.say("join", stream)
        self.capturing = None
        self.say("endcapture", graph)

    def do_endcapture(self):
        if self.capturing:
            self.end_capture()

    def do_dropgraph(self):
        open_graph = self.capturing[0] if self.capturing else None
        graphs = [graph for graph in self.graphs if graph != open_graph]
        if not graphs or self.capturing or self.expandable:
            return
        graph = self.random.choice(graphs)
        pool = self.graphs.pop(graph)
        self.references[pool] -= 1
        if self.references[pool] == 0:
            self.shared.pop(pool, None)
        self.say("dropgraph", graph)

    def do_pool(self):
        if self.capturing or len(self.pools) >= 4:
            return
        self.next_pool += 1
        self.pools[self.next_pool] = self.current[self.thread][0]
        options = self.random.choice(self.kind.pools)
        if "use_on_oom" in options:  # of several lending pools PyTorch chooses one by a hash of their ids (differences.md)
            options = options if self.lender not in self.pools else ""
            self.lender = self.next_pool if options else self.lender
        self.say("pool", self.next_pool, *options.split())

    def do_droppool(self):
        free = [pool for pool in self.pools if pool not in {used for _, used in self.used}]
        if self.version < (2, 13):  # ending a pool that a graph uses also aborts
            free = [pool for pool in free if not self.references.get(pool)]
        if free and self.quiet() and not self.expandable:
            pool = self.random.choice(free)
            if "capture" in self.kind.weights:
                # Frees deferred in a capture get their events in the order of a hash of addresses, which changes with each run of PyTorch,
                # and the end of a pool waits for some of them (differences.md). So none may be left.
                self.go(self.pools[pool], self.current[self.thread][1])
                self.do_malloc(1000)
                self.say("sync")
            del self.pools[pool]
            self.say("droppool", pool)

    def do_use(self):
        device = self.current[self.thread][0]
        free = [pool for pool, at in self.pools.items() if at == device and pool not in {used for _, used in self.used}]
        if self.used and self.version < (2, 13):  # of nested routes older versions use the outermost (differences.md)
            return
        if free and not self.capturing:
            pool = self.random.choice(free)
            self.used.append((self.thread, pool))
            self.say("use", pool)

    def do_unuse(self):
        mine = [pool for thread, pool in self.used if thread == self.thread]
        if mine and not self.capturing:
            pool = self.random.choice(mine)
            self.used.remove((self.thread, pool))
            self.go(self.pools[pool], self.current[self.thread][1])
            self.say("unuse", pool)

    def do_conf(self):
        if not self.capturing:
            self.say("conf", self.random.choice(self.settings))

    def fraction(self, device):
        low, high = self.kind.fraction or (0.05, 1.0)
        self.say("fraction", device, f"{self.random.uniform(low, high):.3f}")

    def do_fraction(self):
        if not self.capturing:
            self.fraction(self.random.randrange(self.kind.devices))

    def do_pin(self):
        size = max(1, min(self.size(), self.kind.largest))
        self.next_pin += 1
        if len(self.pinned) < 100:
            self.pinned.add(self.next_pin)
            self.say("pin", self.next_pin, max(size, 512))

    def do_unpin(self):
        if self.pinned:
            name = self.random.choice(sorted(self.pinned))
            self.pinned.discard(name)
            self.say("unpin", name)

    def do_pinuse(self):
        if self.pinned and self.live:
            self.say("pinuse", self.random.choice(sorted(self.pinned)), self.random.choice(list(self.live)))

    def do_pinempty(self):
        self.say("pinempty")


def make(kind, seed, steps, version, stats_every):
    """Returns the lines of a file: heads, operations, and snapshots between them."""
    head, lines = Maker(kind, seed, steps, version).make()
    return head + with_pictures(lines, stats_every)


def with_pictures(lines, stats_every):
    out = []
    for number, line in enumerate(lines, 1):
        out.append(line)
        if stats_every and number % stats_every == 0 and line.split()[0] not in ("stats", "map", "events"):
            out.append("stats")
    return out
