"""PyTorch's memory: what its allocators, graphs, pools and histories report on a GPU."""
import gc
import os
import sys
import tempfile

import torch
from rows import main, peak_is, row

MIB = 1 << 20
CUDA = torch.device("cuda")


@row
def out_of_memory():
    free, _ = torch.cuda.mem_get_info()
    kept = torch.empty(free // 2, dtype=torch.uint8, device=CUDA)
    try:
        torch.empty(free, dtype=torch.uint8, device=CUDA)
    except torch.cuda.OutOfMemoryError as error:
        assert "out of memory" in str(error)
    else:
        raise AssertionError("more than is free was given out")
    del kept
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


@row
def pin_memory():
    host = torch.arange(1 << 20).pin_memory()
    assert host.is_pinned()
    device = host.to(CUDA, non_blocking=True)
    back = torch.empty_like(host, pin_memory=True)
    back.copy_(device, non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(back, host)
    if hasattr(torch.cuda, "host_memory_stats"):  # since 2.7
        assert torch.cuda.host_memory_stats()["num_host_alloc"] >= 2
    data = torch.utils.data.TensorDataset(torch.arange(1000.0).view(100, 10))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=10, pin_memory=True, num_workers=2):
        assert batch.is_pinned() and batch.to(CUDA, non_blocking=True).shape == (10, 10)


@row
def pinned_history():
    """New in 2.15: each block of pinned memory is its own segment, and so is memory that the program pins itself."""
    if not torch.cuda.is_initialized():
        torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python", record_pinned_host_memory=True)
    side = torch.cuda.Stream()
    for size in (100, 1 << 20, 3 << 20):
        first = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        device = first.to(CUDA, non_blocking=True)
        del first
        with torch.cuda.stream(side):
            second = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            device = second.to(CUDA, non_blocking=True)
        torch.cuda.synchronize()
        del device
    third = torch.empty(5000, dtype=torch.uint8, pin_memory=True)
    torch._C._host_emptyCache()
    own = torch.empty(1 << 16, dtype=torch.uint8)
    assert int(torch.cuda.cudart().cudaHostRegister(own.data_ptr(), own.numel(), 0)) == 0
    assert int(torch.cuda.cudart().cudaHostUnregister(own.data_ptr())) == 0
    snapshot = torch.cuda.memory._snapshot()
    actions = [event["action"] for event in snapshot["host_traces"][0]] if isinstance(snapshot["host_traces"][0], list) else \
              [event["action"] for event in snapshot["host_traces"]]
    for action in ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free"):
        assert action in actions, (action, actions)
    assert any(segment["address"] == third.data_ptr() for segment in snapshot["host_segments"])
    assert second.is_pinned()


@row
def record_stream():
    side = torch.cuda.Stream(priority=-1)
    assert side.priority == -1
    address = []
    for used in (False, True):
        x = torch.empty(32 * MIB, dtype=torch.uint8, device=CUDA)
        with torch.cuda.stream(side):
            torch.cuda._sleep(10_000_000)
            if used:
                x.record_stream(side)
        before = x.data_ptr()
        del x
        y = torch.empty(32 * MIB, dtype=torch.uint8, device=CUDA)
        address.append(y.data_ptr() == before)
        del y
        torch.cuda.synchronize()
    assert address == [True, False], address  # a block that another stream still uses is not reused


@row
def streams_and_events():
    side, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.cuda._sleep(50_000_000)
    end.record()
    assert not end.query() and not torch.cuda.current_stream().query()
    side.wait_event(end)
    end.synchronize()
    assert start.elapsed_time(end) > 1 and end.query() and torch.cuda.current_stream().query()
    side.synchronize()


@row
def graphs():
    x = torch.randn(64, 64, device=CUDA)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # the documented warm-up: libraries create their handles before the capture
        (x @ x).relu()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x @ x
        z = (y + 1).relu()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    own = [s for s in torch.cuda.memory_snapshot() if tuple(s["segment_pool_id"]) == tuple(graph.pool())]
    assert own and sum(s["active_size"] for s in own) >= 2 * 64 * 64 * 4 and z.shape == (64, 64)
    second = torch.cuda.CUDAGraph()
    with torch.cuda.graph(second, pool=graph.pool()):
        w = z * 2
    second.replay()
    del y, z, w, graph, second
    gc.collect()
    torch.cuda.empty_cache()


@row
def graphed_callables():
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(CUDA)
    sample = torch.randn(16, 64, device=CUDA, requires_grad=True)
    net = torch.cuda.make_graphed_callables(net, (sample,))
    for _ in range(3):
        net(torch.randn(16, 64, device=CUDA, requires_grad=True)).sum().backward()
    torch.cuda.synchronize()


@row
def graphs_lend():
    """With vram and lend_graph_pools:True."""
    vram_torch = sys.modules.get("vram_torch")
    if vram_torch is None or not vram_torch.is_enabled():
        sys.exit(77)
    x = torch.ones(8 * MIB, device=CUDA)
    x * 2
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x * 2 + 1).sum()
    graph.replay()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + MIB) / torch.cuda.get_device_properties(0).total_memory)
    for _ in range(10):
        loan = torch.empty(30 * MIB, dtype=torch.uint8, device=CUDA)
        try:
            graph.replay()
        except vram_torch.Error as error:
            assert "lent" in str(error)
        else:
            raise AssertionError("the graph overwrote a tensor")
        del loan
        graph.replay()
    torch.cuda.synchronize()
    assert y.numel() == 1


