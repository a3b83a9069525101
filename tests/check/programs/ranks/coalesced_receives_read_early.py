"""A pipeline's stage starts its next micro-batch with the buffer that the batch of receives has not filled yet."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
sent, received = torch.ones(1 << 20, device="cuda"), torch.zeros(1 << 20, device="cuda")
operations = [dist.P2POp(dist.isend, sent, 1 - rank), dist.P2POp(dist.irecv, received, 1 - rank)]
works = dist.batch_isend_irecv(operations)  # use
#+ [work.wait() for work in works]
y = received + 1  # conflict
for work in works:
    work.wait()
torch.cuda.synchronize()
dist.destroy_process_group()
