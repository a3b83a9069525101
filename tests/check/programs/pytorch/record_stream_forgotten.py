"""A tensor is freed while a side stream still reads it: the bug that record_stream() is for."""
import torch

side = torch.cuda.Stream()
x = torch.ones(1 << 20, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = x * 2  # use
#+ x.record_stream(side)
del x  # free
z = torch.zeros(1 << 20, device="cuda")  # reuse
torch.cuda.synchronize()
