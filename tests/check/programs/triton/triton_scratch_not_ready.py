"""A Triton kernel uses a buffer that another stream is still filling."""
import torch
import triton
import triton.language as tl


@triton.jit
def scale(source, target, factor, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + places, tl.load(source + places) * factor)


side = torch.cuda.Stream()
host = torch.ones(1 << 20, pin_memory=True)
x, y = torch.empty(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(side):
    x.copy_(host, non_blocking=True)  # use
#+ torch.cuda.current_stream().wait_stream(side)
scale[(1024,)](x, y, 2.0, BLOCK=1024)  # conflict
torch.cuda.synchronize()
