"""The main stream waits for the all-gather. A side stream, which does not, reads the result."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
side = torch.cuda.Stream()
shard = torch.ones(1 << 20, device="cuda")
full = torch.empty(2 << 20, device="cuda")
side.wait_stream(torch.cuda.current_stream())
work = dist.all_gather_into_tensor(full, shard, async_op=True)  # use
work.wait()
#+ side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = full * 2  # conflict
torch.cuda.synchronize()
dist.destroy_process_group()
