"""The copy runs on a side stream, and the host waits for the current one."""
import torch

copies = torch.cuda.Stream()
x = torch.ones(1 << 20, device="cuda")
host = torch.empty(1 << 20, pin_memory=True)
copies.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(copies):
    host.copy_(x, non_blocking=True)  # use
torch.cuda.current_stream().synchronize()  #-
#+ copies.synchronize()
largest = host.max()  # conflict
torch.cuda.synchronize()
