"""A wait for an event that has not been recorded yet waits for nothing."""
import torch

side, ready = torch.cuda.Stream(), torch.cuda.Event()
x = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
side.wait_event(ready)  #-
x.fill_(1)  # use
ready.record()
#+ side.wait_event(ready)
with torch.cuda.stream(side):
    y = x.abs()  # conflict
torch.cuda.synchronize()
