"""The next batch is copied into a static buffer on the copy stream while the main stream still reads the last one."""
import torch

copies = torch.cuda.Stream()
host = torch.ones(1 << 20, pin_memory=True)
static = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(copies):
    static.copy_(host, non_blocking=True)
torch.cuda.current_stream().wait_stream(copies)
y = static * 2  # use
#+ copies.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(copies):
    static.copy_(host, non_blocking=True)  # conflict
torch.cuda.synchronize()
