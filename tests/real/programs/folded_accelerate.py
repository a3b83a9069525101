"""A job of accelerate for folded.py, under torchrun: folded_accelerate.py ddp|fsdp2."""
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import FullyShardedDataParallelPlugin
from torch import nn

WIDTH, STEPS = 256, 8


def main(way):
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="size_based_wrap", min_num_params=1000) if way == "fsdp2" else None
    accelerator = Accelerator(fsdp_plugin=plugin, gradient_accumulation_steps=2)
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(6)])
    samples = torch.utils.data.TensorDataset(torch.randn(64 * 2 * STEPS, WIDTH))
    loader = torch.utils.data.DataLoader(samples, batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), loader)
    for (rows,) in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(rows).square().mean())
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    accelerator.end_training()


if __name__ == "__main__":
    main(sys.argv[1])
