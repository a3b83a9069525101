"""The static input of a graph is freed after the capture. The replay reads memory that is now another tensor."""
import torch

x = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2  # capture
#+ kept = x
del x  # free
z = torch.zeros(1 << 20, device="cuda")  # reuse
graph.replay()  # launch
torch.cuda.synchronize()
