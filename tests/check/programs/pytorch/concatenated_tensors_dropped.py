"""Tensors are concatenated on a side stream and dropped at once. A new tensor gets their memory."""
import torch

side = torch.cuda.Stream()
parts = [torch.ones(1 << 18, device="cuda") for _ in range(4)]
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    whole = torch.cat(parts)  # use
    #+ [part.record_stream(side) for part in parts]
parts.clear()  # free
new = torch.zeros(1 << 18, device="cuda")  # reuse
torch.cuda.synchronize()
