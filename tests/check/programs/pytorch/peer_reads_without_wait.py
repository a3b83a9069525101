"""A stream of the second GPU writes the tensor that the first GPU's stream copies from, with no event between."""
import torch

other = torch.cuda.Stream("cuda:1")
source = torch.zeros(1 << 20, device="cuda:1")
target = torch.zeros(1 << 20, device="cuda:0")
torch.cuda.synchronize(0)
torch.cuda.synchronize(1)
with torch.cuda.stream(other):
    source.fill_(1)  # use
#+ torch.cuda.current_stream(1).wait_stream(other)
target.copy_(source, non_blocking=True)  # conflict
torch.cuda.synchronize(0)
torch.cuda.synchronize(1)
