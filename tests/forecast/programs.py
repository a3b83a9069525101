"""Programs whose peak moves to another moment when the size changes. Each run is made event by event, without a GPU or PyTorch.

BUILT_WITH existed while `vram forecast` was made. HELD_OUT were written and run afterwards: the figures in docs/guides/profile.md are theirs.
"""
import random

MIB = 1 << 20


class Run:
    """The events of one run. Frames are (file, line, function), innermost first; `root` and `shift` move the program and its lines."""

    def __init__(self, size, root="/app/", shift=0):
        self.size, self.root, self.shift, self.events, self.next, self.free_addresses = size, root, shift, [], 0x700000000000, {}
        self.random = random.Random(size)

    def take(self, size, *frames):
        size = max(int(size), 512)
        pool = self.free_addresses.setdefault(size, [])
        address = pool.pop() if pool else self.next
        if address == self.next:
            self.next += (size + (4 << 20)) & ~((2 << 20) - 1)
            self.write("segment_alloc", address, size, frames)
        self.write("alloc", address, size, frames)
        return (address, size)

    def give(self, *blocks):
        for address, size in blocks:
            self.write("free_requested", address, size, ())
            self.write("free_completed", address, size, ())
            self.free_addresses[size].append(address)

    def write(self, action, address, size, frames):
        frames = [{"filename": self.root + file, "line": line + self.shift, "name": name} for file, line, name in frames]
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": 10 * len(self.events), "frames": frames})

    def peak(self):
        live = most = 0
        for event in self.events:
            live += event["size"] if event["action"] == "alloc" else -event["size"] if event["action"] == "free_requested" else 0
            most = max(most, live)
        return most

    def recording(self):
        live = {}
        for event in self.events:
            if event["action"] == "alloc":
                live[event["addr"]] = event
            elif event["action"] == "free_completed":
                live.pop(event["addr"], None)
        segments = [{"device": 0, "address": address, "total_size": event["size"], "stream": 0, "segment_type": "large",
                     "blocks": [{"address": address, "size": event["size"], "requested_size": event["size"], "state": "active_allocated", "frames": event["frames"]}]}
                    for address, event in live.items()]
        return {"segments": segments, "device_traces": [self.events]}


MAIN = (("train.py", 90, "main"),)
FORWARD = (("train.py", 20, "step"),) + MAIN
BACKWARD = (("train.py", 22, "step"),) + MAIN
OPTIMIZER = (("optim.py", 40, "step"), ("train.py", 24, "step")) + MAIN


def weights(run, count, size):
    return [run.take(size, ("model.py", 5, "__init__"), *MAIN) for _ in range(count)]


