"""Jobs of plain PyTorch for folded.py, under torchrun: folded_torch.py subgroups|hsdp|differs."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH, STEPS = 256, 8


def net():
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(6)]).cuda()


def train(model, after_step=lambda step: None):
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        model(torch.randn(32, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        after_step(step)


def subgroups():
    groups = [dist.new_group([first, first + 1]) for first in range(0, dist.get_world_size(), 2)]
    train(DistributedDataParallel(net(), process_group=groups[dist.get_rank() // 2]))


def hsdp():
    mesh = init_device_mesh("cuda", (2, dist.get_world_size() // 2), mesh_dim_names=("replicas", "shards"))
    model = net()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    train(fully_shard(model, mesh=mesh))


def differs():
    """Rank 5 keeps memory after its third step."""
    kept, rank = [], dist.get_rank()

    def keep(step):
        if rank == 5 and step > 1:
            kept.append(torch.empty(8 << 20, device="cuda"))

    train(DistributedDataParallel(net()), keep)


if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    {"subgroups": subgroups, "hsdp": hsdp, "differs": differs}[sys.argv[1]]()
    dist.destroy_process_group()
