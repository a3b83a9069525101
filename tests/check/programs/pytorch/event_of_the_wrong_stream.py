"""The event is recorded on the current stream, which is not the stream that has the work."""
import torch

side, ready = torch.cuda.Stream(), torch.cuda.Event()
x = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(side):
    x.fill_(1)  # use
ready.record()  #-
#+ ready.record(side)
torch.cuda.current_stream().wait_event(ready)
y = x.neg()  # conflict
torch.cuda.synchronize()
