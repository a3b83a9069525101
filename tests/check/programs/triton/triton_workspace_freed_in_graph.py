"""A captured Triton kernel keeps the address of a workspace that is freed after the capture."""
import torch
import triton
import triton.language as tl


@triton.jit
def keep(source, work, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(work + places, tl.load(source + places))


x = torch.ones(1 << 20, device="cuda")
keep[(1024,)](x, torch.empty_like(x), BLOCK=1024)  # Triton copies the module's names when it compiles, and keeps them
work = torch.empty(1 << 20, device="cuda")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    keep[(1024,)](x, work, BLOCK=1024)  # capture
del work  # free #-
cache = torch.zeros(1 << 20, device="cuda")  # reuse
graph.replay()  # launch
torch.cuda.synchronize()
