"""The local tensor of a function dies when it returns, and the copy on the other stream has not run yet."""
import torch

copies = torch.cuda.Stream()


def statistics(batch):
    scaled = batch * 0.5
    copies.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(copies):
        kept = scaled.clone()  # use
    #+ scaled.record_stream(copies)
    return kept  # free


batch = torch.ones(1 << 20, device="cuda")
kept = statistics(batch)
other = batch - 1  # reuse
torch.cuda.synchronize()
