"""PyTorch 2.15's new functions about memory, each called once on a GPU. Their answers are recorded (rows.py) for --compare."""
import ctypes
import gc

import torch
from rows import answer, main, row

MIB = 1 << 20
CUDA = torch.device("cuda")


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device=CUDA)


def names_of(frames):
    return [frame["name"] for frame in frames or []]


@row
def newest_history():
    """Metadata on events and blocks, the stack of an address, FX frames, marks; each is also in the final snapshot."""
    memory = torch.cuda.memory
    answer("metadata is supported", memory._memory_metadata_supported())
    memory._record_memory_history(max_entries=10_000, stacks="python")
    memory._set_memory_metadata({"step": 1, "phase": "forward"})
    kept = empty(3 * MIB)
    answer("metadata", memory._get_memory_metadata())
    memory._set_memory_metadata("")
    memory._annotate_tensor(kept[100:], "packed")
    assert names_of(memory._allocation_traceback(kept.data_ptr()))[-1] in ("main", "<module>")
    assert "empty" in names_of(memory._allocation_traceback(kept.data_ptr()))
    answer("stacks", [names_of(memory._allocation_traceback(address)) for address in (kept.data_ptr(), kept.data_ptr() + 512, 4096)])
    snapshot = memory._snapshot(augment_with_fx_traces=True)
    actions = [(event["action"], event.get("user_metadata", "")) for event in snapshot["device_traces"][0]]
    assert ("alloc", '{"step":1,"phase":"forward"}') in actions and ("annotate", "packed") in actions, actions
    answer("actions", actions)
    answer("keys of events", sorted({key for event in snapshot["device_traces"][0] for key in event}))
    answer("keys of segments", sorted({key for segment in snapshot["segments"] for key in segment}))
    answer("keys of a snapshot", sorted(snapshot))
    answer("settings", sorted(snapshot["allocator_settings"].items(), key=str))


@row
def newest_compiled():
    """Frames of compiled code with FX's information."""
    import torch.fx.experimental._config as fx

    fx.enrich_profiler_metadata = True  # without it they carry no information

    @torch.compile(backend="aot_eager")
    def layer(x):
        return (x @ x).relu()

    x = torch.empty(64, 64, device=CUDA)
    layer(x)
    torch.cuda.memory._record_memory_history(max_entries=10_000, stacks="python")
    kept = layer(x)
    frames = [frame for event in torch.cuda.memory._snapshot(augment_with_fx_traces=True)["device_traces"][0] for frame in event["frames"]]
    assert any("fx_node_op" in frame for frame in frames), frames
    answer("frames of FX", [sorted((key, str(value)) for key, value in frame.items() if key.startswith("fx_node")) for frame in frames if "fx_node_op" in frame])
    assert kept.shape == (64, 64)


@row
def newest_counters():
    """torch.accelerator, counters of private pools even after their end, nested counters of pinned memory."""
    accelerator = torch.accelerator
    kept, pinned = empty(30 * MIB), torch.empty(1000, pin_memory=True)
    pools = [torch.cuda.MemPool(), torch.cuda.MemPool()]
    for pool, size in zip(pools, (5 * MIB, 1000)):
        with torch.cuda.use_mem_pool(pool):
            answer("inside", empty(size).numel())
    def private():
        return {key: value for key, value in torch.cuda.memory_stats().items() if key.startswith("reserved_bytes_by_private_pools")}
    both = private()
    assert len(both) >= 24, sorted(both)
    answer("pools", both)
    del pool, pools
    gc.collect()
    answer("pools that are gone", private())
    answer("accelerator", [accelerator.memory_allocated(), accelerator.memory_reserved(), accelerator.max_memory_allocated(),
                           accelerator.max_memory_reserved(), accelerator.get_memory_info()])
    answer("counters", accelerator.memory_stats())
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    answer("counters after resets", accelerator.memory_stats())
    assert accelerator.memory_allocated() == 30 * MIB
    answer("pinned", torch.cuda.memory.host_memory_stats_as_nested_dict()["active_requests"]["current"])
    del kept, pinned
    accelerator.empty_host_cache()
    accelerator.empty_cache()
    assert accelerator.memory_reserved() == 0
    answer("snapshot", sorted(accelerator.memory._snapshot()))


@row
def newest_settings():
    kept = empty(MIB)
    answer("fraction", torch.cuda.get_per_process_memory_fraction())
    torch._C._accelerator_setAllocatorSettings("roundup_power2_divisions:4")
    again = empty(5 * MIB + 1)
    answer("settings", [torch._C._accelerator_getAllocatorSettings(), torch.cuda.memory_allocated(), kept.numel(), again.numel()])


