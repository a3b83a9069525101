"""torch.compile: compiles Triton's kernels for the device and launches them; captures and replays the graphs of reduce-overhead."""
import torch
import triton
import triton.language as tl
from rows import main, peak_is, row

CUDA = torch.device("cuda")


def train(mode, layers=4):
    net = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 128))[:layers].to(CUDA)
    compiled = torch.compile(net, mode=mode)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        compiled(torch.randn(32, 128, device=CUDA)).pow(2).mean().backward()
        optimizer.step()
    torch.cuda.synchronize()
    peak_is(torch, 1 << 20)


@row
def compile_default():
    train("default")


@row
def compile_reduce_overhead():
    train("reduce-overhead")


@row
def compile_max_autotune():
    train("max-autotune-no-cudagraphs", layers=3)  # one product and its gradient: each compiles about twenty kernels, a second each


@row
def triton_kernel():
    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

    x = torch.ones(100000, device=CUDA)
    add[(triton.cdiv(100000, 1024),)](x, x, torch.empty_like(x), 100000, BLOCK=1024)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
