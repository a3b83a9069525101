"""A captured function uses a scratch tensor that a cache made before the capture, and the cache is emptied."""
import torch

cache = {"scratch": torch.empty(1 << 20, device="cuda")}
x = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    torch.add(x, 1, out=cache["scratch"])  # capture
    y = cache["scratch"] * 2
cache.clear()  # free #-
logits = torch.zeros(1 << 20, device="cuda")  # reuse
graph.replay()  # launch
torch.cuda.synchronize()