@row
def newest_caching():
    """Turns the cache off and on again. PyTorch's history lacks the allocations in between, vram's has them (docs/differences.md)."""
    kept = empty(MIB)
    before = torch.cuda.mem_get_info()[0]
    with torch.cuda.memory.caching_allocator_disabled():
        alone = empty(8 * MIB)
        assert torch.cuda.memory_reserved() == 2 * MIB and torch.cuda.mem_get_info()[0] == before - 8 * MIB
        del alone
        assert torch.cuda.mem_get_info()[0] == before
    again = empty(MIB)
    assert torch.cuda.memory_reserved() == 2 * MIB and again.data_ptr() == kept.data_ptr() + MIB


@row
def newest_managed():
    """A pool of managed memory. It calls PyTorch's own runtime as _use_uvm() would; cuda.bindings has NVIDIA's runtime linked in, which accepts only
    NVIDIA's driver."""
    runtime = ctypes.CDLL(None)
    runtime.cudaFree.argtypes = [ctypes.c_void_p]
    live = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    def make(size, device, stream):
        pointer = ctypes.c_void_p()
        assert runtime.cudaMallocManaged(ctypes.byref(pointer), ctypes.c_size_t(size), ctypes.c_uint(1)) == 0
        live.append(size)
        return pointer.value

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    def end(pointer, size, device, stream):
        assert runtime.cudaFree(pointer) == 0
        live.remove(size)

    allocator = torch._C._cuda_customAllocator(ctypes.cast(make, ctypes.c_void_p).value, ctypes.cast(end, ctypes.c_void_p).value)
    pool = torch.cuda.MemPool(allocator)
    with torch.cuda.use_mem_pool(pool):
        kept = empty(5 * MIB)
        assert kept.data_ptr() and len(pool.snapshot()) == 1 and live == [20 * MIB]
    again = empty(5 * MIB)
    answer("segments", [segment["total_size"] for segment in torch.cuda.memory_snapshot()])
    del kept, again, pool
    gc.collect()
    torch.cuda.empty_cache()
    answer("reserved", [torch.cuda.memory_reserved(), live])
    assert live == []


@row
def newest_graphs():
    """A graph's contents, hooks around it, watched inputs, and the pinned cache that a capture empties."""
    x, seen = torch.ones(1000, device=CUDA), []
    pinned = torch.empty(1 << 20, pin_memory=True)
    del pinned
    before = torch.cuda.host_memory_stats()["num_host_free"]
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.MemPool()
    handles = [graph.register_capture_start_hook(lambda _: seen.append("begin")), graph.register_capture_end_hook(lambda _: seen.append("end")),
               graph.register_post_instantiate_hook(lambda _: seen.append("made")), graph.register_replay_start_hook(lambda _: seen.append("replay")),
               graph.register_replay_end_hook(lambda _: seen.append("replayed"))]
    with torch.cuda.graph(graph, check_input_liveness=True):
        y = x * 2
        with torch.cuda.use_mem_pool(pool):
            z = y + 1
    assert torch.cuda.host_memory_stats()["num_host_free"] == before + 1
    assert len(graph.pools()) == 2 and tuple(pool.id) in [tuple(each) for each in graph.pools()]
    answer("uses", pool.use_count())
    graph.replay()
    assert seen == ["begin", "end", "made", "replay", "replayed"] and handles, seen
    held = tuple(pool.id)
    del pool, z
    gc.collect()
    torch.cuda.empty_cache()
    answer("held", len(torch.cuda.memory_snapshot(held)))
    assert torch.cuda.memory_snapshot(held), "the graph's second pool is gone"
    del x
    try:
        graph.replay()
    except RuntimeError as error:
        assert "deallocated" in str(error) or "input" in str(error).lower(), error
    else:
        raise AssertionError("a graph ran although its input is gone")
    del graph, y, handles
    gc.collect()
    torch.cuda.empty_cache()
    answer("reserved", torch.cuda.memory_reserved())


