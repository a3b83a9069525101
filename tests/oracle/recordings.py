#!/usr/bin/env python3
"""Makes recordings of kinds that public ones lack, with PyTorch on the simulated device, and checks that `vram replay --exact` is right in each.

usage: recordings.py --torch PYTHON [--out FOLDER] [NAME...]     (names of CASES below; default: all but `long`)
`long` makes a history of more than 100 MB. Exit code: 0 every recording exact, 1 one is not, 3 one could not be made."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
BUILD = pathlib.Path(os.environ.get("VRAM_BUILD", HERE.parents[2] / "build/release"))
EXPANDABLE = "expandable_segments:True"


# --- programs: each takes torch and runs under its settings -------------------------------------------------------------------------------
def model(torch, width=256, layers=4):
    parts = []
    for _ in range(layers):
        parts += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts).cuda()


def step(net, optimizer, batch):
    net(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def graphs(torch):
    """Four graphs, two of them in one pool, and work outside any graph."""
    net, batch = model(torch), torch.zeros(64, 256, device="cuda")
    kept, pool = [net(batch)], None
    torch.cuda.synchronize()
    for number in range(4):
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.graph(graph, pool=pool if number % 2 else None, stream=stream, capture_error_mode="relaxed"):
            kept.append(net(batch) * (number + 1))
        pool = graph.pool()
        kept.append(graph)
        kept.append(torch.zeros(1 << (12 + number), device="cuda"))
        graph.replay()
    del kept[1]
    torch.cuda.empty_cache()
    step(net, torch.optim.AdamW(net.parameters()), batch)


def oom_in_capture(torch):
    """A capture that runs out of memory and is abandoned, and one that succeeds."""
    kept = [torch.empty(100 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
    kept.pop()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(capture_error_mode="relaxed")
        inside = [torch.zeros(8 << 20, dtype=torch.uint8, device="cuda")]
        try:
            inside.append(torch.empty(3 << 30, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            inside.append(torch.zeros(1 << 20, dtype=torch.uint8, device="cuda"))
        graph.capture_end()
    kept.append(torch.empty(150 << 20, dtype=torch.uint8, device="cuda"))
    del inside, graph
    kept.append(torch.empty(20 << 20, dtype=torch.uint8, device="cuda"))


def streams(torch):
    """Four streams that use each other's memory."""
    lanes, batches = [torch.cuda.Stream() for _ in range(4)], []
    for number in range(200):
        with torch.cuda.stream(lanes[number % 4]):
            batches.append(torch.zeros((number * 7919) % (3 << 20) + 1, dtype=torch.uint8, device="cuda"))
        batches[-1].record_stream(lanes[(number + 1) % 4])
        if number % 3 == 2:
            del batches[(number * 31) % len(batches)]
        if number % 50 == 49:
            torch.cuda.synchronize()


def mempool(torch):
    """The user's pools, one after another and one inside another, and their ends."""
    kept, pools = [], [torch.cuda.MemPool() for _ in range(3)]
    for number in range(60):
        with torch.cuda.use_mem_pool(pools[number % len(pools)]):
            kept.append(torch.zeros((number * 104729) % (5 << 20) + 512, dtype=torch.uint8, device="cuda"))
        kept.append(torch.zeros(number * 1000 + 1, dtype=torch.uint8, device="cuda"))
        if number % 4 == 3:
            del kept[(number * 17) % len(kept)]
    kept.clear()
    del pools
    kept.append(torch.zeros(4 << 20, dtype=torch.uint8, device="cuda"))


def fsdp(torch):
    """The layers of two of eight ranks, sharded. A process group that answers at once replaces the other ranks."""
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    net = model(torch, 512, 4)
    for layer in net:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(3):
        step(net, optimizer, torch.zeros(32, 512, device="cuda"))
    dist.destroy_process_group()


def compiled(torch, mode=None):
    """A compiled model, forward and backward."""
    net = model(torch)
    optimizer, fast = torch.optim.SGD(net.parameters(), lr=0.1), torch.compile(net, mode=mode)
    for _ in range(4):
        step(fast, optimizer, torch.zeros(64, 256, device="cuda"))


