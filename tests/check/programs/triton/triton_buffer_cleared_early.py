"""The buffer that a Triton kernel works on is cleared on another stream."""
import torch
import triton
import triton.language as tl


@triton.jit
def increment(target, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + places, tl.load(target + places) + 1)


side = torch.cuda.Stream()
x = torch.ones(1 << 20, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    increment[(1024,)](x, BLOCK=1024)  # use
#+ torch.cuda.current_stream().wait_stream(side)
x.zero_()  # conflict
torch.cuda.synchronize()
