"""A tensor's memory, which belongs to the caching allocator, is given to cudaFree()."""
import ctypes

import torch

runtime = ctypes.CDLL("libcudart.so.13")
x = torch.ones(1 << 18, device="cuda")
y = torch.ones(1 << 18, device="cuda")
runtime.cudaFree(ctypes.c_void_p(y.data_ptr()))  # use #-
torch.cuda.synchronize()
