"""Two graphs share a pool. The first is replayed again while the output of the second, which has its scratch memory, is still needed."""
import torch

x = torch.ones(1 << 20, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    scratch = x * 2  # capture
    y = scratch + 1
    del scratch
with torch.cuda.graph(second, pool=first.pool()):
    z = x * 3
first.replay()
second.replay()
#+ z = z.clone()
first.replay()  # launch
result = z + 1
torch.cuda.synchronize()
