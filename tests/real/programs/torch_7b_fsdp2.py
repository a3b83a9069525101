"""The model of torch_7b.py, sharded over all ranks by FSDP2: bfloat16, AdamW, checkpointing."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_7b
from torch.distributed.fsdp import fully_shard


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = torch_7b.Llama()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    model.to_empty(device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(50):
        tokens = torch.randint(0, torch_7b.WORDS, (1, torch_7b.LENGTH + 1), device="cuda")
        loss = F.cross_entropy(model(tokens[:, :-1], True).view(-1, torch_7b.WORDS), tokens[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
