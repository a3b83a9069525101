"""Rarely used parts of PyTorch: layers, number formats, data loading and contexts."""
import os
import tempfile

import torch
import torch.nn.functional as F
from rows import main, row
from torch import nn

CUDA = torch.device("cuda")


@row
def more_layers():
    lengths = torch.full((16,), 50), torch.full((16,), 10)
    F.ctc_loss(torch.randn(50, 16, 20, device=CUDA, requires_grad=True).log_softmax(2), torch.randint(1, 20, (16, 10), device=CUDA), *lengths).backward()
    assert F.grid_sample(torch.zeros(1, 3, 8, 8, device=CUDA), torch.zeros(1, 4, 4, 2, device=CUDA), align_corners=False).shape == (1, 3, 4, 4)
    assert nn.EmbeddingBag(10, 3).cuda()(torch.zeros(2, 4, dtype=torch.long, device=CUDA)).shape == (2, 3)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 8, device=CUDA), [5, 3, 2])
    nn.GRU(8, 8, 2, bidirectional=True).cuda()(packed)[0].data.sum().backward()
    volumes = nn.Conv3d(3, 8, 3).cuda().half().to(memory_format=torch.channels_last_3d)
    volumes(torch.randn(1, 3, 8, 16, 16, device=CUDA).half()).sum().backward()
    assert torch.stft(torch.zeros(4000, device=CUDA), 400, return_complex=True, window=torch.hann_window(400, device=CUDA)).shape == (201, 41)
    assert len(torch.nested.nested_tensor([torch.zeros(3, 8), torch.zeros(5, 8)], device=CUDA, layout=torch.jagged)) == 2
    matrices = torch.eye(8, device=CUDA).expand(4, 8, 8).contiguous()
    for work in (torch.linalg.qr, torch.linalg.lu_factor, torch.linalg.inv, torch.linalg.eigvalsh, torch.linalg.svdvals, torch.linalg.pinv, torch.linalg.eigvals):
        work(matrices)


@row
def low_precision():
    assert torch._int_mm(*(torch.zeros(shape, dtype=torch.int8, device=CUDA) for shape in ((32, 64), (64, 32)))).shape == (32, 32)
    left, right = (torch.zeros(32, 64, device=CUDA).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones(1, device=CUDA)
    assert torch._scaled_mm(left, right.t(), one, one, out_dtype=torch.bfloat16).shape == (32, 32)
    from torch.sparse import to_sparse_semi_structured
    dense = torch.tensor([0, 0, 1, 1], dtype=torch.float16, device=CUDA).tile((128, 32))
    assert to_sparse_semi_structured(dense).shape == (128, 128)
    if hasattr(torch, "_grouped_mm"):
        ends = torch.tensor([16, 32, 48, 64], device=CUDA, dtype=torch.int32)
        groups = (torch.zeros(*shape, device=CUDA, dtype=torch.bfloat16) for shape in ((64, 64), (4, 64, 64)))
        assert torch._grouped_mm(*groups, offs=ends).shape == (64, 64)


@row
def ways_of_data():
    """Loaders with their own processes, checkpoints, activations on the host, several devices from threads."""
    import torch.distributed.checkpoint as checkpoints
    from torch.cuda.comm import broadcast
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.zeros(100, 4)), batch_size=10, num_workers=2, pin_memory=True)
    assert sum(len(batch.cuda(non_blocking=True)) for (batch,) in loader) == 100
    with tempfile.TemporaryDirectory() as folder:
        torch.save(nn.Linear(4, 4).cuda().state_dict(), f"{folder}/weights")
        assert torch.load(f"{folder}/weights", map_location="cuda")["weight"].is_cuda
        ones = {"a": torch.ones(1000, device=CUDA)}
        checkpoints.save(ones, checkpoint_id=f"{folder}/parts")
        back = {"a": torch.zeros(1000, device=CUDA)}
        checkpoints.load(back, checkpoint_id=f"{folder}/parts")
        assert torch.equal(back["a"].cpu(), torch.ones(1000)) and ".metadata" in os.listdir(f"{folder}/parts")
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        x = torch.randn(64, 64, device=CUDA, requires_grad=True)
        (x.sin() @ x).sum().backward()
    both = nn.DataParallel(nn.Linear(8, 8).cuda())
    both(torch.randn(16, 8, device=CUDA)).sum().backward()
    assert [each.device.index for each in broadcast(torch.zeros(4, device=CUDA), [0, 1])] == [0, 1]


@row
def tools():
    """The profiler over CUPTI, kernels from strings, NVTX, and NVML through PyTorch."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as done:
        torch.randn(64, 64, device=CUDA) @ torch.randn(64, 64, device=CUDA)
    assert any(event.key == "aten::mm" for event in done.key_averages())
    added = torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x + 1; }")
    assert added(torch.zeros(4, device=CUDA)).shape == (4,)
    torch.cuda.nvtx.range_push("a")
    torch.cuda.nvtx.range_pop()
    assert torch.cuda.utilization() == 0 and torch.cuda.temperature() == 25 and str(os.getpid()) in torch.cuda.list_gpu_processes()


@row
def green_contexts():
    """Green contexts with some multiprocessors, with and without a work queue setting, and their streams."""
    from torch.cuda.green_contexts import GreenContext

    torch.zeros(1, device=CUDA)
    assert GreenContext.max_workqueue_concurrency(device_id=0) > 0
    words = [{}, {"workqueue_scope": "balanced", "workqueue_concurrency_limit": 2}]
    for made in [GreenContext.create(num_sms=16, device_id=0, **word) for word in words] + [GreenContext.create(workqueue_scope="device_ctx", device_id=0)]:
        stream = made.Stream()
        with torch.cuda.stream(stream):
            kept = torch.zeros(1 << 20, device=CUDA) + 1
        stream.synchronize()
        assert kept.is_cuda


if __name__ == "__main__":
    main()
