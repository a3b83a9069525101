"""The host fills a pinned buffer for the next batch while the copy of the last one may still read it."""
import torch

host = torch.ones(1 << 20, pin_memory=True)
device = torch.empty(1 << 20, device="cuda")
device.copy_(host, non_blocking=True)  # use
#+ torch.cuda.synchronize()
host.fill_(2)  # conflict
torch.cuda.synchronize()
