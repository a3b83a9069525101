"""A non-blocking copy to pinned memory is read before it has been waited for."""
import torch

x = torch.ones(1 << 20, device="cuda")
host = torch.empty(1 << 20, pin_memory=True)
host.copy_(x, non_blocking=True)  # use
#+ torch.cuda.current_stream().synchronize()
total = host.sum()  # conflict
torch.cuda.synchronize()
