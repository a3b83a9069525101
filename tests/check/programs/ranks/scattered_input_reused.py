"""The input of a reduce-scatter is cleared for the next step before the collective has read it."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
gradients = torch.ones(2 << 20, device="cuda")
shard = torch.empty(1 << 20, device="cuda")
work = dist.reduce_scatter_tensor(shard, gradients, async_op=True)  # use
#+ work.wait()
gradients.zero_()  # conflict
work.wait()
torch.cuda.synchronize()
dist.destroy_process_group()