@row
def newest_pools():
    """Pools that do not split, pools that lend, a pool's own snapshots, a reused pool id."""
    plain, whole = torch.cuda.MemPool(), torch.cuda.MemPool(no_split=True)
    kept = []
    for pool in (plain, whole, plain, whole):
        with torch.cuda.use_mem_pool(pool):
            kept.append(empty(4 * MIB))
    answer("segments", [[[block["size"] for block in segment["blocks"]] for segment in pool.snapshot()] for pool in (plain, whole)])
    answer("without traces", [sorted(segment) for segment in plain.snapshot(include_traces=False)][0])
    kept.clear()
    del pool
    identity = tuple(whole.id)
    del whole
    torch.cuda.empty_cache()
    torch._C._cuda_beginAllocateCurrentThreadToPool(0, identity)
    kept = [empty(4 * MIB), empty(4 * MIB)]
    answer("used again", len(torch.cuda.memory_snapshot(identity)))
    kept.clear()
    torch._C._cuda_endAllocateToPool(0, identity)
    torch._C._cuda_releasePool(0, identity)
    lender = torch.cuda.MemPool(use_on_oom=True)
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 80 * MIB) / total)
    with torch.cuda.use_mem_pool(lender):
        kept = [empty(40 * MIB)]
    kept.append(empty(40 * MIB))
    address = kept[0].data_ptr()
    del kept[0]
    kept.append(empty(30 * MIB))
    assert kept[-1].data_ptr() == address
    try:
        empty(30 * MIB)
    except torch.OutOfMemoryError:
        answer("ooms", torch.cuda.memory_stats()["num_ooms"])
    else:
        raise AssertionError("more than there is was given out")
    torch.cuda.set_per_process_memory_fraction(1.0)
    kept.clear()
    del lender, plain
    gc.collect()
    torch.cuda.empty_cache()
    answer("reserved", torch.cuda.memory_reserved())


def refused(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return [type(error).__name__, str(error).split("\n")[0]]
    return "served"


@row
def newest_addresses():
    """Memory allocated at its former address, and requests for it that are refused."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = [empty(3729) for _ in range(800)]
        target, behind = empty(4017), empty(9124)
    storage = target.untyped_storage()
    address, size = storage.data_ptr(), storage.nbytes()
    for each in [*kept, target, behind]:
        each.untyped_storage().resize_(0)
    with torch.cuda.use_mem_pool(pool):
        storage._resize_with_addr_(size, address)
        assert storage.data_ptr() == address and storage.nbytes() == size
        storage.resize_(0)
        other = [empty(3729) for _ in range(801)]
        answer("taken", refused(storage._resize_with_addr_, size, address)[0])
        answer("not of a pool", refused(storage._resize_with_addr_, size, 1 << 20)[0])
        answer("not aligned", refused(storage._resize_with_addr_, size, address + 8))
    answer("annotated", [refused(torch._C._cuda_annotateMemory, place, "words")[0] for place in (address + 8, 4096)])
    assert other


@row
def newest_reuse():
    """Blocks whose free a capture deferred serve the next capture of its pool."""
    torch._C._accelerator_setAllocatorSettings("graph_capture_record_stream_reuse:True")
    pool, addresses = torch.cuda.graph_pool_handle(), []
    origin, side = torch.cuda.Stream(), torch.cuda.Stream()
    graphs = [torch.cuda.CUDAGraph() for _ in range(3)]
    for graph in graphs:
        torch.cuda.synchronize()
        with torch.cuda.stream(origin):
            graph.capture_begin(pool=pool)
            kept = empty(8 * MIB)
            side.wait_stream(origin)
            with torch.cuda.stream(side):
                kept.add_(1)
                kept.record_stream(side)
            origin.wait_stream(side)
            addresses.append(kept.data_ptr())
            del kept
            graph.capture_end()
    assert len(set(addresses)) == 1, addresses


@row
def newest_pinned():
    """Limits of pinned memory set and removed at run time; strings that are refused."""
    torch.cuda.init()
    setting = torch._C._accelerator_setAllocatorSettings
    for text, size in (("pinned_max_round_threshold_mb:128", 129 * MIB), ("pinned_max_cached_size_mb:32", 64 * MIB),
                       ("pinned_max_round_threshold_mb:256,pinned_max_cached_size_mb:64", 100 * MIB)):
        setting(text)
        kept = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        answer(text, torch.cuda.host_memory_stats()["allocated_bytes.current"])
        del kept
        answer("kept", torch.cuda.host_memory_stats()["allocations.current"])
        setting("pinned_max_round_threshold_mb:4096,pinned_max_cached_size_mb:4096")
        torch._C._host_emptyCache()
    for text in ("foo:1,bar:2", "garbage_collection_threshold:1.2", "max_split_size_mb:2", "release_lock_on_cudamalloc:none", "pinned_num_register_threads:1024"):
        try:
            setting(text)
        except ValueError:
            continue
        raise AssertionError(text)
    setting("pinned_max_round_threshold_mb:-1")
    setting("pinned_max_round_threshold_mb:4096")  # the last setting applies, even after one that was refused


if __name__ == "__main__":
    main()
