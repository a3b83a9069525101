"""A compiled function runs on a side stream, and the main stream reads its result without a wait."""
import torch

side = torch.cuda.Stream()


@torch.compile
def scaled(a, b):
    return torch.relu(a * b + 1)


a, b = torch.randn(1 << 16, device="cuda"), torch.randn(1 << 16, device="cuda")
scaled(a, b)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    c = scaled(a, b)  # use
#+ torch.cuda.current_stream().wait_stream(side)
d = c + 1  # conflict
torch.cuda.synchronize()
