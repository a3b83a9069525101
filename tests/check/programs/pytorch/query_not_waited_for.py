"""Attention on a side stream: its kernels, with and without tensor cores, read a query that the default stream still writes."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

side = torch.cuda.Stream()
for backend, dtype in (SDPBackend.FLASH_ATTENTION, torch.bfloat16), (SDPBackend.EFFICIENT_ATTENTION, torch.float32):
    key = torch.ones(2, 4, 256, 64, device="cuda", dtype=dtype)
    torch.cuda.synchronize()
    query = torch.ones(2, 4, 256, 64, device="cuda", dtype=dtype)  # use
    #+ side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), sdpa_kernel(backend):
        out = scaled_dot_product_attention(query, key, key)  # conflict
    torch.cuda.synchronize()
