"""Kernels with operands smaller than their number of elements says: a comparison writes bools, and PReLU's backward repeats one weight. That is right;
the weight's gradient is read without a wait."""
import torch

side = torch.cuda.Stream()
prelu = torch.nn.PReLU(device="cuda")
x = torch.ones(64, 64, device="cuda")
one, other = torch.ones(500, dtype=torch.long, device="cuda"), torch.zeros(500, dtype=torch.long, device="cuda")
masks = [one < other for _ in range(4)]
torch.cuda.synchronize()
with torch.cuda.stream(side):
    y = prelu(x.t()).sum()
    gradient, = torch.autograd.grad(y, prelu.weight)  # use
#+ torch.cuda.current_stream().wait_stream(side)
copied = torch.empty_like(gradient).copy_(gradient)  # conflict
torch.cuda.synchronize()
