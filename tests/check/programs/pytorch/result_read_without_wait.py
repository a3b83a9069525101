"""The main stream reads the result of a side stream without waiting for it."""
import torch

side = torch.cuda.Stream()
x = torch.ones(1 << 20, device="cuda")
result = torch.empty_like(x)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.mul(x, 2, out=result)  # use
#+ torch.cuda.current_stream().wait_stream(side)
y = result + 1  # conflict
torch.cuda.synchronize()
