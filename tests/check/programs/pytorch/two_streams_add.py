"""Two streams add to one tensor."""
import torch

first, second = torch.cuda.Stream(), torch.cuda.Stream()
total = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(first):
    total.add_(1)  # use
#+ second.wait_stream(first)
with torch.cuda.stream(second):
    total.add_(2)  # conflict
torch.cuda.synchronize()
