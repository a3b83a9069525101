"""A branch of a capture reads what the main branch writes, without an event between: its node depends on the fork only."""
import torch

side = torch.cuda.Stream()
x = torch.zeros(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    side.wait_stream(torch.cuda.current_stream())
    x.fill_(1)  # use
    #+ side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2  # conflict
    torch.cuda.current_stream().wait_stream(side)
graph.replay()
torch.cuda.synchronize()
