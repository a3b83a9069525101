"""Two streams multiply into rows of one matrix: rows 0 to 299 and 256 to 511 overlap."""
import torch

side = torch.cuda.Stream()
first, second = torch.ones(256, 64, device="cuda"), torch.ones(256, 64, device="cuda")
longer, weights = torch.ones(300, 64, device="cuda"), torch.ones(64, 512, device="cuda")
result = torch.empty(512, 512, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.mm(second, weights, out=result[256:])  # use
torch.mm(longer, weights, out=result[:300])  # conflict #-
#+ torch.mm(first, weights, out=result[:256])
torch.cuda.synchronize()
