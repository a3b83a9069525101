"""The batch is bound to the input's name instead of being copied into the static input."""
import torch

batches = [torch.full((1 << 20,), float(i), device="cuda") for i in range(2)]
x = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x.square()  # capture
for batch in batches:
    x = batch + 1  # free #-
    #+ x.copy_(batch + 1)
    graph.replay()  # launch
torch.cuda.synchronize()
