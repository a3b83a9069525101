"""The optimizer writes the weights while another stream reads them for an average."""
import torch

averaging = torch.cuda.Stream()
weight = torch.ones(1024, 1024, device="cuda", requires_grad=True)
average = torch.zeros(1024, 1024, device="cuda")
optimizer = torch.optim.SGD([weight], lr=0.1)
(weight * 2).sum().backward()
averaging.wait_stream(torch.cuda.current_stream())
with torch.no_grad(), torch.cuda.stream(averaging):
    average.lerp_(weight, 0.1)  # use
#+ torch.cuda.current_stream().wait_stream(averaging)
optimizer.step()  # conflict
torch.cuda.synchronize()
