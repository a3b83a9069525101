"""The ranks give different sizes to one collective."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
count = 1 << 20
count += rank  #-
try:
    dist.all_reduce(torch.ones(count, device="cuda"))  # use
    torch.cuda.synchronize()
except RuntimeError as error:
    print(str(error).split("\n")[0])
os._exit(0)  # no further collective can be carried out
