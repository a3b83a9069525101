"""pytorch #23729: the default stream's tensor is copied on another stream, and a new tensor of the default stream overwrites it."""
import torch

side = torch.cuda.Stream()
x = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(side):
    torch.cuda._sleep(1000000)
    y = x.clone()  # use
#+ side.synchronize()
del x  # free
z = torch.full((1 << 20,), 7.0, device="cuda")  # reuse
torch.cuda.synchronize()
