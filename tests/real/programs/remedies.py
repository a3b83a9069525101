"""Tries the remedies of `vram report` for a peak: changes the program as it says, and the peak must be the promised one within 3 %. A
batch that it says fits must fit."""
import argparse
import gc
import json
import os
import subprocess
import tempfile

# Fragmentation does not depend on the batch; settings help against it.
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
import torch.nn as nn
import torch.nn.functional as F
from rows import main, row
from torch.utils.checkpoint import checkpoint

WITHIN = 0.03


def read_report(vram, path, *options):
    """Runs the command as elsewhere: not on the simulated device."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VRAM_", "LD_"))}
    report = subprocess.run([vram, "report", "--json", "--no-cure", *options, path], env=environment, capture_output=True, check=True)
    return json.loads(report.stdout)["devices"]["0"]


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, 8, width // 8).transpose(1, 2) for part in self.qkv(x).split(width, 2))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Model(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how, self.words = how, nn.Embedding(how.words, how.width)
        self.blocks = nn.ModuleList(Block(how.width) for _ in range(how.layers))
        self.norm, self.head = nn.LayerNorm(how.width), nn.Linear(how.width, how.words, bias=False)

    def forward(self, x, y):
        x = self.words(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.how.recompute else call_block(block, x)
        x = self.norm(x)
        if self.how.parts == 1:
            return self.loss(x, y)
        return sum(checkpoint(self.loss, part, wanted, use_reentrant=False) for part, wanted in zip(x.chunk(self.how.parts), y.chunk(self.how.parts)))

    def loss(self, x, y):
        return F.cross_entropy(self.head(x).flatten(0, 1), y.flatten(), reduction="sum")


def call_block(block, x):
    return block(x)


def run(path, fraction=1.0, **changed):
    """Records a training of three steps. Returns whether it ran out of memory."""
    how = argparse.Namespace(**{"layers": 8, "width": 512, "words": 8000, "batch": 16, "recompute": False, "parts": 1, "to_zero": False, "first": None, **changed})
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(fraction)
    torch.cuda.memory._record_memory_history(None)
    torch.cuda.memory._record_memory_history(stacks="python")
    failed = train(how)
    torch.cuda.memory._dump_snapshot(path)
    gc.collect()
    return failed


def train(how):
    model = Model(how).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    try:
        for i in range(3):
            x, y = (torch.zeros(how.first if i == 0 and how.first else how.batch, 512, dtype=torch.long, device="cuda") for _ in range(2))
            model(x, y).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=not how.to_zero)
    except torch.OutOfMemoryError:
        return True
    return False


def peak(vram, path):
    return read_report(vram, path)["allocated"]["peak_bytes"]


def remedy(vram, path, name, part=0.7):
    """Returns the report's remedy of this name for a device with `part` of the peak's memory."""
    demand = read_report(vram, path, "--memory", f"{int(part * peak(vram, path))}B")["demand"]
    found = [item for item in demand["remedies"] if item["remedy"] == name]
    assert found, f"no {name} among {[item['remedy'] for item in demand['remedies']]}"
    return found[0]


def compare(name, promised, before, after):
    saved = before - after
    print(f"{name}: {promised['saved_bytes']} bytes less were promised, {saved} it is ({100 * promised['saved_bytes'] / saved - 100:+.2f} %); peak {before} -> {after}, promised {promised['left_bytes']}")
    assert abs(promised["saved_bytes"] - saved) <= WITHIN * saved


def path_of(folder, name):
    return os.path.join(folder, name + ".pickle")


@row
def remedy_recompute(vram):
    with tempfile.TemporaryDirectory() as folder:
        before, after = path_of(folder, "before"), path_of(folder, "after")
        run(before)
        promised = remedy(vram, before, "recompute")
        assert promised["calls"] == 8, promised
        print(promised["text"])
        run(after, recompute=True)
        compare("recompute", promised, peak(vram, before), peak(vram, after))


@row
def remedy_gradients(vram):
    with tempfile.TemporaryDirectory() as folder:
        before, after = path_of(folder, "before"), path_of(folder, "after")
        run(before, to_zero=True, batch=2)
        promised = remedy(vram, before, "gradients_none")
        run(after, batch=2)
        compare("gradients_none", promised, peak(vram, before), peak(vram, after))


@row
def remedy_chunks(vram):
    with tempfile.TemporaryDirectory() as folder:
        before, after = path_of(folder, "before"), path_of(folder, "after")
        run(before, layers=2, words=60000)
        promised = remedy(vram, before, "chunks")
        run(after, layers=2, words=60000, parts=promised["divisor"])
        compare("chunks", promised, peak(vram, before), peak(vram, after))


@row
def remedy_batch(vram):
    """Out of memory in the second step under three limits: early, in the middle and late. The batch that should fit does, and is at least
    half of the largest that does."""
    total = torch.cuda.get_device_properties(0).total_memory
    with tempfile.TemporaryDirectory() as folder:
        whole = path_of(folder, "whole")
        run(whole)
        most = torch.cuda.max_memory_reserved()
        for part in (0.5, 0.7, 0.9):
            failed, fitted = path_of(folder, f"failed{part}"), path_of(folder, f"fitted{part}")
            assert run(failed, fraction=part * most / total, first=2), f"{part}: it fits"
            cause = read_report(vram, failed)["oom_causes"][-1]
            batch = [item for item in cause["demand"]["remedies"] if item["remedy"] == "batch"]
            assert batch, cause
            rows = int(16 * batch[0]["factor"])
            print(f"{part} of the peak: {cause['cause']}, {cause['demand']['text']}; a batch of {rows} is to fit{', unfinished' if cause['demand']['unfinished'] else ''}")
            assert cause["demand"]["earlier_step"] or not cause["demand"]["unfinished"], cause["demand"]
            assert not run(fitted, fraction=part * most / total, first=2, batch=rows), f"{part}: a batch of {rows} does not fit"
            assert rows >= 16 * part / 2, f"{part}: {rows} is too few"


if __name__ == "__main__":
    main()
