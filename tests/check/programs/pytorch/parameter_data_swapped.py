"""A parameter gets new data, as when a sharded layer drops its full weight, while a stream still averages the old data."""
import torch

averaging = torch.cuda.Stream()
layer = torch.nn.Linear(1024, 1024, bias=False, device="cuda")
average = torch.zeros(1024, 1024, device="cuda")
averaging.wait_stream(torch.cuda.current_stream())
with torch.no_grad(), torch.cuda.stream(averaging):
    average.add_(layer.weight)  # use
#+ torch.cuda.current_stream().wait_stream(averaging)
layer.weight.data = torch.zeros(1, device="cuda")  # free
y = torch.ones(1024, 1024, device="cuda")  # reuse
torch.cuda.synchronize()
