"""Runs vLLM with dummy weights: its engine starts, generates, sleeps and wakes."""
import json
import os
import sys
import tempfile

from cuda_toolkit import use_toolkit
from rows import main, row
from small_llama import CONFIG


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
def compile_sampler():
    use_toolkit()
    from flashinfer.sampling import get_sampling_module

    get_sampling_module()


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
