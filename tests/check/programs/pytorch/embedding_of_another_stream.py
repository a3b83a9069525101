"""torchrec #2598: a lookup on the embedding stream makes a tensor that the main stream uses; the embedding stream gets its memory for the
next batch."""
import torch

embedding = torch.cuda.Stream()
table = torch.ones(4096, 256, device="cuda")
rows = torch.zeros(4096, dtype=torch.int64, device="cuda")
torch.cuda.synchronize()


def look_up():
    with torch.cuda.stream(embedding):
        return table[rows]  # reuse


pooled = look_up()
for _ in range(2):
    torch.cuda.current_stream().wait_stream(embedding)
    dense = pooled * 2  # use
    #+ pooled.record_stream(torch.cuda.current_stream())
    del pooled  # free
    pooled = look_up()
torch.cuda.synchronize()
