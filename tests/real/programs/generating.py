"""Runs transformers' generate() in each of its ways: generating.py ROW. A small model with random weights; computed values decide when it ends and how
long its answers are."""
import torch
from rows import main, row
from transformers import Qwen2Config, Qwen2ForCausalLM

PROMPT, NEW, ROWS = 24, 12, 3


def generate(**options):
    config = Qwen2Config(vocab_size=32000, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
                         bos_token_id=1, eos_token_id=2, pad_token_id=3)
    model = Qwen2ForCausalLM(config).to("cuda", torch.bfloat16)
    tokens = torch.randint(5, 1000, (ROWS, PROMPT), device="cuda")
    mask = torch.ones_like(tokens)
    mask[0, :5] = 0  # a prompt shorter than the others
    made = model.generate(tokens, attention_mask=mask, max_new_tokens=NEW, **options)
    assert made.shape == (ROWS, PROMPT + NEW), made.shape
    assert torch.equal(made[:, :PROMPT], tokens)


@row
def generate_greedy():
    generate(do_sample=False)


@row
def generate_sampled():
    generate(do_sample=True, temperature=0.8, top_k=50, top_p=0.9)


@row
def generate_beams():
    generate(num_beams=4, do_sample=False)


@row
def generate_sampled_beams():
    generate(num_beams=3, do_sample=True)


@row
def generate_without_repeating():
    generate(do_sample=False, repetition_penalty=1.2, no_repeat_ngram_size=2)


@row
def generate_static_cache():
    generate(do_sample=False, cache_implementation="static", disable_compile=True)


if __name__ == "__main__":
    main()
