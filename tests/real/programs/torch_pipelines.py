"""Stages of a pipeline on two ranks, with each of three schedules: torch_pipelines.py ROW. Stages send each other the shapes of their data, as objects
over NCCL."""
import os

import torch
import torch.distributed as dist
from rows import main, row
from torch import nn
from torch.distributed import pipelining

WIDTH, BATCH, PARTS = 32, 16, 4


def begin():
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return rank, dist.get_world_size(), device


def run(schedule, rank, world, device):
    losses = []
    for _ in range(2):
        if rank == 0:
            schedule.step(torch.randn(BATCH, WIDTH, device=device))
        else:
            schedule.step(target=torch.randn(BATCH, WIDTH, device=device), losses=losses)
    assert len(losses) == (PARTS if rank == world - 1 else 0), losses
    dist.destroy_process_group()


def layer(device):
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()).to(device)


@row
def pipeline_gpipe():
    rank, world, device = begin()
    stage = pipelining.PipelineStage(layer(device), rank, world, device)
    run(pipelining.ScheduleGPipe(stage, n_microbatches=PARTS, loss_fn=nn.MSELoss()), rank, world, device)


@row
def pipeline_1f1b():
    rank, world, device = begin()
    stage = pipelining.PipelineStage(layer(device), rank, world, device)
    run(pipelining.Schedule1F1B(stage, n_microbatches=PARTS, loss_fn=nn.MSELoss()), rank, world, device)


@row
def pipeline_interleaved():
    rank, world, device = begin()
    stages = [pipelining.PipelineStage(layer(device), rank + world * i, 2 * world, device) for i in range(2)]
    run(pipelining.ScheduleInterleaved1F1B(stages, n_microbatches=PARTS, loss_fn=nn.MSELoss()), rank, world, device)


if __name__ == "__main__":
    main()
