"""A batch is padded, and the padding is read although nothing wrote it."""
import torch

batch = torch.empty(64, 16384, device="cuda")  # made
batch[:50].fill_(1)
#+ batch[50:].fill_(0)
y = batch * 2  # use
torch.cuda.synchronize()
