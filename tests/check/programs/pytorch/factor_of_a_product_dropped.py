"""A product on a side stream reads a matrix that is freed without record_stream()."""
import torch

side = torch.cuda.Stream()
factor = torch.ones(512, 512, device="cuda")
weights = torch.ones(512, 512, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    product = factor @ weights  # use
#+ factor.record_stream(side)
del factor  # free
scratch = torch.zeros(512, 512, device="cuda")  # reuse
torch.cuda.synchronize()
