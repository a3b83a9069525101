"""A linear layer with a bias runs on a side stream, and its output is summed on the main stream."""
import torch

side = torch.cuda.Stream()
layer = torch.nn.Linear(256, 256, device="cuda")
batch = torch.ones(64, 256, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side), torch.no_grad():
    output = layer(batch)  # use
#+ torch.cuda.current_stream().wait_stream(side)
total = output.sum()  # conflict
torch.cuda.synchronize()
