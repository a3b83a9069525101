"""torchrec #4191: the prefetch stream fills a cache, and the stream of the next input reads it without waiting for the prefetch."""
import torch

prefetch, distribution = torch.cuda.Stream(), torch.cuda.Stream()
cache = torch.zeros(1 << 20, device="cuda")
batch = torch.ones(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(prefetch):
    cache.copy_(batch)  # use
#+ distribution.wait_stream(prefetch)
with torch.cuda.stream(distribution):
    indices = cache.mul(2)  # conflict
torch.cuda.synchronize()
