"""An asynchronous all-reduce is not waited for before its result is used."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
x = torch.ones(1 << 20, device="cuda")
work = dist.all_reduce(x, async_op=True)  # use
#+ work.wait()
y = x / 2  # conflict
work.wait()
torch.cuda.synchronize()
dist.destroy_process_group()
