"""pytorch #126946: the program changes a pinned batch after `to("cuda", non_blocking=True)` returned."""
import torch

batch = torch.zeros(1 << 20).pin_memory()
moved = batch.to("cuda", non_blocking=True)  # use
#+ torch.cuda.current_stream().synchronize()
batch.add_(1)  # conflict
print(moved[0].item())
