"""vllm #36013: the counts of accepted tokens go to pinned memory without waiting, and the next step reads them through NumPy."""
import torch

accepted = torch.ones(64, dtype=torch.int32, device="cuda")
counts = torch.zeros(64, dtype=torch.int32, pin_memory=True)
counts_of_numpy = counts.numpy()
copied = torch.cuda.Event()


def sample():
    counts.copy_(accepted, non_blocking=True)  # use
    copied.record()


def prepare_next_step():
    #+ copied.synchronize()
    return int(counts_of_numpy[:8].sum())  # conflict


sample()
prepare_next_step()
torch.cuda.synchronize()
