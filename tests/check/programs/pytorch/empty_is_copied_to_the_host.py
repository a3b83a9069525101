"""The result buffer of a kernel that never ran is copied to the host."""
import torch

result = torch.empty(1 << 20, device="cuda")  # made
#+ torch.ones(1 << 20, device="cuda", out=result)
host = result.cpu()  # use