@row
def mempool():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.empty(5 * MIB, dtype=torch.uint8, device=CUDA)
    segments = [s for s in torch.cuda.memory_snapshot() if tuple(s["segment_pool_id"]) == tuple(pool.id)]
    assert len(segments) == 1 and segments[0]["total_size"] >= 5 * MIB
    assert pool.snapshot() and pool.use_count() >= 1
    del x, pool
    gc.collect()


@row
def expandable_segments():
    assert "expandable_segments:True" in (os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or "")
    kept = [torch.empty(40 * MIB, dtype=torch.uint8, device=CUDA) for _ in range(10)]
    segments = torch.cuda.memory_snapshot()
    assert any(s["is_expandable"] for s in segments), segments
    assert torch.cuda.memory_reserved() == 400 * MIB
    del kept[3:7]
    x = torch.empty(160 * MIB, dtype=torch.uint8, device=CUDA)
    assert torch.cuda.memory_reserved() == 400 * MIB and x.numel()
    del kept, x
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


@row
def history():
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="all")
    kept = [torch.empty(n * MIB, dtype=torch.uint8, device=CUDA) for n in (1, 5, 30)]
    del kept[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        torch.cuda.memory._dump_snapshot(path)
        assert os.path.getsize(path) > 1000
    snapshot = torch.cuda.memory._snapshot()
    events = [e for e in snapshot["device_traces"][0]]
    assert [e["action"] for e in events].count("alloc") == 3 and any(f["filename"].endswith("torch_memory.py") for e in events for f in e["frames"])
    torch.cuda.memory._record_memory_history(enabled=None)


@row
def statistics():
    x = torch.empty(3 * MIB, dtype=torch.uint8, device=CUDA)
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == 3 * MIB and torch.cuda.memory_reserved() == 20 * MIB
    assert "Allocated memory" in torch.cuda.memory_summary() and x.numel()
    used = torch.cuda.mem_get_info()[1] - torch.cuda.mem_get_info()[0]
    assert used >= 20 * MIB
    assert torch.cuda.device_memory_used() >= 20 * MIB  # as NVML reports it
    peak_is(torch, 3 * MIB, 3 * MIB)


@row
def async_backend():
    assert torch.cuda.get_allocator_backend() == "cudaMallocAsync", "run with backend:cudaMallocAsync"
    x = torch.empty(3 * MIB, dtype=torch.uint8, device=CUDA)
    assert torch.cuda.memory_allocated() >= 3 * MIB
    del x
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def _child(queue, done):
    for _ in range(2):
        tensor = queue.get()
        assert tensor.is_cuda and tensor.numel() in (1 << 20, 5)
        del tensor
    done.set()


@row
def ipc():
    import torch.multiprocessing as mp

    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    child = context.Process(target=_child, args=(queue, done))
    child.start()
    kept = [torch.zeros(1 << 20, device=CUDA), torch.zeros(5, device=CUDA)]
    for tensor in kept:
        queue.put(tensor)
    assert done.wait(300)
    child.join(60)
    assert child.exitcode == 0


if __name__ == "__main__":
    main()
