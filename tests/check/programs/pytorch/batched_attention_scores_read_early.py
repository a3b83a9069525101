"""A batched product fills a buffer of scores on a side stream while the main stream reads it."""
import torch

side = torch.cuda.Stream()
queries, keys = torch.ones(8, 64, 32, device="cuda"), torch.ones(8, 32, 64, device="cuda")
scores = torch.zeros(8, 64, 64, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.bmm(queries, keys, out=scores)  # use
    done = side.record_event()
#+ torch.cuda.current_stream().wait_event(done)
last = scores[7] + 1  # conflict
torch.cuda.synchronize()
