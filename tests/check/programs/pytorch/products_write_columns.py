"""Two streams multiply into columns of one matrix, of which both write the first half."""
import torch

side = torch.cuda.Stream()
rows, left, right = torch.ones(64, 64, device="cuda"), torch.ones(64, 128, device="cuda"), torch.ones(64, 128, device="cuda")
result = torch.empty(64, 256, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.mm(rows, left, out=result[:, :128])  # use
torch.mm(rows, right, out=result[:, :128])  # conflict #-
#+ torch.mm(rows, right, out=result[:, 128:])
torch.cuda.synchronize()