def transformer(run):
    """The size is the sequence length. The peak is the optimizer's scratch at short lengths, the logits at longer ones, attention at the longest."""
    n, layers = run.size, 12
    weights(run, layers, 28 * MIB)
    state = []
    for step in range(3):
        kept = []
        for _ in range(layers):
            kept += [run.take(n * 768 * 8, ("model.py", 30, "norm"), ("model.py", 60, "forward"), *FORWARD), run.take(n * 3072 * 8, ("model.py", 41, "mlp"), ("model.py", 60, "forward"), *FORWARD)]
            scores = run.take(n * n * 12 * 8, ("model.py", 52, "attention"), ("model.py", 60, "forward"), *FORWARD)
            run.give(scores)
        logits = [run.take(n * 50257 * 4 * 4, ("loss.py", 9 + i, "cross_entropy"), *FORWARD) for i in range(2)]
        run.give(*logits)
        grads = []
        for _ in range(layers):
            grads.append(run.take(28 * MIB, ("engine.py", 3, "backward"), *BACKWARD))
            run.give(kept.pop(), kept.pop())
        if not state:
            state = [run.take(56 * MIB, ("optim.py", 12, "init"), *OPTIMIZER) for _ in range(layers)]
        scratch = [run.take(28 * MIB, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(2 * layers)]
        run.give(*scratch, *grads)


def convolutions(run):
    """Batch: a workspace that a library limits, activations, a fully connected head."""
    n = run.size
    weights(run, 20, 9 * MIB)
    for _ in range(4):
        kept = []
        for i in range(10):
            work = run.take(min(n * 6 * MIB, 512 * MIB), ("conv.py", 31, "conv2d"), ("model.py", 70 + i, "forward"), *FORWARD)
            kept.append(run.take(n * (10 - i) * MIB // 4, ("conv.py", 33, "conv2d"), ("model.py", 70 + i, "forward"), *FORWARD))
            run.give(work)
        head = run.take(700 * MIB, ("model.py", 82, "head"), *FORWARD)
        run.give(head)
        for block in reversed(kept):
            grad = run.take(block[1], ("engine.py", 3, "backward"), *BACKWARD)
            run.give(block, grad)


def generation(run):
    """Length of the prompt: reading a checkpoint, prefill, a cache that is replaced as it grows."""
    n, layers = run.size, 16
    scratch = run.take(1800 * MIB, ("load.py", 14, "read_shard"), *MAIN)
    weights(run, layers, 64 * MIB)
    run.give(scratch)
    caches = [run.take(n * 16384, ("cache.py", 20, "extend"), ("model.py", 60, "forward"), *MAIN) for _ in range(layers)]
    for _ in range(layers):
        hidden = run.take(n * 4096 * 10, ("model.py", 41, "mlp"), ("model.py", 60, "forward"), *MAIN)
        scores = run.take(n * n * 32 * 2, ("model.py", 52, "attention"), ("model.py", 60, "forward"), *MAIN)
        run.give(hidden, scores)
    for token in range(1, 9):
        for i in range(layers):
            longer = run.take((n + token) * 16384, ("cache.py", 20, "extend"), ("model.py", 61, "decode"), *MAIN)
            run.give(caches[i])
            caches[i] = longer


def diffusion(run):
    """The size is the number of images. The peak is the text encoder, the denoiser or the image decoder."""
    n = run.size
    encoder = [run.take(90 * MIB, ("text.py", 8, "load"), *MAIN) for _ in range(12)]
    run.give(*encoder)
    weights(run, 10, 80 * MIB)
    for _ in range(5):
        kept = [run.take(n * (24 - 2 * abs(6 - i)) * MIB // 2, ("unet.py", 30, "block"), ("unet.py", 80, "forward"), *FORWARD) for i in range(12)]
        run.give(*kept)
    latent = run.take(n * MIB // 4, ("vae.py", 11, "scale"), *MAIN)
    for i in range(4):
        picture = [run.take((n * MIB * 3 << (2 * i)) // 4 + 100 * MIB * (4 - i), ("vae.py", 25, "up"), ("vae.py", 40, "decode"), *MAIN) for _ in range(2)]
        run.give(*picture)
    run.give(latent)


def graph_network(run):
    """Seeds of a batch: neighbours are sampled, so sizes vary by about one percent."""
    n = run.size
    weights(run, 4, 30 * MIB)
    table = run.take(900 * MIB, ("data.py", 6, "sort_edges"), *MAIN)
    run.give(table)
    for _ in range(6):
        edges = [run.take(n * 25000 * (1 + 0.01 * run.random.uniform(-1, 1)), ("sample.py", 17 + i, "hop"), *FORWARD) for i in range(3)]
        hidden = [run.take(n * 64000 * (1 + 0.01 * run.random.uniform(-1, 1)), ("gnn.py", 30 + i, "aggregate"), *FORWARD) for i in range(3)]
        run.give(*edges, *hidden)


def reinforcement(run):
    """Steps of a rollout, all kept: updates in parts of a fixed size, then advantages of all steps at once."""
    n = run.size
    weights(run, 8, 12 * MIB)
    for _ in range(3):
        storage = [run.take(n * 220 * 1024, ("buffer.py", 12 + i, "allocate"), *MAIN) for i in range(3)]
        update = [run.take(160 * MIB, ("ppo.py", 55, "update"), *FORWARD) for _ in range(6)]
        run.give(*update)
        advantages = [run.take(n * 900 * 1024, ("ppo.py", 71 + i, "advantages"), *MAIN) for i in range(2)]
        run.give(*advantages, *storage)


def checkpointed(run):
    """Length: data kept for each segment and the recomputation of one; with short ones the optimizer's scratch."""
    n, segments = run.size, 8
    weights(run, segments, 50 * MIB)
    for _ in range(3):
        kept = [run.take(n * 4096 * 4, ("model.py", 33, "segment"), *FORWARD) for _ in range(segments)]
        for block in reversed(kept):
            again = [run.take(n * 4096 * 12, ("model.py", 40 + i, "block"), ("checkpoint.py", 8, "recompute"), *BACKWARD) for i in range(5)]
            scores = run.take(n * n * 16 * 4, ("model.py", 52, "attention"), ("checkpoint.py", 8, "recompute"), *BACKWARD)
            run.give(scores, *again, block)
        scratch = [run.take(50 * MIB, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(3 * segments)]
        run.give(*scratch)


def chunked(run):
    """Length: attention in chunks of 512, more of them with larger sizes; at the end a merge of all results."""
    n = run.size
    weights(run, 6, 100 * MIB)
    setup = run.take(1100 * MIB, ("model.py", 9, "fuse_weights"), *MAIN)
    run.give(setup)
    parts = []
    for _ in range(n // 512):
        scores = run.take(512 * n * 32 * 2, ("chunk.py", 21, "scores"), *FORWARD)
        parts.append(run.take(512 * 8192 * 8, ("chunk.py", 24, "part"), *FORWARD))
        run.give(scores)
    merged = run.take(n * 8192 * 8, ("chunk.py", 30, "merge"), *FORWARD)
    run.give(merged, *parts)


def evaluated(run):
    """Batch: training with gradients of a fixed size, then an evaluation of four times the batch without gradients."""
    n = run.size
    weights(run, 10, 25 * MIB)
    for _ in range(5 if n < 32 else 3):
        kept = [run.take(n * 6 * MIB, ("model.py", 30 + i, "forward"), *FORWARD) for i in range(10)]
        grads = [run.take(25 * MIB, ("engine.py", 3, "backward"), *BACKWARD) for _ in range(10)]
        scratch = [run.take(55 * MIB, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(10)]
        run.give(*kept, *scratch, *grads)
    logits = [run.take(4 * n * 7 * MIB, ("eval.py", 14 + i, "evaluate"), *MAIN) for i in range(3)]
    run.give(*logits)


def solver(run):
    """Cells per side of a cube: reads a mesh, then fields of all cells, then a transform of twice the side. C, no Python."""
    n = run.size
    outer = (("main.c", 50, "main"),)
    mesh = run.take(500 * MIB, ("mesh.c", 30, "read_mesh"), *outer)
    run.give(mesh)
    fields = [run.take(n ** 3 * 8, ("field.c", 12, "new_field"), ("solve.c", 20 + i, "solve"), *outer) for i in range(5)]
    for _ in range(4):
        spectrum = run.take(8 * n ** 3 * 16, ("fft.c", 40, "transform"), ("solve.c", 44, "solve"), *outer)
        run.give(spectrum)
    run.give(*fields)


def experts(run):
    """Tokens: room for each expert is rounded up to 128 tokens; a table of routes at small sizes."""
    n = run.size
    weights(run, 16, 40 * MIB)
    for _ in range(3):
        routes = run.take(600 * MIB, ("route.py", 18, "sort_routes"), *FORWARD)
        run.give(routes)
        room = [run.take(-(-int(n * 2 / 16 * 1.25) // 128) * 128 * 14336 * 4, ("moe.py", 33, "expert"), *FORWARD) for _ in range(16)]
        back = [run.take(n * 4096 * 4, ("moe.py", 47, "combine"), *FORWARD) for _ in range(2)]
        run.give(*room, *back)


def prefetched(run):
    """Batch: two batches are in progress; a model with branches, where another branch is the widest with larger sizes."""
    n = run.size
    weights(run, 6, 30 * MIB)
    ahead = run.take(n * 3 * MIB, ("data.py", 9, "prefetch"), *MAIN)
    for _ in range(4):
        nearer = run.take(n * 3 * MIB, ("data.py", 9, "prefetch"), *MAIN)
        wide = [run.take(n * 5 * MIB + 300 * MIB, ("branch.py", 14, "wide"), *FORWARD) for _ in range(2)]
        run.give(*wide)
        deep = [run.take(n * 4 * MIB, ("branch.py", 31, "deep"), *FORWARD) for _ in range(9)]
        run.give(*deep, ahead)
        ahead = nearer
    run.give(ahead)


def moved(run):
    """`evaluated`, edited and in another folder for every size."""
    run.root, run.shift = f"/srv/{run.size}/src/", run.size % 7
    evaluated(run)


# The sizes a program is run with, and the size whose peak is predicted.
BUILT_WITH = {
    "transformer": (transformer, (256, 512, 1024), 4096),
    "transformer, near": (transformer, (512, 768, 1024), 1536),
    "convolutions": (convolutions, (8, 16, 32), 128),
    "generation": (generation, (512, 1024, 2048), 6144),
    "diffusion": (diffusion, (1, 2, 4), 16),
    "graph network": (graph_network, (1024, 2048, 4096), 16384),
    "reinforcement": (reinforcement, (128, 256, 512), 2048),
    "checkpointed": (checkpointed, (512, 1024, 2048), 8192),
    "chunked": (chunked, (1024, 2048, 4096), 16384),
    "evaluated": (evaluated, (4, 8, 64), 256),
    "solver": (solver, (64, 96, 128), 256),
    "experts": (experts, (1024, 2048, 4096), 16384),
    "prefetched": (prefetched, (4, 8, 32), 96),
    "moved": (moved, (4, 8, 64), 256),
}


# --- the second dozen: 10 of 12 were in the range at the first run; two curves were corrected after it --------------------------------------------


def translation(run):
    """Length of the source: the target is half as long; a beam of four at the end."""
    n = run.size
    weights(run, 12, 20 * MIB)
    for _ in range(2):
        kept = [run.take(n * 1024 * 14, ("encoder.py", 12, "layer"), *FORWARD) for _ in range(6)]
        for _ in range(6):
            kept.append(run.take(n // 2 * 1024 * 22, ("decoder.py", 19, "layer"), *FORWARD))
            cross = run.take(n * (n // 2) * 16 * 4, ("decoder.py", 27, "cross"), *FORWARD)
            run.give(cross)
        scratch = [run.take(20 * MIB, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(24)]
        run.give(*scratch, *kept)
    beams = [run.take(4 * n * 1024 * 16, ("beam.py", 8 + i, "expand"), *MAIN) for i in range(6)]
    run.give(*beams)


def vision(run):
    """The size is the side of the images. They have patches of 16, and each patch attends to all."""
    n = run.size
    tokens = (n // 16) ** 2
    weights(run, 12, 28 * MIB)
    for _ in range(3):
        kept = [run.take(8 * tokens * 768 * 40, ("vit.py", 22, "block"), *FORWARD) for _ in range(12)]
        scores = run.take(8 * tokens * tokens * 12 * 4, ("vit.py", 31, "attention"), *FORWARD)
        run.give(scores)
        scratch = [run.take(56 * MIB, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(24)]
        run.give(*scratch, *kept)


def padded(run):
    """Longest text of a batch: all are padded to a multiple of 64."""
    n = -(-run.size // 64) * 64
    weights(run, 12, 28 * MIB)
    for _ in range(3):
        kept = [run.take(32 * n * 768 * 20, ("bert.py", 18, "layer"), *FORWARD) for _ in range(12)]
        scores = run.take(32 * n * n * 12 * 4, ("bert.py", 26, "attention"), *FORWARD)
        run.give(scores)
        scratch = [run.take(28 * MIB, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(48)]
        run.give(*scratch, *kept)


def recurrent(run):
    """The size is the number of time steps. Each has two blocks; then one block has all of them."""
    n = run.size
    setup = run.take(400 * MIB, ("rnn.py", 4, "flatten"), *MAIN)
    run.give(setup)
    weights(run, 3, 24 * MIB)
    for _ in range(2):
        states = [run.take((1 + i % 2) * MIB, ("rnn.py", 20 + i % 2, "cell"), *FORWARD) for i in range(2 * n)]
        joined = run.take(n * 2 * MIB, ("rnn.py", 33, "stack"), *FORWARD)
        run.give(joined, *states)


def sharded(run):
    """Ranks: parameters, gradients and moments are sharded; one layer is gathered at a time."""
    n = run.size
    shards = weights(run, 4, 12000 * MIB / n)
    for _ in range(2):
        gathered = [run.take(700 * MIB, ("fsdp.py", 40, "all_gather"), *FORWARD) for _ in range(2)]
        kept = [run.take(150 * MIB, ("model.py", 30, "forward"), *FORWARD) for _ in range(10)]
        run.give(*gathered, *kept)
        moments = [run.take(6000 * MIB / n, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(4)]
        run.give(*moments)
    run.give(*shards)


def adversarial(run):
    """Batch: the generator's step and the critic's step, which has a penalty with second derivatives."""
    n = run.size
    weights(run, 6, 35 * MIB)
    for _ in range(3):
        made = [run.take(n * 3 * MIB + 40 * MIB, ("gan.py", 14 + i, "generator"), *FORWARD) for i in range(6)]
        run.give(*made)
        judged = [run.take(n * 5 * MIB // 2, ("gan.py", 32 + i, "critic"), *FORWARD) for i in range(6)]
        second = [run.take(n * 2 * MIB, ("gan.py", 51, "penalty"), *BACKWARD) for _ in range(4)]
        run.give(*second, *judged)


def sorter(run):
    """Thousands of points: a sort that keeps a level per doubling, a grid of one size."""
    n = run.size * 1000
    grid = run.take(640 * MIB, ("grid.c", 11, "new_grid"), ("main.c", 9, "main"))
    run.give(grid)
    points = [run.take(n * 24, ("points.c", 7, "read_points"), ("main.c", 12, "main")) for _ in range(2)]
    levels = [run.take(n * 8, ("sort.c", 19, "level"), ("main.c", 15, "main")) for _ in range(n.bit_length())]
    run.give(*levels, *points)


def server(run):
    """Prompt length: a pool of caches of a fixed size, prompts in parts of at most 2,048 tokens, logits of all of them."""
    n = run.size
    weights(run, 16, 90 * MIB)
    trial = run.take(1500 * MIB, ("server.py", 20, "warm_up"), *MAIN)
    run.give(trial)
    pool = run.take(2048 * MIB, ("cache.py", 9, "allocate"), *MAIN)
    for _ in range(3):
        part = [run.take(min(n, 2048) * 4096 * 30, ("model.py", 30, "forward"), *MAIN) for _ in range(4)]
        run.give(*part)
        logits = run.take(n * 32000 * 12, ("model.py", 55, "logits"), *MAIN)
        run.give(logits)
    run.give(pool)


def volumes(run):
    """The size is the side of a volume. It has windows of one size, results for the whole volume, and their mean."""
    n = run.size
    weights(run, 8, 30 * MIB)
    for _ in range(4):
        window = [run.take(96 ** 3 * 4 * 32, ("unet3d.py", 20 + i, "down"), *FORWARD) for i in range(8)]
        run.give(*window)
    result = [run.take(n ** 3 * 4 * 5, ("window.py", 31 + i, "merge"), *MAIN) for i in range(3)]
    run.give(*result)


def distilled(run):
    """Batch: a teacher that is read in twice the precision, its logits and the student's."""
    n = run.size
    teacher = [run.take(120 * MIB, ("load.py", 8, "read"), *MAIN) for _ in range(20)]
    for i, block in enumerate(teacher):
        teacher[i] = run.take(60 * MIB, ("load.py", 11, "cast"), *MAIN)
        run.give(block)
    weights(run, 6, 40 * MIB)
    for _ in range(3 if n < 16 else 2):
        told = [run.take(n * 512 * 32000 * 2, ("distil.py", 22, "teacher_logits"), *FORWARD) for _ in range(1)]
        kept = [run.take(n * 512 * 2048 * 20, ("student.py", 17, "layer"), *FORWARD) for _ in range(6)]
        both = [run.take(n * 512 * 32000 * 4, ("distil.py", 30 + i, "divergence"), *FORWARD) for i in range(3)]
        run.give(*both, *kept, *told)


def trees(run):
    """Thousands of rows: quantiles of all rows, then histograms of a fixed size with two buffers of gradients."""
    n = run.size * 1000
    rows = run.take(n * 64 * 4, ("matrix.cc", 15, "load"), ("main.cc", 20, "main"))
    sketch = run.take(n * 64 * 4 * 2, ("quantile.cc", 33, "sketch"), ("main.cc", 22, "main"))
    run.give(sketch)
    for _ in range(3):
        gradients = [run.take(n * 8, ("tree.cc", 12 + i, "gradients"), ("main.cc", 25, "main")) for i in range(2)]
        histograms = [run.take(256 * MIB, ("tree.cc", 41, "histogram"), ("main.cc", 25, "main")) for _ in range(5)]
        run.give(*histograms, *gradients)
    run.give(rows)


def retrieval(run):
    """Queries: builds an index of a fixed size, then similarities of every query with every other; the best are kept in a second buffer."""
    n = run.size
    index = [run.take(300 * MIB, ("index.py", 10 + i, "build"), *MAIN) for i in range(5)]
    run.give(*index[2:])
    embedded = run.take(n * 1024 * 4, ("retrieve.py", 19, "embed"), *MAIN)
    scores = run.take(n * n * 4, ("retrieve.py", 24, "similarities"), *MAIN)
    best = [run.take(n * 1000 * (8 + 4 * i), ("retrieve.py", 27 + i, "top"), *MAIN) for i in range(2)]
    run.give(scores, *best, embedded, *index[:2])


SECOND = {
    "translation": (translation, (256, 512, 1024), 4096),
    "vision": (vision, (128, 192, 256), 384),
    "padded": (padded, (100, 200, 400), 1000),
    "recurrent": (recurrent, (50, 150, 300), 1200),
    "sharded": (sharded, (2, 4, 8), 32),
    "adversarial": (adversarial, (4, 16, 64), 192),
    "sorter": (sorter, (500, 2000, 8000), 32000),
    "server": (server, (512, 1024, 4096), 16384),
    "volumes": (volumes, (96, 160, 256), 448),
    "distilled": (distilled, (2, 8, 24), 64),
    "trees": (trees, (500, 1500, 6000), 24000),
    "retrieval": (retrieval, (4096, 8192, 16384), 65536),
}


# --- the third dozen: written after that correction, and run once --------------------------------------------------------------------------------


def tabular(run):
    """Rows of a batch: embeddings of categories with gradients of the same size, and a few dense layers."""
    n = run.size
    tables = [run.take(150 * MIB, ("embed.py", 10, "table"), *MAIN) for _ in range(5)]
    for _ in range(3):
        wide = [run.take(n * 39 * 64 * 4, ("embed.py", 22 + i, "lookup"), *FORWARD) for i in range(2)]
        dense = [run.take(n * (2048 >> i) * 4, ("mlp.py", 15, "layer"), *FORWARD) for i in range(4)]
        run.give(*dense, *wide)
        grads = [run.take(150 * MIB, ("embed.py", 41, "dense_gradient"), *BACKWARD) for _ in range(5)]
        run.give(*grads)
    run.give(*tables)


def speech(run):
    """The size is the seconds of sound. Features, convolutions that halve them, attention over the result, and a decoder of a fixed length."""
    n = run.size
    frames = n * 100
    weights(run, 12, 18 * MIB)
    words = [run.take(448 * 51865 * 4 * 3, ("decode.py", 17 + i, "logits"), *FORWARD) for i in range(3)]
    run.give(*words)
    for _ in range(3):
        features = run.take(16 * frames * 80 * 4, ("features.py", 9, "mel"), *FORWARD)
        kept = [run.take(16 * (frames >> i) * 1024 * 4, ("conv.py", 14 + i, "halve"), *FORWARD) for i in range(2)]
        kept += [run.take(16 * (frames // 2) * 1024 * 12, ("encoder.py", 31, "block"), *FORWARD) for _ in range(8)]
        scores = run.take(16 * (frames // 2) ** 2 * 8 * 2, ("encoder.py", 39, "attention"), *FORWARD)
        run.give(scores, *kept, features)


def contrastive(run):
    """Pairs of a batch: two towers, similarities of all with all in twice the precision."""
    n = run.size
    weights(run, 10, 55 * MIB)
    moments = [run.take(110 * MIB, ("optim.py", 12, "init"), *OPTIMIZER) for _ in range(10)]
    for _ in range(2):
        towers = [run.take(n * 600 * 1024, ("clip.py", 20 + 7 * (i % 2), "tower"), *FORWARD) for i in range(4)]
        matrix = [run.take(n * n * 8, ("clip.py", 44 + i, "similarity"), *FORWARD) for i in range(3)]
        run.give(*matrix, *towers)
        scratch = [run.take(55 * MIB, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(30)]
        run.give(*scratch)
    run.give(*moments)


def accumulated(run):
    """Length: gradients of four passes are accumulated; each pass keeps activations, and at the end all gradients are copied."""
    n = run.size
    weights(run, 8, 70 * MIB)
    for _ in range(2):
        grads = []
        for _ in range(4):
            kept = [run.take(n * 2048 * 34, ("model.py", 30 + i % 3, "block"), *FORWARD) for i in range(9)]
            for _ in range(8 - len(grads)):
                grads.append(run.take(70 * MIB, ("engine.py", 3, "accumulate"), *BACKWARD))
            run.give(*kept)
        copies = [run.take(70 * MIB, ("clip.py", 8, "clip_norm"), *OPTIMIZER) for _ in range(24)]
        run.give(*copies, *grads)


def detector(run):
    """The size is the side of the images. A pyramid of areas, a fixed number of boxes, and masks of boxes and areas."""
    n = run.size
    weights(run, 10, 17 * MIB)
    for _ in range(3):
        pyramid = [run.take(4 * (n >> i) ** 2 * 256 * 4, ("fpn.py", 12, "level"), *FORWARD) for i in range(2, 6)]
        boxes = [run.take(230 * MIB, ("roi.py", 25 + i, "align"), *FORWARD) for i in range(6)]
        run.give(*boxes)
        masks = run.take(100 * n * n * 4, ("mask.py", 19, "paste"), *FORWARD)
        run.give(masks, *pyramid)


def pipelined(run):
    """Stages: each keeps as many small batches as there are stages after it; layers are divided among stages."""
    n = run.size
    layers = weights(run, 6, 9600 * MIB / n)
    waiting = [run.take(64 * MIB, ("pipe.py", 30, "receive"), *FORWARD) for _ in range(n)]
    run.give(*waiting)
    scratch = [run.take(4800 * MIB / n, ("optim.py", 44, "foreach"), *OPTIMIZER) for _ in range(3)]
    run.give(*scratch, *layers)


def molecules(run):
    """Atoms: pairs of all of them, triples of near ones, a grid of charges of one size."""
    n = run.size
    outer = (("main.cc", 30, "main"),)
    grid = [run.take(420 * MIB, ("charges.cc", 14, "spread"), *outer) for _ in range(2)]
    run.give(*grid)
    places = run.take(n * 96, ("atoms.cc", 9, "read"), *outer)
    for _ in range(3):
        pairs = [run.take(n * n * 8, ("pairs.cc", 21 + i, "distances"), *outer) for i in range(2)]
        near = run.take(n * 3200 * 16, ("pairs.cc", 33, "near"), *outer)
        run.give(*pairs)
        triples = [run.take(n * 51200, ("triples.cc", 17 + i, "angles"), *outer) for i in range(3)]
        run.give(*triples, near)
    run.give(places)


def tuned(run):
    """Batch: a large frozen model with small trained additions; it is read layer by layer in twice the precision."""
    n = run.size
    for _ in range(16):
        read = run.take(1400 * MIB, ("load.py", 14, "read_layer"), *MAIN)
        run.take(100 * MIB, ("load.py", 19, "quantize"), *MAIN)
        run.give(read)
    for step in range(4 if n < 8 else 2):
        kept = [run.take(n * 34 * MIB + 3 * MIB, ("lora.py", 22, "forward"), *FORWARD) for _ in range(16)]
        whole = run.take(400 * MIB, ("lora.py", 27, "dequantize"), *FORWARD)
        loss = run.take(n * 125 * MIB, ("loss.py", 9, "cross_entropy"), *FORWARD)
        run.give(loss, whole, *kept)


def sampled(run):
    """Chains: samples are kept in a buffer that doubles when it is full; at the end statistics of all of them."""
    n = run.size
    setup = run.take(900 * MIB, ("model.py", 12, "compile"), *MAIN)
    run.give(setup)
    buffer = run.take(n * 64 * 1024, ("chain.py", 20, "grow"), *MAIN)
    for doubling in range(1, 5):
        larger = run.take(n * 64 * 1024 << doubling, ("chain.py", 20, "grow"), *MAIN)
        run.give(buffer)
        buffer = larger
    sums = [run.take(n * 700 * 1024, ("chain.py", 41 + i, "statistics"), *MAIN) for i in range(2)]
    run.give(*sums, buffer)


def video(run):
    """Pictures of a film: attention within each and along time, and a decoder that processes 8 at a time."""
    n = run.size
    weights(run, 14, 60 * MIB)
    for _ in range(3):
        kept = [run.take(n * 1024 * 1152 * 4, ("dit.py", 25 + i, "block"), *FORWARD) for i in range(6)]
        time = run.take(1024 * n * n * 16 * 4, ("dit.py", 38, "along_time"), *FORWARD)
        run.give(time, *kept)
    film = run.take(n * 3 * 512 * 512 * 4, ("vae.py", 12, "film"), *MAIN)
    for _ in range(-(-n // 8)):
        part = [run.take(8 * 512 * 512 * 128 * 2, ("vae.py", 24, "decode"), *MAIN) for _ in range(3)]
        run.give(*part)
    run.give(film)


def ensemble(run):
    """Members: each has its own weights; predictions of all of them, with gradients and without."""
    n = run.size
    members = [run.take(60 * MIB, ("model.py", 5, "__init__"), *MAIN) for _ in range(n)]
    shared = [run.take(500 * MIB, ("data.py", 8, "load"), *MAIN) for _ in range(4)]
    run.give(*shared)
    kept = [run.take(45 * MIB, ("member.py", 17, "forward"), *FORWARD) for _ in range(3)]
    run.give(*kept)
    told = [run.take(90 * MIB, ("vote.py", 11, "predict"), *MAIN) for _ in range(n)]
    mean = run.take(n * 90 * MIB, ("vote.py", 14, "stack"), *MAIN)
    run.give(mean, *told, *members)


def windowed(run):
    """The size is the length. Attention has windows of at most 4,096, the cache at most that length, and logits exist for the last token only."""
    n = run.size
    weights(run, 16, 85 * MIB)
    first = run.take(1200 * MIB, ("load.py", 14, "read_layer"), *MAIN)
    run.give(first)
    cache = [run.take(min(n, 4096) * 16384, ("cache.py", 20, "allocate"), *MAIN) for _ in range(16)]
    for _ in range(16):
        hidden = [run.take(n * 4096 * 14, ("model.py", 41 + i, "mlp"), *MAIN) for i in range(2)]
        run.give(*hidden)
    run.give(*cache)


HELD_OUT = {
    "tabular": (tabular, (8192, 16384, 65536), 262144),
    "speech": (speech, (4, 8, 16), 48),
    "contrastive": (contrastive, (512, 2048, 8192), 24576),
    "accumulated": (accumulated, (512, 1024, 4096), 12288),
    "detector": (detector, (256, 512, 768), 2560),
    "pipelined": (pipelined, (4, 8, 16), 64),
    "molecules": (molecules, (2000, 4000, 16000), 48000),
    "tuned": (tuned, (1, 2, 4), 16),
    "sampled": (sampled, (64, 256, 512), 2048),
    "video": (video, (8, 16, 32), 96),
    "ensemble": (ensemble, (4, 8, 16), 48),
    "windowed": (windowed, (1024, 2048, 4096), 16384),
}
