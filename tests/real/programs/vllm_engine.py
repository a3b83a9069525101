"""vLLM with dummy weights: its engine starts, generates, sleeps, wakes."""
import json
import os
import sys
import tempfile

from cuda_toolkit import use_toolkit
from rows import main, row

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 4,
          "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
          "hidden_act": "silu", "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False, "rope_theta": 10000.0}


def engine(**options):
    use_toolkit()  # the default sampler is FlashInfer's
    from vllm import LLM

    folder = tempfile.mkdtemp(prefix="model.")
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(CONFIG, file)
    return LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, max_model_len=1024, **options)


def generate(llm, tokens=8):
    from vllm import SamplingParams

    out = llm.generate([{"prompt_token_ids": [1, 5, 9, 11]}], SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False, temperature=0))
    assert len(out[0].outputs[0].token_ids) == tokens


@row
def vllm_eager():
    generate(engine(enforce_eager=True))


@row
def vllm_defaults():
    generate(engine())


@row
def vllm_sleeps():
    import torch

    def free():
        return torch.cuda.mem_get_info()[0]

    llm = engine(enable_sleep_mode=True)
    generate(llm)
    awake = free()
    llm.sleep(level=1)
    assert free() > awake + (1 << 30), (awake, free())
    llm.wake_up()
    assert free() == awake, (awake, free())
    generate(llm)
    llm.sleep(level=2)
    assert free() > awake + (1 << 30), (awake, free())
    llm.wake_up(tags=["weights"])
    llm.wake_up(tags=["kv_cache"])
    assert free() == awake, (awake, free())
    generate(llm)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
