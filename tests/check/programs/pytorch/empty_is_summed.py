"""A tensor of torch.empty() is summed before anything wrote it."""
import torch

x = torch.empty(1 << 20, device="cuda")  # made #-
#+ x = torch.zeros(1 << 20, device="cuda")
y = x + 1  # use
torch.cuda.synchronize()
