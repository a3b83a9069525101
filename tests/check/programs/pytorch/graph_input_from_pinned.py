"""The graph copies from pinned memory at each replay. The host writes the next values before the replay has read the last ones."""
import torch

host = torch.ones(1 << 20, pin_memory=True)
static = torch.empty(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    static.copy_(host, non_blocking=True)
graph.replay()  # use
#+ torch.cuda.synchronize()
host.fill_(2)  # conflict
torch.cuda.synchronize()
