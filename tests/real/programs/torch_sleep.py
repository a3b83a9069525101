"""vram_torch.sleep() under real PyTorch: addresses and bytes, graphs, two alternating models, stand-ins for other libraries' modules."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["VRAM_BUILD"], "adapters/torch"))

import torch
import vram_torch
from rows import main, row

MIB = 1 << 20


def used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def numbers(count, seed):
    return torch.arange(count, dtype=torch.int32) * 7 + seed


def addresses_and_bytes():
    with vram_torch.tagged("weights"):
        kept = [numbers(count, count).cuda() for count in (100, 70_000, 3_000_000, 12_000_000)]
    with vram_torch.tagged("cache"):
        cache = numbers(9_000_000, 1).cuda()
    other = numbers(5_000_000, 2).cuda()
    places, before = [tensor.data_ptr() for tensor in (*kept, cache, other)], used()
    for level in ("keep", "discard"):
        went = vram_torch.sleep({"weights": "keep", "cache": level})
        assert went >= sum(tensor.nbytes for tensor in (*kept, cache)) and before - used() == went, (went, before, used())
        assert torch.equal(other.cpu(), numbers(5_000_000, 2))
        snapshot = torch.cuda.memory._snapshot()
        asleep = [segment for segment in snapshot["segments"] if segment.get("asleep")]
        assert len(asleep) >= 2 or vram_torch.way().startswith("native"), asleep  # PyTorch's own snapshot cannot hold another key
        assert vram_torch.wake() == went and used() == before
        assert [tensor.data_ptr() for tensor in (*kept, cache, other)] == places
        for tensor in kept:
            assert torch.equal(tensor.cpu(), numbers(len(tensor), len(tensor)))
        assert level == "discard" or torch.equal(cache.cpu(), numbers(9_000_000, 1))
    assert any(segment.get("asleep") for segment in asleep_snapshot())
    try:
        with vram_torch.tagged("weights"):
            vram_torch.sleep("weights")
            torch.empty(MIB, device="cuda")
    except RuntimeError as error:
        assert "asleep" in str(error), error
    else:
        raise AssertionError("a pool that sleeps served a request")
    del kept[0]  # frees while it sleeps
    vram_torch.wake()
    assert torch.equal(kept[0].cpu(), numbers(70_000, 70_000))
    vram_torch.allocator().check()


def asleep_snapshot():
    vram_torch.sleep("weights")
    segments = vram_torch.snapshot()["segments"]
    vram_torch.wake("weights")
    return segments


@row
def sleep_native():
    vram_torch.enable(way="native")
    addresses_and_bytes()
    pool = torch.cuda.MemPool()
    vram_torch.tag_pool(pool, "graph")
    graph, x = torch.cuda.CUDAGraph(), torch.zeros(MIB, device="cuda")
    with torch.cuda.graph(graph, pool=pool.id):
        y = x + 1
    for _ in range(3):
        assert vram_torch.sleep("graph") > 0
        vram_torch.wake("graph")
        graph.replay()
    torch.cuda.synchronize()
    assert y.numel() == MIB
    vram_torch.allocator().check()


@row
def sleep_pluggable():
    vram_torch.enable(way="pluggable")
    addresses_and_bytes()


def model():
    return torch.nn.Sequential(*(torch.nn.Linear(2048, 2048, bias=False, device="cuda") for _ in range(32)))


def train(trainer, optimizer):
    """A training step. Returns the bytes of the gradients, which a PyTorch thread makes, and which therefore have no tag."""
    with vram_torch.tagged("trainer"):
        trainer(torch.randn(64, 2048, device="cuda")).square().mean().backward()
        gradients = sum(p.grad.nbytes for p in trainer.parameters())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return gradients


def in_turns(conf):
    """As in reinforcement learning, one model generates and another trains, alternating on a device with room for 55 % of both."""
    vram_torch.enable(way="native", conf=conf)
    x = torch.randn(64, 2048, device="cuda", requires_grad=True)
    (x @ x.T).sum().backward()  # library workspaces belong to no tag
    levels = {"rollout": "keep", "kv_cache": "discard"}
    with vram_torch.tagged("rollout"):
        rollout = model()
    with vram_torch.tagged("kv_cache"):
        cache = torch.empty(1024 * MIB, dtype=torch.uint8, device="cuda")
    of_rollout = vram_torch.sleep(levels)
    with vram_torch.tagged("trainer"):
        trainer = model()
    optimizer = torch.optim.SGD(trainer.parameters(), lr=0.01, momentum=0.9)
    gradients = train(trainer, optimizer)
    of_trainer = vram_torch.sleep("trainer") + gradients
    torch.cuda.empty_cache()
    both, free = of_rollout + of_trainer, torch.cuda.mem_get_info()[0]
    ballast = torch.empty(free - int(0.55 * both), dtype=torch.uint8, device="cuda")  # leaves 55 % of both on the device
    assert torch.cuda.mem_get_info()[0] <= 0.55 * both and min(of_rollout, of_trainer) > 0.4 * both
    places = [p.data_ptr() for p in (*rollout.parameters(), *trainer.parameters())]
    for _ in range(4):
        vram_torch.wake(list(levels))
        with torch.no_grad(), vram_torch.tagged("rollout"):
            rollout(torch.randn(32, 2048, device="cuda"))
        vram_torch.sleep(levels)
        vram_torch.wake("trainer")
        train(trainer, optimizer)
        vram_torch.sleep("trainer")
    vram_torch.wake(list(levels))
    try:
        vram_torch.wake("trainer")
    except vram_torch.OutOfMemory as error:
        assert "waking needs" in str(error), error
    else:
        raise AssertionError("both fit: the device was not small")
    vram_torch.sleep(levels)
    vram_torch.wake("trainer")
    assert [p.data_ptr() for p in (*rollout.parameters(), *trainer.parameters())] == places and cache.numel()
    del ballast
    vram_torch.allocator().check()
    print(f"in turns: {both / MIB:.0f} MiB of both in {0.55 * both / MIB:.0f} MiB")


@row
def sleep_in_turns():
    in_turns("expandable_segments:True")


@row
def sleep_in_turns_paged():
    in_turns("paged:True")


@row
def sleep_as_memory_saver():
    from vram_memory_saver import torch_memory_saver

    with torch_memory_saver.region(tag="weights", enable_cpu_backup=True):
        weights = numbers(4_000_000, 3).cuda()
    with torch_memory_saver.region(tag="cache"):
        cache = torch.zeros(50 * MIB, dtype=torch.uint8, device="cuda")
    place, before = (weights.data_ptr(), cache.data_ptr()), used()
    torch_memory_saver.pause("cache")
    torch_memory_saver.pause()
    assert before - used() >= weights.nbytes + cache.nbytes
    assert torch.equal(torch_memory_saver.get_cpu_backup(weights), numbers(4_000_000, 3))
    torch_memory_saver.resume("weights")
    assert torch.equal(weights.cpu(), numbers(4_000_000, 3))
    torch_memory_saver.resume()
    assert used() == before and (weights.data_ptr(), cache.data_ptr()) == place


@row
def sleep_as_cumem():
    from vram_cumem import CuMemAllocator

    allocator = CuMemAllocator.get_instance()
    with allocator.use_memory_pool(tag="weights"):
        weights = numbers(4_000_000, 4).cuda()
    with allocator.use_memory_pool(tag="kv_cache"):
        cache = torch.zeros(80 * MIB, dtype=torch.uint8, device="cuda")
    place, before = (weights.data_ptr(), cache.data_ptr()), used()
    assert allocator.get_current_usage() >= weights.nbytes + cache.nbytes
    allocator.sleep(offload_tags=("weights",))
    assert before - used() >= weights.nbytes + cache.nbytes
    allocator.wake_up(tags=["weights"])
    assert torch.equal(weights.cpu(), numbers(4_000_000, 4))
    allocator.wake_up(tags=["kv_cache"])
    cache.zero_()
    assert used() == before and (weights.data_ptr(), cache.data_ptr()) == place


if __name__ == "__main__":
    main()
