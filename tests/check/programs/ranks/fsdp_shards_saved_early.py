"""The shards of an FSDP model are copied to pinned memory, and the host reads them before the copy completes."""
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
model = fully_shard(torch.nn.Linear(1024, 1024, bias=False, device="cuda"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(8, 1024, device="cuda")).sum().backward()
optimizer.step()
host = torch.empty(512, 1024, pin_memory=True)
host.copy_(model.weight.to_local().detach(), non_blocking=True)  # use
#+ torch.cuda.current_stream().synchronize()
norm = host.norm()  # conflict
torch.cuda.synchronize()
dist.destroy_process_group()
