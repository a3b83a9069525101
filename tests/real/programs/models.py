"""Whole models built from their configuration alone, without downloading weights."""
import torch
import torch.nn.functional as F
from rows import main, peak_is, row

MIB = 1 << 20
CUDA = torch.device("cuda")


@row
def resnet50():
    from torchvision.models import resnet50 as make

    net = make(weights=None).to(CUDA, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        images = torch.randn(32, 3, 224, 224, device=CUDA).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(net(images), torch.randint(0, 1000, (32,), device=CUDA))
        loss.backward()
        optimizer.step()
    peak_is(torch, 1500 * MIB, 6000 * MIB)


@row
def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=8, vocab_size=32000)
    net = LlamaForCausalLM(config).to(CUDA, torch.bfloat16)
    net.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for _ in range(3):
        tokens = torch.randint(0, 32000, (4, 512), device=CUDA)
        net(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    peak_is(torch, 8 * sum(p.numel() for p in net.parameters()))  # weights, gradients, two moments, two bytes each


@row
def values_generate():
    """With a value it ends early, because it asks the device whether all sequences have ended."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, vocab_size=1000)
    net = LlamaForCausalLM(config).to(CUDA).eval()
    tokens = net.generate(input_ids=torch.randint(0, 1000, (2, 16), device=CUDA), max_new_tokens=20, do_sample=False)
    assert tokens.shape == (2, 20), tokens.shape


@row
def values_nonzero():
    def found(numbers):
        return numbers.nonzero()

    numbers = torch.rand(100, device=CUDA)
    assert found(numbers).shape == (42, 1)
    assert numbers.nonzero().shape == (100, 1)  # without a rule for the value, a random number is not 0


if __name__ == "__main__":
    main()
