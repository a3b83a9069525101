"""A job of plain PyTorch for searched.py, under torchrun: a language model in tensor, pipeline and sharded data parallel.

searched_torch.py --tp 2 --pp 2 --dp 2 --mbs 1 [--ckpt] [--width 4096] [--layers 32]"""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.checkpoint import checkpoint

LENGTH, WORDS, STEPS, MICRO_BATCHES = 2048, 32000, 6, 4


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads  # of this rank
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, rows):
        inner = self.norms[0](rows)
        query, key, value = (part(inner).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        rows = rows + self.out(mixed.transpose(1, 2).flatten(2))
        return rows + self.down(nn.functional.gelu(self.up(self.norms[1](rows))))


class Stage(nn.Module):
    def __init__(self, options, place):
        super().__init__()
        first, last = place == 0, place == options.pp - 1
        self.saves = options.ckpt
        self.words = nn.Embedding(WORDS, options.width) if first else None
        self.blocks = nn.ModuleList([Block(options.width, options.width // 128 // options.tp) for _ in range(options.layers // options.pp)])
        self.head = nn.Linear(options.width, WORDS, bias=False) if last else None

    def forward(self, rows):
        if self.words is not None:
            rows = self.words(rows)
        for block in self.blocks:
            rows = checkpoint(block, rows, use_reentrant=False) if self.saves else block(rows)
        return rows if self.head is None else self.head(rows)


def split(stage, mesh):
    """Shards the blocks over the tensor parallel group, then all parameters over the data parallel group."""
    plan = {name: ColwiseParallel() for name in ("query", "key", "value", "up")} | {name: RowwiseParallel() for name in ("out", "down")}
    for block in stage.blocks:
        if mesh["tp"].size() > 1:
            parallelize_module(block, mesh["tp"], plan)
        fully_shard(block, mesh=mesh["dp"])
    return fully_shard(stage, mesh=mesh["dp"])


def loss_of(scores, words):
    return nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten())


def main(options):
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    mesh = init_device_mesh("cuda", (options.pp, options.dp, options.tp), mesh_dim_names=("pp", "dp", "tp"))
    place = mesh["pp"].get_local_rank()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        stage = Stage(options, place)
    stage = split(stage, mesh).to_empty(device=device)
    optimizer = torch.optim.AdamW(stage.parameters(), foreach=False)
    words = torch.zeros(options.mbs * MICRO_BATCHES, LENGTH, dtype=torch.long, device=device)
    schedule = Schedule1F1B(PipelineStage(stage, place, options.pp, device, group=mesh["pp"].get_group()), MICRO_BATCHES, loss_fn=loss_of)
    if dist.get_rank() == 0:
        print("tokens per step:", options.mbs * MICRO_BATCHES * LENGTH * options.dp, flush=True)
    for _ in range(STEPS):
        schedule.step(*[words] if place == 0 else [], target=words if place == options.pp - 1 else None)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, value in (("tp", 1), ("pp", 1), ("dp", 1), ("mbs", 1), ("width", 4096), ("layers", 32)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--ckpt", action="store_true")
    main(parser.parse_args())
