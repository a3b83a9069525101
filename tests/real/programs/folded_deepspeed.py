"""A job of DeepSpeed for folded.py, under torchrun: folded_deepspeed.py STAGE [offload]."""
import os
import sys

import deepspeed
import torch
from torch import nn

WIDTH, STEPS = 256, 6


def settings(stage, offloads):
    zero = {"stage": stage, "reduce_bucket_size": 100000, "allgather_bucket_size": 100000, "stage3_param_persistence_threshold": 0}
    if offloads:
        zero["offload_optimizer"] = {"device": "cpu"}
    return {"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": True},
            "zero_force_ds_cpu_optimizer": False, "zero_allow_untested_optimizer": True, "zero_optimization": zero}


def main(stage, offloads):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed("nccl")
    config = settings(stage, offloads)
    with deepspeed.zero.Init(config_dict_or_path=config, enabled=stage == 3):
        model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(6)])
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=config)
    for _ in range(STEPS):
        rows = torch.randn(16, WIDTH, device=engine.device, dtype=torch.bfloat16)
        engine.backward(engine(rows).float().square().mean())
        engine.step()


if __name__ == "__main__":
    main(int(sys.argv[1]), "offload" in sys.argv)
