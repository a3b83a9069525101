"""A training step of a model with 7 billion parameters on one device: a Llama from its configuration, bfloat16 with AdamW."""
import time

import torch
import torch.nn.functional as F
from rows import main, peak_is, row
from torch.utils.checkpoint import checkpoint

GIB = 1 << 30
STEP_SECONDS = 3
# Llama 2 7B: 6.74 billion parameters.
WIDTH, INNER, LAYERS, HEADS, WORDS, LENGTH = 4096, 11008, 32, 32, 32000, 2048


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda inputs, outputs: torch.nn.Linear(inputs, outputs, bias=False)  # noqa: E731
        self.before, self.between = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.query, self.key, self.value, self.out = (linear(WIDTH, WIDTH) for _ in range(4))
        self.gate, self.up, self.down = linear(WIDTH, INNER), linear(WIDTH, INNER), linear(INNER, WIDTH)

    def forward(self, x):
        heads = lambda y: y.view(*y.shape[:2], HEADS, -1).transpose(1, 2)  # noqa: E731
        y = self.before(x)
        y = F.scaled_dot_product_attention(heads(self.query(y)), heads(self.key(y)), heads(self.value(y)), is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last, self.head = torch.nn.RMSNorm(WIDTH), torch.nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens, checkpointing):
        x = self.words(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if checkpointing else layer(x)
        return self.head(self.last(x))


def train(steps, checkpointing=False):
    """Returns the CPU seconds of each step."""
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = Llama()
    assert sum(p.numel() for p in model.parameters()) > 6.7e9
    optimizer, spent = torch.optim.AdamW(model.parameters(), lr=1e-4), []
    for _ in range(steps):
        begun = time.process_time()
        tokens = torch.randint(0, WORDS, (1, LENGTH + 1), device="cuda")
        loss = F.cross_entropy(model(tokens[:, :-1], checkpointing).view(-1, WORDS), tokens[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        spent.append(time.process_time() - begun)
    return spent


@row
def step_of_7b():
    spent = train(4)
    print("processor's seconds of each step:", " ".join(f"{seconds:.2f}" for seconds in spent), f"peak {torch.cuda.max_memory_allocated() / GIB:.2f} GiB")
    peak_is(torch, 50 * GIB, 79 * GIB)
    # Two cores, as the program's watcher has; a loaded machine makes a step longer, but not its CPU time.
    assert min(spent) <= STEP_SECONDS, spent


if __name__ == "__main__":
    main()
