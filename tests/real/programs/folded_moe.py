"""A mixture of experts over the ranks of a job, in plain PyTorch: the tokens go to the ranks of their experts and back, in pieces whose sizes
the router decides. Checks the number of tokens that a rank gets, and the bytes that its experts need for them, for a route.

usage: folded_moe.py balanced|worst|file [STEPS]   (as `vram fit --route` has it; `file`: expert 3 has three times the share of expert 5)
"""
import os
import sys

import torch
import torch.distributed as dist

TOKENS, EXPERTS, CHOSEN, WIDTH, HIDDEN = 512, 8, 2, 256, 1024
WORKSPACE = 32 << 20  # of cuBLAS during a product, on compute capability 9.0


class Layer(torch.nn.Module):
    def __init__(self, rank, world):
        super().__init__()
        self.rank, self.world, self.own = rank, world, EXPERTS // world
        self.gate = torch.nn.Linear(WIDTH, EXPERTS, bias=False, device="cuda")
        self.up = torch.nn.Parameter(torch.empty(WIDTH, HIDDEN, device="cuda"))
        self.down = torch.nn.Parameter(torch.empty(HIDDEN, WIDTH, device="cuda"))
        self.received = self.peak = 0

    def forward(self, tokens):
        scores = self.gate(tokens).softmax(-1)
        weights, experts = scores.topk(CHOSEN, dim=-1)
        order = experts.view(-1).argsort(stable=True)
        sent = tokens[order // CHOSEN]
        counts = torch.bincount(experts.view(-1), minlength=EXPERTS)
        others = torch.empty_like(counts)
        dist.all_to_all_single(others, counts)
        gives = counts.view(self.world, self.own).sum(1).tolist()
        gets = others.view(self.world, self.own).sum(1).tolist()
        back = self.exchange(sent, gives, gets)
        return torch.zeros_like(tokens).index_add(0, order // CHOSEN, back * weights.view(-1)[order, None])

    @torch.no_grad()
    def exchange(self, sent, gives, gets):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        self.received = sum(gets)
        mine = sent.new_empty(self.received, WIDTH)
        dist.all_to_all_single(mine, sent, gets, gives)
        made = (mine @ self.up).relu_() @ self.down
        self.peak = torch.cuda.max_memory_allocated() - before
        back = torch.empty_like(sent)
        dist.all_to_all_single(back, made, gives, gets)
        return back


def expected(route, rank, world):
    """Returns the number of tokens that a rank gets from all ranks, for each of their choices."""
    if route == "balanced":
        return TOKENS * CHOSEN
    # The first two experts, or expert 3 and 5: it would get three quarters of the choices, more than there are tokens, so all choose both.
    own = EXPERTS // world
    return sum(TOKENS * world for expert in ((0, 1) if route == "worst" else (3, 5)) if expert // own == rank)


def main():
    route, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    layer = Layer(rank, world)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(steps):
        layer(torch.randn(TOKENS, WIDTH, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        assert layer.received == expected(route, rank, world), (rank, layer.received, expected(route, rank, world))
        needed = 4 * layer.received * (WIDTH + HIDDEN + WIDTH) + (WORKSPACE if layer.received else 0)
        assert layer.peak == needed, (rank, layer.peak, needed)
    print(f"rank {rank}: {layer.received} tokens, {layer.peak} B", flush=True)
    dist.destroy_process_group()


main()
