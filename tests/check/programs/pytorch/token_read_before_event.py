"""A sampled token is copied to the host with an event, and the event is waited for after the read."""
import torch

scores = torch.ones(8, 32000, device="cuda")
tokens = torch.empty(8, dtype=torch.int64, pin_memory=True)
copied = torch.cuda.Event()
tokens.copy_(scores.argmax(dim=1), non_blocking=True)  # use
copied.record()
#+ copied.synchronize()
chosen = [int(token) for token in tokens.unbind()]  # conflict
copied.synchronize()  #-
torch.cuda.synchronize()
