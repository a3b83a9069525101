"""The event that should protect the tensor is recorded before the work that uses it."""
import torch

side, done = torch.cuda.Stream(), torch.cuda.Event()
x = torch.ones(1 << 20, device="cuda")
side.wait_stream(torch.cuda.current_stream())
done.record(side)  #-
with torch.cuda.stream(side):
    y = x.sqrt()  # use
#+ done.record(side)
torch.cuda.current_stream().wait_event(done)
del x  # free
z = torch.zeros(1 << 20, device="cuda")  # reuse
torch.cuda.synchronize()
