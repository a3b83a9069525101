#!/usr/bin/env python3
"""Tests PyTorch itself with this allocator, if PyTorch and a GPU are present. Skipped by name otherwise."""
import cases
import vram_torch

MIB = 1 << 20


def real_torch():
    """Returns torch with the allocator enabled."""
    try:
        import torch
    except ImportError:
        cases.skip("PyTorch is not there")
    if torch.version.cuda is None or not torch.cuda.is_available():
        cases.skip("PyTorch sees no NVIDIA GPU")
    vram_torch.enable()
    return torch


def train(torch, steps):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, wanted = torch.randn(256, 512, device="cuda"), torch.randint(0, 10, (256,), device="cuda")
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training():
    torch = real_torch()
    losses = train(torch, 30)
    assert losses[-1] < losses[0] / 2, losses
    assert torch.cuda.get_allocator_backend() == "pluggable"
    assert torch.cuda.max_memory_allocated() > 10 * MIB
    assert torch.cuda.memory_stats()["allocation.all.current"] > 0
    assert "vram" in torch.cuda.memory_summary()
    vram_torch.allocator().check()


def test_a_tensor_is_what_it_was():
    torch = real_torch()
    before = vram_torch.memory_allocated()
    tensor = torch.arange(MIB, device="cuda", dtype=torch.int32)
    assert vram_torch.memory_allocated() - before >= 4 * MIB
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        doubled = tensor * 2
    tensor.record_stream(side)
    del tensor
    torch.cuda.current_stream().wait_stream(side)
    assert int(doubled[-1]) == 2 * (MIB - 1)
    del doubled
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert vram_torch.memory_allocated() == before


def test_out_of_memory_is_an_exception():
    torch = real_torch()
    total = vram_torch.mem_get_info()[1]
    try:
        torch.empty(2 * total, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        assert "CUDA out of memory. " in str(error) and vram_torch.last_oom() in str(error)
    else:
        raise AssertionError("no exception")
    assert int(torch.ones(10, device="cuda").sum()) == 10


def test_a_graph_computes_the_same_a_thousand_times():
    torch = real_torch()
    inputs = torch.zeros(MIB, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            (inputs * 2 + 1).relu().sum()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = (inputs * 2 + 1).relu().sum()
    assert vram_torch.allocator()._library.vram_torch_pool_count() == 1
    torch.manual_seed(1)
    held = []
    for step in range(1000):
        held.append(torch.randn(1 + 997 * step % 300000, device="cuda"))  # the rest of the program, in freed memory
        if len(held) > 20:
            del held[step % 7]
        inputs.fill_(step % 50)
        graph.replay()
        assert float(result) == MIB * (2.0 * (step % 50) + 1), step
    del graph, result
    torch.cuda.empty_cache()
    assert vram_torch.allocator()._library.vram_torch_pool_count() == 0
    vram_torch.allocator().check()


def test_graphed_callables():
    torch = real_torch()
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
    sample = torch.randn(16, 64, device="cuda")
    expected = model(sample).detach().clone()
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(16, 64, device="cuda"),))
    for _ in range(20):
        assert torch.allclose(graphed(sample), expected, atol=1e-5)
        graphed(sample).sum().backward()
    vram_torch.allocator().check()


if __name__ == "__main__":
    cases.main(__file__, globals())
