"""The gradients of attention are made on a side stream, and read on the default stream without a wait."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

side = torch.cuda.Stream()
q, k, v = (torch.ones(2, 4, 256, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
out = torch.ones(2, 4, 256, 64, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
with torch.cuda.stream(side), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    gradients = torch.autograd.grad(scaled_dot_product_attention(q, k, v), (q, k, v), out)  # use
#+ torch.cuda.current_stream().wait_stream(side)
copies = [torch.empty_like(gradient).copy_(gradient) for gradient in gradients]  # conflict
torch.cuda.synchronize()
