"""Programs that run out of memory, each for a known cause, on a small simulated device: `vram sim --memory 2GiB -- python oom_causes.py FOLDER [CAUSE...]`
writes a recording of each to FOLDER/CAUSE.pickle.gz. Frames are named after small files, independent of this file's folder."""
import gc
import gzip
import os
import pickle
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

MIB = 1 << 20
SOURCES = {}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width=512, layers=8):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def batch(rows, width=512):
    return torch.empty(rows, width, device="cuda")


def step(model, optimizer, rows, **backward):
    loss = model(batch(rows)).sum()
    loss.backward(**backward)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def activations():
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer, 1024)
    step(model, optimizer, 65536)


def growing_list():
    model, kept = Model(layers=1).cuda(), []
    optimizer = torch.optim.SGD(model.parameters())
    for i in range(1000):
        step(model, optimizer, 256)
        kept.append(remember(batch(24576)))


def remember(x):
    return x.clone()


def retained_graphs():
    model, losses = Model(layers=4).cuda(), []
    optimizer = torch.optim.SGD(model.parameters())
    for i in range(1000):
        losses.append(step(model, optimizer, 1024, retain_graph=True))


def validation():
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for i in range(3):
        step(model, optimizer, 1024)
    validate(model)


def validate(model):
    return model(batch(65536)).argmax(-1)


def optimizer_first_step():
    model = Model(width=2048, layers=3).cuda()
    model = nn.Sequential(model, nn.Linear(2048, 2048)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    loss = model(batch(64, 2048)).sum()
    loss.backward()
    optimizer.step()


def held_gradients():
    model = Model(width=2048, layers=4).cuda()
    for rows in (16, 4096):
        model(batch(rows, 2048)).sum().backward()


def two_models():
    teacher = make_teacher()
    student = make_student()
    return teacher, student


def make_teacher():
    return Model(width=2048, layers=8).cuda()


def make_student():
    return Model(width=2048, layers=8).cuda()


def key_values():
    model, cache = Model(layers=2).cuda(), []
    with torch.no_grad():
        for i in range(4000):
            x = model(batch(1))
            cache.append(update_cache(x))


def update_cache(x):
    return init_kv_cache(48)


def init_kv_cache(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def one_request():
    x = batch(32768)
    return attention_scores(x)


def attention_scores(x):
    return x @ x.T


def fragments():
    kept, gaps = [], []
    for i in range(24):
        gaps.append(torch.empty(30 * MIB, dtype=torch.uint8, device="cuda"))
        kept.append(keep_index())
    del gaps
    return torch.empty(900 * MIB, dtype=torch.uint8, device="cuda")


def keep_index():
    return torch.empty(12 * MIB, dtype=torch.uint8, device="cuda")


def other_stream():
    side, kept = torch.cuda.Stream(), []
    with torch.cuda.stream(side):
        gaps = []
        for i in range(9):
            gaps.append(torch.empty(100 * MIB, dtype=torch.uint8, device="cuda"))
            kept.append(torch.empty(2 * MIB, dtype=torch.uint8, device="cuda"))
            gaps.append(torch.empty(17 * MIB, dtype=torch.uint8, device="cuda"))
        del gaps
    return torch.empty(1000 * MIB, dtype=torch.uint8, device="cuda")


def graph_pool():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x = torch.empty(1400 * MIB, dtype=torch.uint8, device="cuda")
        x.add_(1)
    del x
    return graph, torch.empty(1000 * MIB, dtype=torch.uint8, device="cuda")


def fraction():
    torch.cuda.set_per_process_memory_fraction(0.25)
    held = batch(100000)
    try:
        return held, torch.empty(800 * MIB, dtype=torch.uint8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


CAUSES = [activations, growing_list, retained_graphs, validation, optimizer_first_step, held_gradients, two_models, key_values, one_request, fragments, other_stream, graph_pool, fraction]


def plain(name):
    """Returns a file's name without this machine's folders."""
    for part in ("/torch/", "/lib/python3"):
        if part in name:
            return "/usr/lib/python3" + name[name.index(part):] if part == "/torch/" else name[name.index(part):]
    return "train.py" if name.endswith("oom_causes.py") else name


def renamed(frames):
    return [{**frame, "filename": plain(frame["filename"])} for frame in frames]


def record(cause, folder):
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(None)
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=20000)
    snapshots = []
    try:
        cause()
    except torch.OutOfMemoryError:
        snapshots.append(torch.cuda.memory._snapshot())
    if not snapshots:
        print(f"{cause.__name__}: no out-of-memory error")
        return False
    snapshot = snapshots[0]
    for trace in snapshot["device_traces"]:
        for event in trace:
            event["frames"] = renamed(event.get("frames", []))
    for segment in snapshot["segments"]:
        for part in [segment, *segment["blocks"]]:
            part["frames"] = renamed(part.get("frames", []))
    with gzip.GzipFile(os.path.join(folder, cause.__name__ + ".pickle.gz"), "wb", 9, mtime=0) as file:
        pickle.dump(snapshot, file, 4)
    print(f"{cause.__name__}: {sum(len(trace) for trace in snapshot['device_traces'])} events")
    return True


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    made = [record(cause, folder) for cause in CAUSES if not names or cause.__name__ in names]
    print("ok" if all(made) else "wrong")


main()
