"""vram instead of PyTorch's allocator, in both ways: what PyTorch then returns, and what is refused at once."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["VRAM_BUILD"], "adapters/torch"))

import torch
import vram_torch
from rows import main, row

MIB = 1 << 20


def refused(function, *words):
    try:
        function()
    except vram_torch.Error as error:
        text = str(error)
        assert "\n" not in text and all(word in text for word in words), text
    else:
        raise AssertionError(f"not refused: {words}")


def out_of_memory():
    try:
        torch.empty(torch.cuda.mem_get_info()[1], dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        assert str(error).startswith("CUDA out of memory. Tried to allocate ") and " GPU 0 has a total capacity of " in str(error)
        assert vram_torch.last_oom() is None or vram_torch.last_oom() in str(error)
    else:
        raise AssertionError("more than there is was given out")


def answers():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    snapshot = torch.cuda.memory._snapshot()
    assert [event["action"] for event in snapshot["device_traces"][0]].count("alloc") == 1
    assert len(torch.cuda.memory_snapshot()) == 1 and torch.cuda.get_per_process_memory_fraction() == 1
    if hasattr(getattr(torch, "accelerator", None), "memory_allocated"):
        assert torch.accelerator.memory_allocated() == 3 * MIB
    if hasattr(torch.cuda.memory, "_set_memory_metadata"):
        torch.cuda.memory._set_memory_metadata("words")
        assert torch.cuda.memory._get_memory_metadata() == "words"
    torch.cuda.memory._set_allocator_settings("max_split_size_mb:64")
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == 3 * MIB and x.numel()
    torch.cuda.memory._record_memory_history(enabled=None)


def observers():
    heard = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *facts: heard.append(facts))
    out_of_memory()
    assert len(heard) == 1 and heard[0][0] == 0 and heard[0][1] >= torch.cuda.mem_get_info()[1], heard


def graph():
    captured, x = torch.cuda.CUDAGraph(), torch.zeros(1000, device="cuda")
    with torch.cuda.graph(captured):
        y = x + 1
    captured.replay()
    torch.cuda.synchronize()
    assert y.numel() == 1000


def put_into_a_queue():
    torch.multiprocessing.get_context("spawn").Queue().put([torch.zeros(5, device="cuda")])


@row
def adapter_pluggable():
    vram_torch.enable(way="pluggable")
    assert vram_torch.way() == "pluggable: as requested" and torch.cuda.get_allocator_backend() == "pluggable"
    answers()
    out_of_memory()
    observers()
    graph()
    refused(torch.cuda.MemPool, "MemPool", "way()")
    refused(lambda: torch.compile(lambda x: x, mode="reduce-overhead"), "torch.compile", "max-autotune-no-cudagraphs")
    refused(put_into_a_queue, "another process", "tensor.cpu()")
    assert torch.compile(lambda x: x) is not None


@row
def adapter_native():
    vram_torch.enable(way="native")
    assert vram_torch.way().startswith("native: ") and torch.cuda.get_allocator_backend() == "native"
    answers()
    out_of_memory()
    observers()
    graph()
    assert vram_torch.memory_reserved() == torch.cuda.memory_reserved()
    vram_torch.allocator().check()


def step(net, optimizer, length):
    x = torch.randn(8, length, 512, device="cuda")
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()


@row
def adapter_paged():
    """Trains with several sequence lengths in pages. Reserves little more than the peak, and no more once all lengths occurred."""
    vram_torch.enable(way="native", conf="paged:True")
    layers = [torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, norm_first=True) for _ in range(6)]
    net = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    lengths, asked = (512, 576, 448, 640), []
    for round in range(4):
        for length in lengths:
            step(net, optimizer, length)
        asked.append(torch.cuda.memory_stats()["num_device_alloc"])
    stats = torch.cuda.memory_stats()
    reserved, active = (stats[f"{name}_bytes.all.peak"] for name in ("reserved", "active"))
    print(f"in pages: {reserved / MIB:.0f} MiB reserved for {active / MIB:.0f} MiB in use at the peak, {reserved / active:.4f} times; {asked} requests of the driver after each round")
    assert reserved <= 1.03 * active, (reserved, active)
    assert asked[1] == asked[2] == asked[3], asked
    assert sum(segment["total_size"] for segment in torch.cuda.memory_snapshot()) == torch.cuda.memory_reserved()
    graph()
    vram_torch.allocator().check()
    torch.cuda.empty_cache()
    vram_torch.allocator().check()


@row
def adapter_paged_viz():
    """PyTorch's own reader reads a snapshot of paged memory, and counts and draws the actual memory."""
    from torch.cuda import _memory_viz as viz

    vram_torch.enable(way="native", conf="paged:True")
    torch.cuda.memory._record_memory_history(max_entries=100000)
    net = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for length in (512, 576, 448, 640, 512):
        step(net, optimizer, length)
    torch.cuda.empty_cache()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    segments, events = snapshot["segments"], snapshot["device_traces"][0]
    assert sum(segment["total_size"] for segment in segments) == torch.cuda.memory_reserved()
    for segment in segments:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"], segment
    mapped = sum(event["size"] for event in events if event["action"] == "segment_map")
    unmapped = sum(event["size"] for event in events if event["action"] == "segment_unmap")
    assert mapped and unmapped and mapped - unmapped == torch.cuda.memory_reserved(), (mapped, unmapped, torch.cuda.memory_reserved())
    told = viz.segsum(snapshot)
    assert f"segments: {len(segments)}\n" in told and "segment_map" in viz.trace(snapshot), told[:500]
    assert "MemoryViz" in viz.trace_plot(snapshot) and "MemoryViz" in viz.segment_plot(snapshot)


if __name__ == "__main__":
    main()
