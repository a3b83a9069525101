"""`x = x + 1` frees the old tensor that a side stream still reads; the next result takes its memory."""
import torch

side = torch.cuda.Stream()
x = torch.ones(1 << 20, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    total = x.sum()  # use
#+ torch.cuda.current_stream().wait_stream(side)
x = x + 1  # free
y = x * 3  # reuse
torch.cuda.synchronize()
