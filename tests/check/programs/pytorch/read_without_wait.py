"""A side stream reads what the main stream writes, and does not wait for it."""
import torch

side = torch.cuda.Stream()
x = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
x.fill_(3)  # use
#+ side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = x * 2  # conflict
torch.cuda.synchronize()
