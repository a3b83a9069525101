"""backward() ran on a side stream. Its gradients are read on the main stream without a wait."""
import torch

side = torch.cuda.Stream()
weight = torch.ones(1024, 1024, device="cuda", requires_grad=True)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    loss = (weight * 2).square().sum()
    loss.backward()  # use
#+ torch.cuda.current_stream().wait_stream(side)
norm = weight.grad.norm()  # conflict
torch.cuda.synchronize()
