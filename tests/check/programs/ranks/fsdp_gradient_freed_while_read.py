"""The gradient shard of an FSDP model is dropped while a side stream still reads it."""
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
side = torch.cuda.Stream()
model = fully_shard(torch.nn.Linear(2048, 2048, bias=False, device="cuda"))
model(torch.ones(8, 2048, device="cuda")).sum().backward()
gradient = model.weight.grad.to_local().clone()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    norm = gradient.square()  # use
#+ gradient.record_stream(side)
del gradient  # free
noise = torch.zeros(1024, 2048, device="cuda")  # reuse
torch.cuda.synchronize()
dist.destroy_process_group()
