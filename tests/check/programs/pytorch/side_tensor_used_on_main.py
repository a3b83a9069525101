"""A tensor of a side stream's pool is used on the main stream, freed, and handed out again on the side stream."""
import torch

side = torch.cuda.Stream()
with torch.cuda.stream(side):
    x = torch.ones(1 << 20, device="cuda")
torch.cuda.current_stream().wait_stream(side)
y = x + 1  # use
#+ side.wait_stream(torch.cuda.current_stream())
del x  # free
with torch.cuda.stream(side):
    z = torch.full((1 << 20,), 3.0, device="cuda")  # reuse
torch.cuda.synchronize()
