"""A Triton kernel on a side stream reads a tensor that the main stream frees and hands out again."""
import torch
import triton
import triton.language as tl


@triton.jit
def square(source, target, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + places)
    tl.store(target + places, value * value)


square[(1024,)](torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda"), BLOCK=1024)  # compiling keeps a copy of the module's names
side = torch.cuda.Stream()
x, y = torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    square[(1024,)](x, y, BLOCK=1024)  # use
#+ x.record_stream(side)
del x  # free
z = torch.zeros(1 << 20, device="cuda")  # reuse
torch.cuda.synchronize()
