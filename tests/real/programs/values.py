"""Programs whose sizes depend on values computed by kernels, and programs whose sizes do not: values.py NAME. A line marked `# read` reads such a value;
value_reads.py requires that `vram sim --reads` lists exactly those lines."""
import sys

import torch
from rows import say_ok
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"


def scores(*shape):
    return torch.rand(*shape, device=DEVICE)


# --- sizes by values ----------------------------------------------------------------------------------------------------------------------
def nonzero():
    rows = (scores(4096) > 0.5).nonzero()  # read
    return torch.empty(len(rows), 64, device=DEVICE)


def boolean_mask():
    x = scores(512, 128)
    return x[x[:, 0] > 0.5]  # read


def masked_select():
    x = scores(512, 128)
    return torch.masked_select(x, x > 0.5)  # read


def unique_tokens():
    ids = torch.randint(0, 100, (2048,), device=DEVICE)
    return torch.unique(ids)  # read


def sampling():
    tokens = []
    for _ in range(8):
        token = torch.multinomial(scores(1, 100).softmax(-1), 1)
        tokens.append(token)
        if token.item() == 99:  # read
            break
    return torch.cat(tokens, 1)


def until_loss():
    layer = nn.Linear(256, 1, device=DEVICE)
    for _ in range(20):
        loss = (layer(scores(64, 256)) + 1).square().mean()
        loss.backward()
        if loss < 0.01:  # read
            break
    return loss


def expert_routing():
    x, experts = scores(512, 64), nn.ModuleList(nn.Linear(64, 64, device=DEVICE) for _ in range(4))
    chosen = scores(512, 4).argmax(-1)
    order = chosen.argsort()
    counts = torch.stack([(chosen == i).sum() for i in range(4)]).tolist()  # read
    parts = x[order][: sum(counts)].split(counts)
    return [expert(part) for expert, part in zip(experts, parts)]


def longest_row():
    ids = torch.randint(0, 2, (16, 256), device=DEVICE)
    longest = int(ids.sum(1).max())  # read
    return torch.zeros(16, longest, 64, device=DEVICE)


def counting():
    ids = torch.randint(0, 100, (2048,), device=DEVICE)
    return torch.bincount(ids)  # read


def suppression():
    boxes, kept = scores(128, 5), []
    alive = boxes[:, 4] > 0.2
    while bool(alive.any()) and len(kept) < 16:  # read
        best = (boxes[:, 4] * alive).argmax()
        kept.append(best)
        alive = alive & (boxes[:, 0] - boxes[best, 0] > 0.1)  # read
    return kept


# --- sizes by shapes and by the host's values ------------------------------------------------------------------------------------------------
def block(width=64):
    return nn.TransformerEncoderLayer(width, 4, 128, dropout=0.0, batch_first=True, device=DEVICE)


def training():
    model = block()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(scores(4, 32, 64)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def training_amp():
    model = block()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(scores(4, 32, 64)).float().square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def training_checkpointed():
    model, x = block(), scores(4, 32, 64).requires_grad_()
    checkpoint(model, x, use_reentrant=False).sum().backward()


def convolutions():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)).to(DEVICE)
    nn.functional.cross_entropy(model(scores(4, 3, 32, 32)), torch.arange(4).to(DEVICE)).backward()


def round_trip():
    there = torch.arange(1024.0).to(DEVICE)
    assert there.cpu().sum().item() == 1023 * 512


def fills():
    ones, zeros = torch.ones(64, device=DEVICE), torch.zeros(64, device=DEVICE)
    assert ones.cpu()[3].item() == 1 and zeros[7].item() == 0


def host_mask():
    keep = torch.arange(512) % 3 == 0
    return scores(512, 64)[keep.nonzero().flatten().to(DEVICE)]


def host_lengths():
    lengths = [5, 9, 3]
    padded = nn.utils.rnn.pad_sequence([scores(n, 32) for n in lengths], batch_first=True)
    return nn.utils.rnn.pack_padded_sequence(padded, torch.tensor(lengths), batch_first=True, enforce_sorted=False)


def fixed_decoding():
    cache, table = scores(1, 4, 64, 16), nn.Embedding(100, 64, device=DEVICE)
    token = torch.zeros(1, dtype=torch.long, device=DEVICE)
    for at in range(16):
        cache[:, :, at] = table(token).view(1, 4, 16)
        token = torch.matmul(cache[:, :, : at + 1].mean((1, 2)), scores(16, 100)).argmax(-1)
    return token


def expert_capacity():
    x, experts = scores(512, 64), nn.ModuleList(nn.Linear(64, 64, device=DEVICE) for _ in range(4))
    rows = scores(512, 4).topk(64, dim=0).indices
    out = torch.zeros_like(x)
    for i, expert in enumerate(experts):
        out = out.index_add(0, rows[:, i], expert(x[rows[:, i]]))
    return out


def replaced_constructors():
    """Makes torch.empty() and torch.full() return halves, as DeepSpeed's ZeRO 3 does while it builds a model."""
    made = {name: getattr(torch, name) for name in ("empty", "full")}

    def halved(make):
        def wrapper(*args, **kwargs):
            tensor = make(*args, **kwargs)
            return tensor.half() if tensor.is_floating_point() else tensor
        return wrapper

    for name, make in made.items():
        setattr(torch, name, halved(make))
    layers = [nn.Linear(256, 64 + i, dtype=torch.float32, device=DEVICE).float() for i in range(8)]
    for name, make in made.items():
        setattr(torch, name, make)
    large = scores(128, 128)
    return [layer(scores(8, 256)).square().sum() for layer in layers], large.t().add_(1)


BY_VALUES = [nonzero, boolean_mask, masked_select, unique_tokens, sampling, until_loss, expert_routing, longest_row, counting, suppression]
BY_SHAPES = [training, training_amp, training_checkpointed, convolutions, round_trip, fills, host_mask, host_lengths, fixed_decoding, expert_capacity,
             replaced_constructors]

if __name__ == "__main__":
    {program.__name__: program for program in BY_VALUES + BY_SHAPES}[sys.argv[1]]()
    say_ok()
