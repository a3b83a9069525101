"""Two streams write two slices of one buffer, which overlap by one element."""
import torch

first, second = torch.cuda.Stream(), torch.cuda.Stream()
buffer = torch.zeros(1 << 20, device="cuda")
half = 1 << 19
torch.cuda.synchronize()
with torch.cuda.stream(first):
    buffer[: half + 1].fill_(1)  # use #-
    #+ buffer[:half].fill_(1)
with torch.cuda.stream(second):
    buffer[half:].fill_(2)  # conflict
torch.cuda.synchronize()
