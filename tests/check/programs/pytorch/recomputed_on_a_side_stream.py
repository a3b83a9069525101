"""A checkpoint that is recomputed frees tensors while an exception is pending, which is right; its input comes from a stream that is not waited for."""
import torch
from torch.utils.checkpoint import checkpoint

layer = torch.nn.Linear(64, 60000, device="cuda")
side = torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(side):
    x = torch.ones(32, 64, device="cuda")  # use
#+ torch.cuda.current_stream().wait_stream(side)
y = torch.zeros(32, dtype=torch.long, device="cuda")
loss = checkpoint(lambda x: torch.nn.functional.cross_entropy(layer(x), y, reduction="sum"), x, use_reentrant=False)  # conflict
loss.backward()
torch.cuda.synchronize()
