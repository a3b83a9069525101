"""zero_grad() frees the gradients while another stream still copies them."""
import torch

logging = torch.cuda.Stream()
weight = torch.ones(1024, 1024, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
(weight * 2).sum().backward()
logging.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(logging):
    kept = weight.grad.clone()  # use
optimizer.step()
#+ torch.cuda.current_stream().wait_stream(logging)
optimizer.zero_grad()  # free
noise = torch.zeros(1024, 1024, device="cuda")  # reuse
torch.cuda.synchronize()
