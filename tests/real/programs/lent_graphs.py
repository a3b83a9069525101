"""vram's lend_graph_pools in real PyTorch: when the device is full, tensors get the free memory of captured graphs.

Each row captures graphs as a program does. Then the device has no memory left, and tensors of many sizes are allocated until nothing is left
either in the graphs' pools. At least 90 % of the bytes that were free in these pools must be lent. No graph can be launched meanwhile;
after the tensors are freed, all can."""
import gc
import os
import sys

sys.path.insert(0, os.path.join(os.environ["VRAM_BUILD"], "adapters/torch"))

import torch
import vram_torch
from rows import main, row

KIB, MIB = 1 << 10, 1 << 20
CUDA = torch.device("cuda")
LEAST_LENT = 0.9
# Halves are enough: requests of at most 1 MiB are served from other blocks than larger ones.
SIZES = [size * MIB for size in (256, 128, 64, 32, 16, 8, 4, 2)] + [MIB + 512, MIB] + [size * KIB for size in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)] + [512]


def free_in_pools():
    """The free blocks of graphs' pools, as (address, bytes)."""
    torch.cuda.synchronize()
    found = []
    for segment in torch.cuda.memory_snapshot():
        if tuple(segment["segment_pool_id"]) == (0, 0):
            continue
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                found.append((address, block["size"]))
            address += block["size"]
    return found


def fill():
    """Allocates tensors until every size fails."""
    kept = []
    for size in SIZES:
        while True:
            try:
                kept.append(torch.empty(size, dtype=torch.uint8, device=CUDA))
            except torch.OutOfMemoryError:
                break
    return kept


def lend(replays):
    """Fills the device and the graphs' pools. `replays` launch the graphs."""
    for replay in replays:
        replay()
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free = free_in_pools()
    assert free, "no block is free in the graphs' pools"
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(torch.cuda.memory_reserved() / total)
    kept = fill()
    lent = sum(t.numel() for t in kept if any(address <= t.data_ptr() < address + size for address, size in free))
    wanted = sum(size for _, size in free)
    print(f"{lent:,} of {wanted:,} free bytes of graphs' pools lent ({lent / wanted:.1%})")
    assert lent >= LEAST_LENT * wanted
    refused = 0
    for replay in replays:
        try:
            replay()
        except vram_torch.Error as error:
            assert "lent" in str(error), error
            refused += 1
    assert refused == len(replays), f"{len(replays) - refused} of {len(replays)} graphs ran over memory that is lent"
    del kept
    torch.cuda.set_per_process_memory_fraction(1.0)
    for replay in replays:
        replay()
    torch.cuda.synchronize()
    vram_torch.allocator().check()


def capture(work, pool=None):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        kept = work()
    return graph, kept


def enable():
    vram_torch.enable(way="native", conf="lend_graph_pools:True")


def layers(count=2, width=512):
    made = [torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, norm_first=True, dropout=0.0) for _ in range(count)]
    return torch.nn.Sequential(*made).to(CUDA)


@row
def lent_elementwise():
    enable()
    x = torch.ones(16 * MIB, device=CUDA)
    graph, _ = capture(lambda: (x * 2 + 1).relu().sum())
    lend([graph.replay])


@row
def lent_inference():
    enable()
    net, x = layers().eval(), torch.randn(8, 256, 512, device=CUDA)

    def work():
        with torch.no_grad():
            return net(x)

    graph, _ = capture(work)
    lend([graph.replay])


@row
def lent_convolutions():
    enable()
    net = torch.nn.Sequential(*[torch.nn.Conv2d(32, 32, 3, padding=1) for _ in range(6)]).to(CUDA)
    x = torch.randn(4, 32, 128, 128, device=CUDA)

    def work():
        with torch.no_grad():
            return net(x).mean()

    graph, _ = capture(work)
    lend([graph.replay])


@row
def lent_whole_step():
    """Forward, backward and the optimizer's step in one graph."""
    enable()
    net, x = layers(), torch.randn(8, 256, 512, device=CUDA)
    optimizer = torch.optim.AdamW(net.parameters(), capturable=True)

    def work():
        optimizer.zero_grad(set_to_none=True)
        net(x).square().mean().backward()
        optimizer.step()

    graph, _ = capture(work)
    lend([graph.replay])


@row
def lent_decode_sizes():
    """A graph for each batch size in one pool, the largest first, as serving engines capture them."""
    enable()
    net, pool, graphs = layers().eval(), torch.cuda.graph_pool_handle(), []
    x = torch.randn(256, 1, 512, device=CUDA)
    for size in (256, 128, 64, 32, 16, 8, 4, 2, 1):

        def work():
            with torch.no_grad():
                return net(x[:size])

        graphs.append(capture(work, pool))
    lend([graph.replay for graph, _ in graphs])


@row
def lent_pools_apart():
    """Three graphs, each with a pool of its own."""
    enable()
    x = torch.ones(8 * MIB, device=CUDA)
    graphs = [capture(lambda n=n: (x[: n * MIB] * 2 + 1).sum()) for n in (8, 5, 2)]
    lend([graph.replay for graph, _ in graphs])


@row
def lent_graphed_perceptron():
    enable()
    net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).to(CUDA)
    sample = torch.randn(512, 1024, device=CUDA, requires_grad=True)
    net = torch.cuda.make_graphed_callables(net, (sample,))

    def step():
        net(sample).sum().backward()

    lend([step])


@row
def lent_graphed_transformer():
    enable()
    sample = torch.randn(8, 256, 512, device=CUDA, requires_grad=True)
    net = torch.cuda.make_graphed_callables(layers(), (sample,))

    def step():
        net(sample).sum().backward()

    lend([step])


def compiled(train):
    enable()
    net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024), torch.nn.LayerNorm(1024)).to(CUDA)
    run = torch.compile(net, mode="reduce-overhead")
    x = torch.randn(2048, 1024, device=CUDA)

    def step():
        torch.compiler.cudagraph_mark_step_begin()
        if train:
            net.zero_grad(set_to_none=True)
            run(x).sum().backward()
        else:
            with torch.no_grad():
                run(x)

    for _ in range(4):
        step()
    lend([step])


@row
def lent_reduce_overhead_inference():
    compiled(train=False)


@row
def lent_reduce_overhead_training():
    compiled(train=True)


@row
def lent_vllm():
    """vLLM's own graphs, in the process of this program. While its pools are lent, the engine has no memory for a step, so no graph is launched."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    enable()
    from vllm_engine import engine, generate

    llm = engine(gpu_memory_utilization=0.5)
    generate(llm)
    lend([])
    generate(llm)


@row
def lent_sglang():
    """SGLang's own graphs, in its benchmark of one batch, which runs the model in the process of this program. It lends after its first batches, and
    then runs more."""
    enable()
    import sglang_engine

    folder = sglang_engine.model_with_tokenizer()  # before the import, which looks for the toolkit
    from sglang.benchmark import one_batch

    once, lent = one_batch.latency_test_run_once, []

    def run_and_lend(*args, **kwargs):
        made = once(*args, **kwargs)
        if not lent:
            lend([])
            lent.append(True)
        return made

    one_batch.latency_test_run_once = run_and_lend
    options = {"load-format": "dummy", "context-length": 1024, "mem-fraction-static": 0.5, "batch-size": 4, "input-len": 64, "output-len": 8}
    sys.argv = ["one_batch", "--model-path", folder, *(str(word) for name, value in options.items() for word in (f"--{name}", value))]
    one_batch.cli_main()
    assert lent


if __name__ == "__main__":
    main()
