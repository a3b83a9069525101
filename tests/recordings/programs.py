"""The programs recorded in own.tar.zst. Each gets the module torch and runs on PyTorch 2.0 and all later versions.

usage: programs.py NAME[=ROWS] FILE      records NAME and writes FILE, in the format of its extension
       programs.py NAME[=ROWS] --peak    does not record, and prints the peak of reserved memory
"""
import functools
import json
import os
import pickle
import sys

MIB = 1 << 20


def layers(torch, width, count):
    parts = []
    for _ in range(count):
        parts += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts).cuda()


def train_step(net, optimizer, batch):
    loss = net(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def train(torch, begin, rows=256, steps=4):
    """A model, AdamW and a few steps, recorded from the first allocation."""
    begin()
    net = layers(torch, 1024, 6)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(steps):
        train_step(net, optimizer, torch.zeros(rows, 1024, device="cuda"))


def rows_1024(torch, begin):
    """Runs train() from functions with other names, so that no call stack of one run occurs in another."""
    train(torch, begin, 1024)


def rows_2048(torch, begin):
    train(torch, begin, 2048)


def rows_4096(torch, begin):
    train(torch, begin, 4096)


def late(torch, begin):
    """Recording begins after the model and its optimizer are made."""
    net = layers(torch, 512, 8)
    optimizer = torch.optim.Adam(net.parameters())
    train_step(net, optimizer, torch.zeros(64, 512, device="cuda"))
    begin()
    for _ in range(6):
        train_step(net, optimizer, torch.zeros(512, 512, device="cuda"))


def infer(torch, begin):
    """Layers without gradients, batches of changing sizes."""
    begin()
    net = layers(torch, 768, 12)
    with torch.no_grad():
        for number in range(24):
            net(torch.zeros(64 + (number * 37) % 200, 768, device="cuda"))


def segments(torch, begin):
    """No history: a snapshot of the segments only."""
    global kept
    kept = [torch.zeros((number * 7919) % (3 * MIB) + 1, dtype=torch.uint8, device="cuda") for number in range(60)]
    del kept[::3]


def leak(torch, begin):
    """Keeps the loss of each step for a log, and with it the loss's graph."""
    net, losses = layers(torch, 256, 4), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    begin()
    for _ in range(16):
        loss = net(torch.zeros(512, 256, device="cuda")).square().mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss)
    globals()["kept"] = losses


def streams(torch, begin):
    """Four streams that use each other's memory."""
    begin()
    lanes, batches = [torch.cuda.Stream() for _ in range(4)], []
    for number in range(240):
        with torch.cuda.stream(lanes[number % 4]):
            batches.append(torch.zeros((number * 7919) % (3 * MIB) + 1, dtype=torch.uint8, device="cuda"))
        batches[-1].record_stream(lanes[(number + 1) % 4])
        if number % 3 == 2:
            del batches[(number * 31) % len(batches)]
        if number % 60 == 59:
            torch.cuda.synchronize()


def emptied(torch, begin):
    """The cache is emptied from time to time."""
    begin()
    kept = []
    for number in range(200):
        kept.append(torch.empty((number * 104729) % (24 * MIB) + 1, dtype=torch.uint8, device="cuda"))
        if len(kept) > 20:
            del kept[(number * 31) % len(kept)]
        if number % 40 == 39:
            del kept[::2]
            torch.cuda.empty_cache()


def two_devices(torch, begin):
    """A model with its second half on the second device."""
    begin()
    first, second = layers(torch, 512, 4).to("cuda:0"), layers(torch, 512, 4).to("cuda:1")
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1, momentum=0.9)
    for _ in range(3):
        second(first(torch.zeros(1024, 512, device="cuda:0")).to("cuda:1")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def graphs(torch, begin):
    """Three CUDA graphs, two in one pool."""
    begin()
    net, batch = layers(torch, 256, 4), torch.zeros(64, 256, device="cuda")
    kept, pool = [net(batch)], None
    torch.cuda.synchronize()
    for number in range(3):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool if number == 1 else None):
            kept.append(net(batch) * (number + 1))
        pool = graph.pool()
        kept += [graph, torch.zeros(1 << (12 + number), device="cuda")]
        graph.replay()
    globals()["kept"] = kept


def annotated(torch, begin):
    """Ranges of the profiler around the parts of a step."""
    begin()
    net = layers(torch, 512, 6)
    optimizer = torch.optim.Adam(net.parameters())
    for number in range(3):
        with torch.profiler.record_function(f"## step {number} ##"):
            with torch.profiler.record_function("forward"):
                loss = net(torch.zeros(256, 512, device="cuda")).square().mean()
            with torch.profiler.record_function("backward"):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            del loss


def compiled(torch, begin):
    """A compiled step: compile contexts."""
    begin()
    net = layers(torch, 256, 4)
    optimizer, fast = torch.optim.SGD(net.parameters(), lr=0.1), torch.compile(net)
    for _ in range(3):
        train_step(fast, optimizer, torch.zeros(64, 256, device="cuda"))


def out_of_memory(torch, begin):
    """Activations of a growing batch until the device is full."""
    begin()
    net = layers(torch, 1024, 8)
    optimizer = torch.optim.AdamW(net.parameters())
    try:
        for number in range(1, 64):
            train_step(net, optimizer, torch.zeros(1024 * number, 1024, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        globals()["kept"] = net, optimizer


def ring(torch, begin):
    """More events than the history can hold."""
    begin(900)
    net = layers(torch, 256, 6)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(16):
        train_step(net, optimizer, torch.zeros(128, 256, device="cuda"))


def record(torch, entries=1 << 22):
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < (2, 1):
        torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=entries, trace_alloc_record_context=True)
    else:
        torch.cuda.memory._record_memory_history(context="all", stacks="python", max_entries=entries)


def neutral(snapshot):
    """Returns the snapshot without the folders of the machine that made it."""
    places = ((os.path.dirname(os.path.abspath(__file__)), "/home/user"), (sys.prefix, "/opt/pytorch"), (sys.base_prefix, "/usr"))

    def walk(value):
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(item)
        if isinstance(value, dict) and "filename" in value:
            for place, name in places:
                value["filename"] = value["filename"].replace(place, name)

    walk(snapshot)
    return snapshot


def write_snapshot(torch, path):
    """Writes the form given by the name's ending."""
    snapshot = neutral(torch.cuda.memory_snapshot() if path.endswith(".list.pickle") else torch.cuda.memory._snapshot())
    if path.endswith(".html"):
        from torch.cuda._memory_viz import trace_plot
        with open(path, "w", encoding="utf-8") as file:
            file.write(trace_plot(snapshot))
    elif path.endswith(".json"):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(snapshot, file)
    else:
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)


def main(name, path):
    import torch
    name, _, rows = name.partition("=")
    run = functools.partial(globals()[name], **{"rows": int(rows)} if rows else {})
    if path == "--peak":
        run(torch, lambda entries=0: None)
        print(json.dumps([torch.cuda.max_memory_reserved(device) for device in range(torch.cuda.device_count())]))
    else:
        run(torch, lambda entries=1 << 22: record(torch, entries))
        write_snapshot(torch, path)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
