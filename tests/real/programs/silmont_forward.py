"""Runs silmont2000/assignment2-systems' benchmark with the recorded model, which is in no commit: its positions are made once, not in every block, and its output is
a dictionary. The recording shows both: lines 36, 49, 56 and 66 of its transformer_lm.py, and the one block of 1,024 bytes.

usage: silmont_forward.py BENCHMARK"""
import runpy
import sys

import torch
from cs336_basics import TransformerLM
from cs336_basics.model.transformer_block import TransformerBlock


def block_forward(self, x, token_positions):
    rms1 = self.RMSNorm_layer1.forward(x)
    attention = self.multi_head_attention_layer.forward(x=rms1, token_positions=token_positions)
    res1 = x + attention
    rms2 = self.RMSNorm_layer2.forward(res1)
    swiglu = self.SwiGLU_layer.forward(rms2)
    res2 = res1 + swiglu
    return res2


def forward(self, input_ids):
    x = self.token_embedding(input_ids)
    positions = torch.arange(x.shape[1], device=x.device)
    for block in self.blocks:
        x = block.forward(x, positions)
    hidden = self.final_norm(x)
    return {"logits": self.final_linear(hidden)}


if __name__ == "__main__":
    TransformerBlock.forward, TransformerLM.forward = block_forward, forward
    runpy.run_path(sys.argv[1], run_name="__main__")
