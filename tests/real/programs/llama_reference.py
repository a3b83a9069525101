"""Builds a rank's part of Llama 2 with the reference code, as its Llama.build() does: llama_reference.py SOURCE SEQUENCE BATCH

The checkpoint, which would be loaded to the CPU before and into the model afterwards, is left out."""
import os
import sys

import torch

sys.path.insert(0, sys.argv[1])
from fairscale.nn.model_parallel.initialize import initialize_model_parallel
from llama.model import ModelArgs, Transformer

SHAPE_70B = {"dim": 8192, "n_layers": 80, "n_heads": 64, "n_kv_heads": 8, "multiple_of": 4096, "ffn_dim_multiplier": 1.3, "norm_eps": 1e-5, "vocab_size": 32000}

torch.distributed.init_process_group("nccl")
initialize_model_parallel(int(os.environ["WORLD_SIZE"]))
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
torch.manual_seed(1)
torch.set_default_tensor_type(torch.cuda.HalfTensor)
Transformer(ModelArgs(max_seq_len=int(sys.argv[2]), max_batch_size=int(sys.argv[3]), **SHAPE_70B))
