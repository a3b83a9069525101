"""The result of a Triton kernel is copied to pinned memory, and the host reads it before the copy completes."""
import torch
import triton
import triton.language as tl


@triton.jit
def negate(source, target, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + places, -tl.load(source + places))


x, y = torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
host = torch.empty(1 << 20, pin_memory=True)
negate[(1024,)](x, y, BLOCK=1024)
host.copy_(y, non_blocking=True)  # use
#+ torch.cuda.synchronize()
print(host[0].item())  # conflict
torch.cuda.synchronize()
