"""A GPT of megatron.core for folded.py, under torchrun: folded_megatron.py --tp N --pp N [--distributed-optimizer] [--experts N --ep N].

Context parallelism, and experts together with tensor parallelism, are not here: megatron.core has them only with Transformer Engine."""
import argparse
import os
from functools import partial

import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.moe import moe_utils

STEPS = 6
moe_utils.te_general_gemm = getattr(moe_utils, "te_general_gemm", None)  # 0.16 uses the name even without Transformer Engine


def make_model(options):
    experts = {"num_moe_experts": options.experts, "expert_model_parallel_size": options.ep, "moe_router_topk": 2, "moe_token_dispatcher_type": "alltoall",
               "add_bias_linear": False} if options.experts else {}
    config = TransformerConfig(num_layers=options.layers, hidden_size=options.width, num_attention_heads=options.heads, use_cpu_initialization=False, bf16=True,
                               params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, tensor_model_parallel_size=options.tp,
                               pipeline_model_parallel_size=options.pp,
                               bias_dropout_fusion=False, masked_softmax_fusion=False, gradient_accumulation_fusion=False, **experts)
    config.finalize_model_grads_func = finalize_model_grads
    model = GPTModel(config, get_gpt_layer_local_spec(options.experts or None, normalization="RMSNorm"), options.words, options.length, pre_process=parallel_state.is_pipeline_first_stage(),
                     post_process=parallel_state.is_pipeline_last_stage()).cuda().bfloat16()
    return DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=options.distributed_optimizer), model)


def forward_step(batches, model):
    words, places = next(batches)
    mask = torch.ones((1, 1, words.size(1), words.size(1)), dtype=torch.bool, device="cuda").triu(1)
    return model(words, places, mask, labels=words), partial(lambda words, loss: (loss.float().mean(), {"loss": loss.detach().float().mean()}), words)


def batches(options):
    shape = options.batch, options.length
    while True:
        yield torch.randint(0, options.words, shape, device="cuda"), torch.arange(options.length, device="cuda").expand(shape)


def main(options):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    parallel_state.initialize_model_parallel(options.tp, options.pp, expert_model_parallel_size=options.ep)
    tensor_parallel.model_parallel_cuda_manual_seed(7)
    model, data = make_model(options), batches(options)
    optimizer = get_megatron_optimizer(OptimizerConfig(lr=1e-4, bf16=True, params_dtype=torch.bfloat16, clip_grad=1.0,
                                                       use_distributed_optimizer=options.distributed_optimizer), [model])
    for _ in range(STEPS):
        model.zero_grad_buffer()
        optimizer.zero_grad()
        get_forward_backward_func()(forward_step_func=forward_step, data_iterator=data, model=[model], num_microbatches=2 * options.pp,
                                    seq_length=options.length, micro_batch_size=options.batch, decoder_seq_length=options.length, forward_only=False)
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, usual in (("--tp", 1), ("--pp", 1), ("--layers", 8), ("--width", 256), ("--heads", 8), ("--words", 2048), ("--length", 128), ("--batch", 2),
                        ("--experts", 0), ("--ep", 1)):
        parser.add_argument(name, type=int, default=usual)
    parser.add_argument("--distributed-optimizer", action="store_true")
    main(parser.parse_args())
