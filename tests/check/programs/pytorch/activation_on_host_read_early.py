"""Small activations go to pinned memory and come back in stream order, which is right; the host reads one without a wait."""
import torch

with torch.autograd.graph.save_on_cpu(pin_memory=True):
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    loss = (x.sin() @ x).sum()
loss.backward()
host = torch.empty(64, 64, pin_memory=True)
host.copy_(x.grad, non_blocking=True)  # use
again = host.to("cuda", non_blocking=True)
#+ torch.cuda.current_stream().synchronize()
total = host.sum()  # conflict
torch.cuda.synchronize()
