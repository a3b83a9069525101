"""The host waits for an event that was recorded before the copy it wants."""
import torch

x = torch.ones(1 << 20, device="cuda")
host = torch.empty(1 << 20, pin_memory=True)
copied = torch.cuda.Event()
copied.record()  #-
host.copy_(x, non_blocking=True)  # use
#+ copied.record()
copied.synchronize()
values = host.tolist()  # conflict
torch.cuda.synchronize()
