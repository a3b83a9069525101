"""Two streams use the tensor, and only one of them is recorded."""
import torch

first, second = torch.cuda.Stream(), torch.cuda.Stream()
x = torch.ones(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(first):
    y = x * 2
with torch.cuda.stream(second):
    z = x * 3  # use
x.record_stream(first)
#+ x.record_stream(second)
first.synchronize()
del x  # free
other = torch.zeros(1 << 20, device="cuda")  # reuse
torch.cuda.synchronize()
