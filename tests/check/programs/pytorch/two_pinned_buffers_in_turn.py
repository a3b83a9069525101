"""Two pinned buffers are used in turn, and the third batch is written without waiting for the copy of the first."""
import torch

hosts = [torch.zeros(1 << 20, pin_memory=True) for _ in range(2)]
copied = [torch.cuda.Event() for _ in range(2)]
batches = []
for step in range(3):
    place = step % 2
    #+ copied[place].synchronize()
    hosts[place].fill_(step)  # conflict
    batches.append(hosts[place].to("cuda", non_blocking=True))  # use
    copied[place].record()
torch.cuda.synchronize()
