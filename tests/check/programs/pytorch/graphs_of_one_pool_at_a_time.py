"""Two graphs that share a pool are replayed on two streams at the same time."""
import torch

x = torch.ones(1 << 20, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    scratch = x * 2
    y = scratch + 1
    del scratch
with torch.cuda.graph(second, pool=first.pool()):
    z = x * 3
torch.cuda.synchronize()
streams = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(streams[0]):
    first.replay()  # use
#+ streams[1].wait_stream(streams[0])
with torch.cuda.stream(streams[1]):
    second.replay()  # conflict
torch.cuda.synchronize()
