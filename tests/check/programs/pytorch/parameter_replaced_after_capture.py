"""A parameter gets new storage after the capture; the graph still reads the old one."""
import torch

layer = torch.nn.Linear(1024, 1024, bias=False, device="cuda")
x = torch.ones(64, 1024, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    y = layer.weight * 2  # capture
layer.weight.data = torch.zeros(1024, 1024, device="cuda")  # free #-
#+ layer.weight.data.zero_()
noise = torch.ones(1024, 1024, device="cuda")  # reuse
graph.replay()  # launch
torch.cuda.synchronize()
