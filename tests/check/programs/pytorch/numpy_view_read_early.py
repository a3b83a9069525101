"""NumPy reads pinned memory through a view, which no PyTorch operation sees."""
import torch

x = torch.ones(1 << 20, device="cuda")
host = torch.empty(1 << 20, pin_memory=True)
array = host.numpy()
host.copy_(x, non_blocking=True)  # use
#+ torch.cuda.synchronize()
mean = array.mean()  # conflict
torch.cuda.synchronize()
