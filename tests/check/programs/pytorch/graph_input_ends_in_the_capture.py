"""A graph's input is freed during the capture. That is right if the memory is of the graph's pool, as CUDA graph trees do it, and wrong otherwise."""
import torch

pool = torch.cuda.MemPool()
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first, pool=pool.id):
    kept = torch.zeros(4, device="cuda")
x = torch.ones(1 << 20, device="cuda")  #-
#+ with torch.cuda.use_mem_pool(pool): x = torch.ones(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.graph(second, pool=pool.id):
    y = x * 2  # capture
    del x  # free
second.replay()  # launch
torch.cuda.synchronize()
