"""Several ranks under torchrun, each a process with its own device."""
import os

import torch
import torch.distributed as dist
from rows import main, peak_is, row

MIB = 1 << 20


def begin():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    return rank, torch.device("cuda", rank)


def net(device, width=512):
    return torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(4)]).to(device)


@row
def collectives():
    rank, device = begin()
    size = dist.get_world_size()
    x = torch.ones(1 << 20, device=device)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.all_gather_into_tensor(torch.empty(size << 20, device=device), x)
    dist.reduce_scatter_tensor(torch.empty((1 << 20) // size, device=device), x)
    dist.all_to_all_single(torch.empty_like(x), x)
    if rank == 0:
        dist.send(x, 1)
    elif rank == 1:
        dist.recv(x, 0)
    dist.barrier()
    dist.destroy_process_group()


@row
def ddp():
    rank, device = begin()
    model = torch.nn.parallel.DistributedDataParallel(net(device), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(16, 512, device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    peak_is(torch, 16 * MIB, device=device)
    dist.barrier()
    dist.destroy_process_group()


@row
def fsdp2():
    rank, device = begin()
    from torch.distributed.fsdp import fully_shard

    model = net(device, 1024)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(16, 1024, device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    peak_is(torch, 8 * MIB, device=device)
    dist.barrier()
    dist.destroy_process_group()


@row
def symmetric_memory():
    """A buffer that all ranks map into their address space by its file descriptor. Each rank reads what another copied into it."""
    import torch.distributed._symmetric_memory as symmetric

    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
    before = torch.cuda.mem_get_info()[0]
    own = symmetric.empty(1 << 20, dtype=torch.float32, device=device)
    handle = symmetric.rendezvous(own, dist.group.WORLD)
    taken = before - torch.cuda.mem_get_info()[0]
    assert 4 * MIB <= taken <= 10 * MIB, taken  # only its own half, with a page for signals
    own.copy_(torch.full((1 << 20,), rank + 1.0))
    torch.cuda.synchronize()
    dist.barrier()
    assert handle.get_buffer(1 - rank, (1 << 20,), torch.float32)[5].item() == 2.0 - rank
    del own, handle
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
