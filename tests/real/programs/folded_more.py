"""Further jobs in plain PyTorch for folded.py, under torchrun: folded_more.py uneven|nodes|mesh|hand_1f1b|objects|vocabulary|no_sync|average."""
import copy
import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

RANK, WORLD, LOCAL = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
STEPS = 5


def layers(width, count):
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(count)]).cuda()


def steps(model, optimizer, rows, width):
    """Yields after each backward pass; the optimizer's step follows."""
    for step in range(STEPS):
        model(torch.randn(rows, width, device="cuda")).square().mean().backward()
        yield step
        optimizer.step()
        optimizer.zero_grad()


def uneven():
    """The last batch has fewer rows on some ranks; rank 0 evaluates a large batch."""
    model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda(), device_ids=[LOCAL])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        for batch in range(STEPS):
            rows = 96 if batch + 1 < STEPS else 96 - 5 * RANK
            nn.functional.cross_entropy(model(torch.randn(rows, 256, device="cuda")), torch.randint(10, (rows,), device="cuda")).backward()
            optimizer.step()
            optimizer.zero_grad()
        if RANK == 0:
            with torch.no_grad():
                model.module(torch.randn(4096, 256, device="cuda"))
        dist.barrier()


def nodes():
    """Gradients are reduced within a node of two ranks, then between the nodes."""
    own = [dist.new_group([first, first + 1]) for first in range(0, WORLD, 2)][RANK // 2]
    others = [dist.new_group(list(range(place, WORLD, 2))) for place in range(2)][RANK % 2]
    model = nn.Linear(1024, 1024).cuda()
    for _ in steps(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), 64, 1024):
        for parameter in model.parameters():
            part = torch.empty(parameter.numel() // 2, device="cuda")
            dist.reduce_scatter_tensor(part, parameter.grad.flatten(), group=own)
            dist.all_reduce(part, group=others)
            whole = torch.empty(parameter.numel(), device="cuda")
            dist.all_gather_into_tensor(whole, part, group=own)
            parameter.grad.copy_(whole.view_as(parameter))


def mesh():
    """Tensor parallel and data parallel axes of a DeviceMesh."""
    axes = init_device_mesh("cuda", (WORLD // 2, 2), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
    parallelize_module(model, axes["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    for _ in steps(model, torch.optim.AdamW(model.parameters()), 32, 512):
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad.to_local(), group=axes["dp"].get_group())


def hand_1f1b():
    """A pipeline by isend() and irecv(); the first stage has an embedding, the last one a head."""
    first, last, micro, tokens, width, words = RANK == 0, RANK == WORLD - 1, 6, (4, 32), 256, 5000
    layer = nn.TransformerEncoderLayer(width, 4, 512, batch_first=True)
    model = nn.Sequential(*[nn.Embedding(words, width)] * first, layer, *[nn.Linear(width, words)] * last).cuda()
    optimizer, sends, kept = torch.optim.AdamW(model.parameters()), [], []

    def forward():
        taken = torch.randint(words, tokens, device="cuda") if first else torch.empty(*tokens, width, device="cuda")
        if not first:
            dist.irecv(taken, RANK - 1).wait()
            taken.requires_grad_()
        made = model(taken)
        if last:
            made = nn.functional.cross_entropy(made.view(-1, words), torch.randint(words, (made[..., 0].numel(),), device="cuda"))
        else:
            sends.append(dist.isend(made.detach(), RANK + 1))
        kept.append((taken, made))

    def backward():
        taken, made = kept.pop(0)
        gradient = None if last else torch.empty_like(made)
        if not last:
            dist.irecv(gradient, RANK + 1).wait()
        made.backward(gradient)
        if not first:
            sends.append(dist.isend(taken.grad, RANK - 1))

    for _ in range(STEPS):
        ahead = min(WORLD - RANK - 1, micro)
        for _ in range(ahead):
            forward()
        for _ in range(micro - ahead):
            forward()
            backward()
        for _ in range(ahead):
            backward()
        while sends:
            sends.pop().wait()
        optimizer.step()
        optimizer.zero_grad()


def objects():
    """Objects are gathered; barriers have a time limit, one of them in a group of gloo."""
    limit = datetime.timedelta(seconds=60)
    host, model = dist.new_group(backend="gloo", timeout=limit), nn.Linear(512, 512).cuda()
    for step in steps(model, torch.optim.SGD(model.parameters(), 0.1), 64, 512):
        found = [None] * WORLD
        dist.all_gather_object(found, {"rank": RANK, "numbers": list(range(20 + step))})
        assert all(len(one["numbers"]) == 20 + step for one in found)
        dist.all_reduce(torch.ones(1), group=host)
        dist.monitored_barrier(host, timeout=limit) if step == 2 else dist.barrier()


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        values = values.clone()
        dist.all_reduce(values)
        return values

    @staticmethod
    def backward(context, gradient):
        return gradient


def vocabulary():
    """The vocabulary is divided over the ranks, unevenly."""
    words, width = 32003, 256
    begin, own = sum(len(part) for part in torch.arange(words).tensor_split(WORLD)[:RANK]), len(torch.arange(words).tensor_split(WORLD)[RANK])
    table, body = nn.Parameter(torch.randn(own, width, device="cuda")), nn.Linear(width, width).cuda()
    optimizer = torch.optim.AdamW([table, *body.parameters()])
    for _ in range(STEPS):
        ids = torch.randint(words, (8, 64), device="cuda")
        dist.broadcast(ids, 0)
        outside = (ids < begin) | (ids >= begin + own)
        embedded = nn.functional.embedding((ids - begin).masked_fill(outside, 0), table).masked_fill(outside[..., None], 0)
        logits = body(Summed.apply(embedded)) @ table.t()
        logits.exp().sum(-1).log().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def no_sync():
    """Gradients are accumulated over four batches."""
    model = DistributedDataParallel(layers(512, 6), device_ids=[LOCAL], gradient_as_bucket_view=True, bucket_cap_mb=1)
    for _ in steps(model, torch.optim.AdamW(model.parameters()), 32, 512):
        with model.no_sync():
            for _ in range(3):
                model(torch.randn(32, 512, device="cuda")).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def average():
    """Rank 0 keeps an average of the weights."""
    model = DistributedDataParallel(layers(768, 4), device_ids=[LOCAL])
    kept = copy.deepcopy(model.module) if RANK == 0 else None
    for _ in steps(model, torch.optim.AdamW(model.parameters()), 64, 768):
        with torch.no_grad():
            for one, other in zip(kept.parameters() if kept is not None else (), model.parameters()):
                one.lerp_(other, 0.01)


torch.cuda.set_device(LOCAL)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=300))
globals()[sys.argv[1]]()
dist.destroy_process_group()
