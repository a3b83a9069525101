"""A side stream reads a graph's output while the next replay writes it."""
import torch

side = torch.cuda.Stream()
static = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = static * 2
graph.replay()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    kept = y.clone()  # use
#+ torch.cuda.current_stream().wait_stream(side)
graph.replay()  # conflict
torch.cuda.synchronize()