def reduce_overhead(torch):
    """A compiled model with CUDA graph trees, which make checkpoints of a graph's pool."""
    compiled(torch, "reduce-overhead")


def expandable_pools(torch):
    """Graphs and pools in expandable segments."""
    graphs(torch)
    mempool(torch)


def out_of_memory(torch):
    """A cache that is freed and filled again, on two streams."""
    kept = []
    for number in range(120):
        with torch.cuda.stream(torch.cuda.Stream() if number % 2 else torch.cuda.default_stream()):
            try:
                kept.append(torch.empty((number * 7919 << 12) % (200 << 20) + 1, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                del kept[:len(kept) // 2]


def long(torch):
    """A history of more than 100 MB."""
    kept = []
    for number in range(600_000):
        kept.append(torch.empty((number * 7919) % (3 << 20) + 1, dtype=torch.uint8, device="cuda"))
        if len(kept) > 60:
            del kept[(number * 31) % len(kept)]


CASES = {  # name -> program, option string, memory
    "graphs": (graphs, "", ""), "oom_in_capture": (oom_in_capture, "", "1GiB"), "streams": (streams, "", ""), "mempool": (mempool, "", ""),
    "fsdp": (fsdp, "", ""), "compiled": (compiled, "", ""), "reduce_overhead": (reduce_overhead, "", ""),
    "expandable_pools": (expandable_pools, EXPANDABLE, ""), "expandable": (streams, EXPANDABLE, ""), "out_of_memory": (out_of_memory, "", "2GiB"),
    "expandable_out_of_memory": (out_of_memory, EXPANDABLE, "2GiB"), "expandable_oom_in_capture": (oom_in_capture, EXPANDABLE, "1GiB"),
    "long": (long, "", ""),
}


def make(name, path):
    import torch
    torch.cuda.memory._record_memory_history(context=None, max_entries=1 << 22)
    CASES[name][0](torch)
    torch.cuda.memory._dump_snapshot(path)
    sys.stdout.flush()
    os._exit(0)


# --- making and replaying -----------------------------------------------------------------------------------------------------------------
def check(name, arguments, folder):
    _, conf, memory = CASES[name]
    path = folder / f"{name}.pickle"
    command = [BUILD / "cli/vram", "sim", "--card", "h100", "--set", f"addresses=rising,bytes=none{',memory=' + memory if memory else ''}", "--",
               arguments.torch, HERE, "--case", name, path]
    variables = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": conf, "PYTORCH_ALLOC_CONF": conf} if conf else dict(os.environ)
    made = subprocess.run(command, capture_output=True, text=True, env=variables)
    if made.returncode != 0 or not path.exists():
        print(f"{name:26} not made: {(made.stderr.strip().splitlines() or ['?'])[-1][:150]}", flush=True)
        return 3
    told = subprocess.run([BUILD / "cli/vram", "replay", "--exact", "--json", path], capture_output=True, text=True)
    try:
        devices = json.loads(told.stdout)["devices"]
        all_, exact = (sum(device[key] for device in devices) for key in ("allocations", "at_recorded_address"))
        wrong = sum(device["difference_count"] + device["left_out_allocations"] for device in devices)
    except (ValueError, KeyError):
        print(f"{name:26} no answer: {(told.stderr or told.stdout)[:200]}", flush=True)
        return 3
    print(f"{name:26} {path.stat().st_size:11,} bytes, {exact} of {all_} allocations exact, {wrong} differences", flush=True)
    return 0 if told.returncode == 0 and exact == all_ and wrong == 0 else 1


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--torch")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--case")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.case:
        make(arguments.case, arguments.names[0])
    if not arguments.torch or any(name not in CASES for name in arguments.names):
        parser.error("no PyTorch, or no such case")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.out or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        names = arguments.names or [name for name in CASES if name != "long"]
        results = [check(name, arguments, folder) for name in names]
    print(f"{results.count(0)} of {len(results)} recordings exact")
    return max(results)


if __name__ == "__main__":
    sys.exit(main())
