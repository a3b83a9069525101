"""Programs that do not train: inference, solvers, and requests that fail. What a program returns lives until the recording is written."""
import os
import subprocess
import sys

import torch
from models import MIB, Attention, Model, batch


def large_input():
    """Inference of too large an input."""
    model = Model(layers=8).cuda()
    with torch.no_grad():
        model(batch(1024))
        model(batch(524288))


def single_pass():
    """One forward pass of twelve layers."""
    model = Model(layers=12, width=256).cuda()
    with torch.inference_mode():
        return model, model(batch(4096, 256))


def served_requests():
    """Requests of all lengths are served; no memory stays."""
    model = Model(layers=2).cuda()
    with torch.inference_mode():
        for i in range(24):
            model(batch(1024 * (1 + i * 7 % 5)))
    return model


def served_longer_requests():
    """Each request is longer than the one before; no memory stays."""
    model = Model(layers=2).cuda()
    with torch.inference_mode():
        for i in range(24):
            model(batch(1024 * (1 + i)))
    return model


def kv_cache():
    """A cache of keys and values grows until the device is full."""
    model, cache = Model(layers=1).cuda(), []
    with torch.inference_mode():
        for _ in range(400):
            model(batch(8))
            cache.append(init_kv_cache(64))


def init_kv_cache(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def two_models():
    """The second model's weights do not fit next to the first one's."""
    return make_teacher(), make_student()


def make_teacher():
    return Model(width=2048, layers=16).cuda()


def make_student():
    return Model(width=2048, layers=16).cuda()


def heat():
    """A solver on grids, without any model."""
    grids = []
    for _ in range(40):
        grids.append(next_grid())


def next_grid():
    return torch.zeros(8192, 8192, device="cuda")


def all_pairs():
    """Distances of all pairs of 65,536 points: one request of 16 GiB."""
    points = batch(65536, 16)
    return torch.cdist(points, points)


def pieces():
    """Tensors of 110 MiB in segments of 200 MiB, whose remainders cannot be joined."""
    return shrink()


def shrink():
    wholes = [torch.empty(200 * MIB, dtype=torch.uint8, device="cuda") for _ in range(20)]
    del wholes
    parts = [torch.empty(110 * MIB, dtype=torch.uint8, device="cuda") for _ in range(20)]
    return parts, torch.empty(1000 * MIB, dtype=torch.uint8, device="cuda")


def pieces_of_pages():
    """Tensors of 110 MiB in expandable segments, which join the remainders: it fits."""
    return shrink()


def fraction_of_the_device():
    """set_per_process_memory_fraction(0.25): 1 GiB."""
    torch.cuda.set_per_process_memory_fraction(0.25)
    held = [torch.empty(200 * MIB, dtype=torch.uint8, device="cuda") for _ in range(4)]
    return held, torch.empty(400 * MIB, dtype=torch.uint8, device="cuda")


def own_pool():
    """2.4 GiB is free in a MemPool, where nothing else can use it."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        made = torch.empty(2400 * MIB, dtype=torch.uint8, device="cuda")
    del made
    return pool, torch.empty(2400 * MIB, dtype=torch.uint8, device="cuda")


def pool_of_a_graph():
    """2.4 GiB is free in the pool of a captured graph, where nothing else can use them."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x = torch.empty(2400 * MIB, dtype=torch.uint8, device="cuda")
        x.add_(1)
    del x
    return graph, torch.empty(2400 * MIB, dtype=torch.uint8, device="cuda")


def side_stream():
    """Each segment of a side stream's cache has a block in use, so that it cannot be freed."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        wholes = [torch.empty(100 * MIB, dtype=torch.uint8, device="cuda") for _ in range(30)]
        del wholes
        kept = [torch.empty(60 * MIB, dtype=torch.uint8, device="cuda") for _ in range(30)]
    return kept, torch.empty(1500 * MIB, dtype=torch.uint8, device="cuda")


def idle_streams():
    """One stream for each of six tasks; their caches are unused, and no request failed."""
    model = torch.empty(300 * MIB, dtype=torch.uint8, device="cuda")
    for _ in range(6):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")
    return model


def recorded_streams():
    """Buffers wait for a busy stream; no request failed."""
    side, weights = torch.cuda.Stream(), torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    for _ in range(6):
        buffer = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
        with torch.cuda.stream(side):
            torch.cuda._sleep(1 << 40)
            buffer.add_(1)
        buffer.record_stream(side)
        del buffer
    return weights


def beside_another():
    """Another process holds half of the device."""
    holder = subprocess.Popen([sys.executable, "-c", "import torch, sys; x = torch.empty(2 << 30, dtype=torch.uint8, device='cuda'); print(flush=True); sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    try:
        return [torch.empty(300 * MIB, dtype=torch.uint8, device="cuda") for _ in range(12)]
    finally:
        holder.stdin.close()
        holder.wait()


def second_device():
    """Device 1 runs out; device 0 has more events and fits."""
    for _ in range(60):
        torch.empty(20 * MIB, dtype=torch.uint8, device="cuda")
    return torch.empty(100 * MIB, dtype=torch.uint8, device="cuda"), [torch.empty(400 * MIB, dtype=torch.uint8, device="cuda:1") for _ in range(12)]


def long_history():
    """Only the last events are kept; the beginning is lost."""
    kept = []
    for i in range(300):
        kept.append(torch.empty(2 * MIB, dtype=torch.uint8, device="cuda"))
        torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    return kept


def large_attention():
    """Inference whose attention requests memory for all pairs."""
    model = Attention().cuda()
    with torch.no_grad():
        model(batch(4096))
        return model(batch(65536))


PROGRAMS = [large_input, single_pass, served_requests, served_longer_requests, kv_cache, two_models, heat, all_pairs, pieces, pieces_of_pages, fraction_of_the_device, own_pool, pool_of_a_graph, side_stream, idle_streams, recorded_streams,
            beside_another, second_device, long_history, large_attention]
OPTIONS = {"pieces_of_pages": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "long_history": {"MOST_EVENTS": "200"}}
