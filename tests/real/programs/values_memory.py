"""Checks that computing small operations does not change memory: values_memory.py VRAM. Trains small networks under `vram sim` with and without
`--compute 0`; every event of PyTorch's allocator must be equal in kind, size and address."""
import subprocess
import sys

if len(sys.argv) == 1:  # the program itself, under `vram sim`; the process that compares has no device
    import torch

TURNS = 2


def encoder():
    return torch.nn.TransformerEncoderLayer(64, 4, batch_first=True), (2, 32, 64)


def recurrent():
    class Last(torch.nn.LSTM):
        def forward(self, x):
            return super().forward(x)[0]
    return Last(32, 32, num_layers=2), (5, 4, 32)


def convolutions():
    from torch import nn
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 10)), (2, 3, 16, 16)


def branches():
    """One tensor used in several places, so that its gradients are accumulated."""
    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32, bias=False)

        def forward(self, x):
            made = self.first(x)
            return made.cos() * made.exp() + made.tanh() + (made @ made.mT) @ self.second(made.softmax(-1)) + self.first(made)
    return Branches(), (32, 32)


NETS = (encoder, recurrent, convolutions, branches)


def train(make):
    """Returns all events of the allocator, one per line."""
    torch.cuda.memory._record_memory_history(max_entries=1_000_000)
    net, shape = make()
    net = net.cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(TURNS):
        net(torch.randn(shape, device="cuda")).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    for event in torch.cuda.memory._snapshot()["device_traces"][0]:
        print(make.__name__, event["action"], event["size"], event["addr"])


def events(vram, options):
    command = [vram, "sim", *options, "--", sys.executable, __file__]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def main():
    if len(sys.argv) == 1:
        for make in NETS:
            train(make)
        return
    without, computed = events(sys.argv[1], ["--compute", "0"]), events(sys.argv[1], [])
    differing = [f"{number}: {one} | {other}" for number, (one, other) in enumerate(zip(without, computed)) if one != other]
    print(f"{len(without)} events without, {len(computed)} with", *differing[:5], sep="\n")
    assert without and not differing and len(without) == len(computed)
    print("ok")


if __name__ == "__main__":
    main()
