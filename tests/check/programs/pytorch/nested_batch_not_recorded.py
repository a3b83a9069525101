"""ray #66344: record_stream() is called for the tensors of a batch, but not for those in a nested dictionary."""
import torch

transfers = torch.cuda.Stream()
with torch.cuda.stream(transfers):
    batch = [torch.ones(1 << 20, device="cuda"), {"mask": torch.ones(1 << 20, device="cuda")}]
torch.cuda.current_stream().wait_stream(transfers)
for item in batch:
    if isinstance(item, torch.Tensor):
        item.record_stream(torch.cuda.current_stream())
#+ batch[1]["mask"].record_stream(torch.cuda.current_stream())
y = batch[0] * batch[1]["mask"]  # use
del batch, item  # free
with torch.cuda.stream(transfers):
    following = [torch.zeros(1 << 20, device="cuda") for _ in range(2)]  # reuse
torch.cuda.synchronize()
