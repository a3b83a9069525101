"""Programs whose ranks form groups, under torchrun: torch_folds.py ROW FOLDER. Each rank writes the actions of its allocator into
FOLDER/RANK.json: fit_folds.py compares those of ranks that ran with all others and with few."""
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from rows import say_ok
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

WIDTH, STEPS = 128, 3
LOCAL = int(os.environ["LOCAL_RANK"])
DEVICE = torch.device("cuda", LOCAL)
PROGRAMS = str(pathlib.Path(__file__).parent)


def net(layers=4):
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(layers)]).to(DEVICE)


def batch(rows=16):
    return torch.randn(rows, WIDTH, device=DEVICE)


def train(model, optimizer=None, rows=lambda: 16):
    optimizer = optimizer or torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        model(batch(rows())).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def pairs(**options):
    """Returns this rank's pair of neighbours."""
    groups = [dist.new_group([first, first + 1], **options) for first in range(0, dist.get_world_size(), 2)]
    return groups[dist.get_rank() // 2]


def subgroups():
    train(DistributedDataParallel(net(), process_group=pairs()))


def split():
    halves = [[first, first + 1] for first in range(0, dist.get_world_size(), 2)]
    train(DistributedDataParallel(net(), process_group=dist.split_group(None, halves)))


def mesh_of(*names):
    return init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=names)


def sharded(model, mesh):
    from torch.distributed.fsdp import fully_shard

    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def tensor_fsdp2():
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = mesh_of("shards", "tensor")
    plan = {"0": ColwiseParallel(), "1": RowwiseParallel(), "2": ColwiseParallel(), "3": RowwiseParallel()}
    train(sharded(parallelize_module(net(), mesh["tensor"], plan), mesh["shards"]))


def hsdp():
    train(sharded(net(), mesh_of("replicas", "shards")))


def zero1():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(net(), device_ids=[LOCAL])
    train(model, ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW))


def pipeline(schedule):
    from torch.distributed.pipelining import PipelineStage

    mesh = mesh_of("replicas", "stages")
    number = mesh.get_local_rank("stages")
    model = net(1 + 2 * number)
    run = schedule(PipelineStage(model, number, 2, DEVICE, group=mesh.get_group("stages")), 4, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        run.step(batch()) if number == 0 else run.step(target=batch(), losses=[])
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=mesh.get_group("replicas"))
        optimizer.step()
        optimizer.zero_grad()


def gpipe():
    from torch.distributed.pipelining import ScheduleGPipe

    pipeline(ScheduleGPipe)


def one_forward_one_backward():
    from torch.distributed.pipelining import Schedule1F1B

    pipeline(Schedule1F1B)


def experts():
    """Rows go to the experts of other ranks; how many, the ranks tell each other first."""
    half = dist.get_world_size() // 2
    group = [dist.new_group(list(range(first, first + half))) for first in (0, half)][dist.get_rank() // half]
    model, given = net(), torch.full((half,), 16, device=DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        taken = torch.empty_like(given)
        dist.all_to_all_single(taken, given, group=group)
        routed = torch.empty(int(taken.sum()), WIDTH, device=DEVICE)
        dist.all_to_all_single(routed, batch(16 * half), taken.tolist(), given.tolist(), group=group)
        model(routed).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def objects():
    """Sizes come from objects and tensors that gloo transfers."""
    pair = pairs(backend="gloo")

    def rows():
        everyone, both, own, count = [None] * dist.get_world_size(), [None] * 2, [32], torch.tensor([16])
        dist.all_gather_object(everyone, {"rows": 16})
        dist.all_gather_object(both, 16, group=pair)
        dist.broadcast_object_list(own, src=dist.get_rank() // 2 * 2, group=pair)
        dist.all_reduce(count, group=pair)
        dist.barrier(group=pair)
        return sum(one["rows"] for one in everyone) + sum(both) + own[0] + int(count)

    train(net(), rows=rows)


ROWS = {function.__name__: function for function in (subgroups, split, tensor_fsdp2, hsdp, zero1, gpipe, one_forward_one_backward, experts, objects)}


def actions():
    """Returns what the allocator did, with the program's lines."""
    traces = torch.cuda.memory._snapshot()["device_traces"]
    return [[entry["action"], entry.get("size"), [f["line"] for f in entry.get("frames", []) if f["filename"].startswith(PROGRAMS)]]
            for entry in traces[LOCAL]]


def run(name, folder):
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("cpu:gloo,cuda:nccl" if name == "objects" else "nccl", device_id=DEVICE)
    ROWS[name]()
    torch.cuda.synchronize()
    facts = {"actions": actions(), "peak": torch.cuda.max_memory_reserved(), "free": torch.cuda.mem_get_info()[0]}
    pathlib.Path(folder, f"{dist.get_rank()}.json").write_text(json.dumps(facts))
    dist.barrier()
    say_ok()


if __name__ == "__main__":
    run(*sys.argv[1:])
