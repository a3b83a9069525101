"""A DDP hook starts the all-reduce and returns at once with a finished future, so that the optimizer reads unfinished sums."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024, bias=False, device="cuda"), gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
works = []


def hook(state, bucket):
    works.append(dist.all_reduce(bucket.buffer(), async_op=True))  # use
    #+ return works[-1].get_future().then(lambda future: future.value()[0])
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


model.register_comm_hook(None, hook)
model(torch.ones(8, 1024, device="cuda")).sum().backward()
optimizer.step()  # conflict
works[-1].wait()
torch.cuda.synchronize()
dist.destroy_process_group()
