"""The graph is replayed on another stream than the one that fills its input."""
import torch

side = torch.cuda.Stream()
static = torch.zeros(1 << 20, device="cuda")
batch = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = static * 2
torch.cuda.synchronize()
static.copy_(batch)  # use
#+ side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    graph.replay()  # conflict
torch.cuda.synchronize()
