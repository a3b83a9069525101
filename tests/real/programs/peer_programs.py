"""Eleven programs for a table of estimates; this project's simulation is the truth: peer_programs.py NAME. Models from configurations."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

STEPS = 3


def gpt2(size):
    from transformers import GPT2Config, GPT2LMHeadModel

    layers, heads, width = {"small": (12, 12, 768), "medium": (24, 16, 1024)}[size]
    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_head=heads, n_embd=width, attn_implementation="eager"))


def llama(size, kind=torch.float32):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_default_dtype(kind)
    width, inner, layers, heads, groups = {"0.4B": (1024, 2816, 24, 16, 16), "1.1B": (2048, 5632, 22, 32, 4)}[size]
    return LlamaForCausalLM(LlamaConfig(hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=groups,
                                        vocab_size=32000, max_position_embeddings=2048))


def words(batch, length, most=32000):
    return torch.randint(0, most, (batch, length), device="cuda")


def train(model, make_loss, autocast=False):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = make_loss()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def train_language(model, batch, length, autocast=False, checkpointing=False, most=32000):
    model = model.to("cuda").train()
    if checkpointing:
        model.gradient_checkpointing_enable()

    def make_loss():
        text = words(batch, length, most)
        return model(input_ids=text, labels=text, use_cache=False).loss

    train(model, make_loss, autocast)


def mlp():
    model = nn.Sequential(nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 1000)).to("cuda")
    train(model, lambda: F.cross_entropy(model(torch.randn(4096, 4096, device="cuda")), words(1, 4096, 1000)[0]))


@torch.no_grad()
def forward(model, batch, length, most=32000):
    model = model.to("cuda").eval()
    for _ in range(STEPS):
        model(input_ids=words(batch, length, most), use_cache=False)


@torch.no_grad()
def cached(model, batch, first, last):
    model = model.to("cuda").eval()
    output = model(input_ids=words(batch, first), use_cache=True)
    for _ in range(last - first):
        output = model(input_ids=words(batch, 1), past_key_values=output.past_key_values, use_cache=True)


def resnet():
    import torchvision

    model = torchvision.models.resnet50().to("cuda").train()
    train(model, lambda: F.cross_entropy(model(torch.randn(16, 3, 224, 224, device="cuda")), words(1, 16, 1000)[0]))


def varied():
    """Batches of different lengths."""
    model = llama("0.4B").to("cuda").train()
    lengths = iter([256, 1024, 512, 768, 384, 896, 640, 1024])

    def make_loss():
        text = words(2, next(lengths))
        return model(input_ids=text, labels=text, use_cache=False).loss

    train(model, make_loss, autocast=True)


PROGRAMS = {
    "mlp": mlp,
    "gpt2-small-forward": lambda: forward(gpt2("small"), 8, 512, 50257),
    "gpt2-small-train": lambda: train_language(gpt2("small"), 4, 512, most=50257),
    "gpt2-medium-autocast": lambda: train_language(gpt2("medium"), 4, 1024, autocast=True, most=50257),
    "gpt2-medium-checkpointing": lambda: train_language(gpt2("medium"), 8, 1024, checkpointing=True, most=50257),
    "llama-0.4b-checkpointing": lambda: train_language(llama("0.4B"), 8, 1024, autocast=True, checkpointing=True),
    "llama-0.4b-varied": varied,
    "llama-1.1b-forward": lambda: forward(llama("1.1B", torch.bfloat16), 4, 2048),
    "llama-1.1b-cached": lambda: cached(llama("1.1B", torch.bfloat16), 8, 512, 640),
    "llama-1.1b-train": lambda: train_language(llama("1.1B", torch.bfloat16), 1, 1024),
    "resnet50": resnet,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
