"""pytorch #195281: a collective is carried out on one stream while the input of a side stream is still being written."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
side = torch.cuda.Stream()
x = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(side):
    x.fill_(rank)  # use
#+ torch.cuda.current_stream().wait_stream(side)
dist.all_reduce(x)  # conflict
torch.cuda.synchronize()
dist.destroy_process_group()
