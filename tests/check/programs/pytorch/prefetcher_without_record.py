"""A loop uses batches that a prefetching stream made. The stream gets each batch's memory again while the loop's work still reads it."""
import torch

prefetch = torch.cuda.Stream()
host = torch.ones(1 << 20, pin_memory=True)


def load():
    with torch.cuda.stream(prefetch):
        return host.to("cuda", non_blocking=True)  # reuse


total = torch.zeros(1, device="cuda")
batch = load()
for _ in range(3):
    torch.cuda.current_stream().wait_stream(prefetch)
    total += batch.sum()  # use
    #+ batch.record_stream(torch.cuda.current_stream())
    del batch  # free
    batch = load()
torch.cuda.synchronize()
