"""A buffer is overwritten while it is being sent."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
x = torch.ones(1 << 20, device="cuda")
if rank == 0:
    work = dist.isend(x, 1)  # use
    #+ work.wait()
    x.zero_()  # conflict
else:
    work = dist.irecv(x, 0)
work.wait()
torch.cuda.synchronize()
dist.destroy_process_group()
