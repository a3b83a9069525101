"""The programs that `vram fit` estimates: fit_programs.py ROW. fit_rows.py has the expected answers."""
import torch
import torch.nn.functional as F
import torch_7b
from rows import main, row
from torch import nn


@row
def train_7b():
    torch_7b.train(50)


@row
def train_7b_checkpointing():
    torch_7b.train(50, checkpointing=True)


@row
def count_of_rows():
    """The count of nonzero() is in a block that held a copy of 1,000,000 before; no size may be taken from it."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda().eval()
    with torch.no_grad():
        for length in (8192, 6000, 4000):
            counts = [torch.tensor(1_000_000, device="cuda") for _ in range(8)]
            total = sum(counts)
            x = torch.randn(length, 1024, device="cuda")
            del counts, total
            rows = (model(x).sum(-1) > 0).nonzero().squeeze(1)  # read
            model(x[rows % length])


@row
def scaled_training():
    """Values are read, but only printed."""
    model = nn.Sequential(nn.Embedding(5000, 256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 5000)).cuda()
    optimizer, scaler, total = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler(), 0.0
    for _ in range(50):
        words = torch.randint(0, 5000, (8, 129)).cuda()
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total += loss.item()  # read


@row
def compiled_with_hooks():
    """torch.compile() traces the call of a module that has hooks, and must find nothing there that it cannot trace."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(1024, 1024)
            self.inner.register_forward_pre_hook(lambda module, inputs: None)

        def forward(self, x):
            return x + self.inner(x)

    model = nn.Sequential(Block(), Block()).cuda()
    for block in model:
        block.compile(backend="eager", fullgraph=True)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(20):
        model(torch.ones(512, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
