"""torchrec #4231: an embedding table is copied to the host on a side stream, and its storage is resized to nothing without record_stream()."""
import torch

stash = torch.cuda.Stream()
table = torch.ones(1 << 20, device="cuda")
host = torch.empty(1 << 20, pin_memory=True)
stash.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stash):
    host.copy_(table, non_blocking=True)  # use
#+ table.record_stream(stash)
table.untyped_storage().resize_(0)  # free
activations = torch.full((1 << 20,), -1.0, device="cuda")  # reuse
stash.synchronize()
torch.cuda.synchronize()
