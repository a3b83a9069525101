"""A side stream copies a gradient of DDP after an event that was recorded before the all-reduce that writes it."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
side = torch.cuda.Stream()
ready = torch.cuda.Event()
layer = torch.nn.Linear(1024, 1024, bias=False, device="cuda")
model = torch.nn.parallel.DistributedDataParallel(layer, gradient_as_bucket_view=True)
model(torch.ones(8, 1024, device="cuda")).sum().backward()
ready.record()
dist.all_reduce(layer.weight.grad)  # use
#+ ready.record()
side.wait_event(ready)
with torch.cuda.stream(side):
    kept = layer.weight.grad.clone()  # conflict
torch.cuda.synchronize()
dist.destroy_process_group()
