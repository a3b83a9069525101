"""PyTorch's everyday operations on a GPU: each ends, allocates what it must and leaves no memory behind."""
import gc

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from rows import main, peak_is, row

MIB = 1 << 20
CUDA = torch.device("cuda")


def nothing_left():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    # Workspaces stay: 32 MiB of cuBLAS for each of this thread and the backward thread, and 1 MiB of cuBLASLt.
    assert torch.cuda.memory_allocated() <= 65 * MIB, torch.cuda.memory_summary()


def model(width=256):
    return torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)).to(CUDA)


@row
def imports():
    assert torch.cuda.is_available() and torch.version.cuda
    count = torch.cuda.device_count()
    assert count >= 1
    properties = torch.cuda.get_device_properties(0)
    assert properties.total_memory > 1 << 30 and properties.multi_processor_count > 1 and properties.name
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total
    print(properties.name, total >> 20, "MiB", torch.__version__)


@row
def tensors():
    a = torch.empty(1024, 1024, device=CUDA)
    assert torch.cuda.memory_allocated() == 4 * MIB
    host = torch.arange(4096, dtype=torch.int64)
    assert torch.equal(host.to(CUDA).cpu(), host)  # the copied values come back
    b = torch.zeros(256, 256, device=CUDA)
    assert b.cpu().shape == (256, 256)
    c = (a @ a + 1).transpose(0, 1).contiguous().view(-1, 64).softmax(-1)
    d = torch.cat([c, c]).index_select(0, torch.arange(8, device=CUDA))
    e = torch.where(d > 0, d, torch.ones_like(d)).to(torch.float16).mean(dim=1)
    assert e.shape == (8,) and e.dtype is torch.float16
    assert a[2:4, :7].clone().shape == (2, 7) and torch.stack([a, a]).shape[0] == 2
    g = a.gather(1, torch.zeros(1024, 5, dtype=torch.long, device=CUDA)).cumsum(1)
    assert g.shape == (1024, 5) and "device" in repr(g.device) or str(g.device) == "cuda:0"
    assert torch.einsum("ij,kj->ik", a, a).shape == (1024, 1024)
    del a, b, c, d, e, g
    nothing_left()


@row
def autograd():
    net = model()
    x = torch.randn(64, 256, device=CUDA, requires_grad=True)
    loss = F.mse_loss(torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False), torch.zeros(64, 256, device=CUDA))
    loss.backward()
    assert x.grad.shape == x.shape and all(p.grad is not None for p in net.parameters())
    (second,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    second.sum().backward()
    torch.func.vmap(lambda v: (v * v).sum())(x.detach())
    peak_is(torch, 2 * MIB)


@row
def optimizers():
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.NAdam):
        for options in ({}, {"foreach": True}, {"fused": True}):
            if options.get("fused") and make in (torch.optim.RMSprop, torch.optim.NAdam, torch.optim.Adagrad):
                continue  # not on a GPU, or not in every version
            net = model()
            optimizer = make(net.parameters(), lr=1e-3, **options)
            for _ in range(3):
                optimizer.zero_grad()
                net(torch.randn(8, 256, device=CUDA)).sum().backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
            del net, optimizer
    nothing_left()


@row
def amp():
    net, scaler = model(), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.AdamW(net.parameters())
    for dtype in (torch.float16, torch.bfloat16):
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=dtype):
                out = net(torch.randn(32, 256, device=CUDA))
                assert out.dtype is dtype
                loss = out.float().pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    peak_is(torch, 2 * MIB)


@row
def convolutions():
    for groups, channels_last in ((1, False), (8, False), (1, True)):
        net = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3, padding=1, groups=groups), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
                                  torch.nn.MaxPool2d(2), torch.nn.ConvTranspose2d(32, 8, 2, stride=2)).to(CUDA)
        x = torch.randn(8, 16, 64, 64, device=CUDA, requires_grad=True)
        if channels_last:
            net, x = net.to(memory_format=torch.channels_last), x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()
        out = net(x)
        assert out.shape == (8, 8, 64, 64)
        out.sum().backward()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            net(x).sum().backward()
    torch.nn.Conv3d(4, 4, 3).to(CUDA)(torch.randn(1, 4, 8, 8, 8, device=CUDA)).sum().backward()
    torch.nn.Conv1d(4, 4, 3).to(CUDA)(torch.randn(1, 4, 80, device=CUDA)).sum().backward()
    torch.backends.cudnn.benchmark = True
    torch.nn.Conv2d(4, 4, 3).to(CUDA)(torch.randn(1, 4, 8, 8, device=CUDA)).sum().backward()
    peak_is(torch, 2 * MIB)


@row
def lstm():
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        net = kind(64, 128, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1).to(CUDA)
        out, _ = net(torch.randn(4, 20, 64, device=CUDA))
        assert out.shape == (4, 20, 256)
        out.sum().backward()
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(4, 20, 64, device=CUDA), torch.tensor([20, 15, 9, 2]), batch_first=True)
    torch.nn.LSTM(64, 32, batch_first=True).to(CUDA)(packed)[0].data.sum().backward()


@row
def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.randn(2, 8, 256, 64, device=CUDA, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            assert out.shape == q.shape
            out.sum().backward()
    F.scaled_dot_product_attention(q, k, v).sum().backward()
    layer = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True).to(CUDA)
    layer(torch.randn(2, 32, 64, device=CUDA)).sum().backward()
    torch.nn.MultiheadAttention(64, 4, batch_first=True).to(CUDA)(*[torch.randn(2, 32, 64, device=CUDA)] * 3)[0].sum().backward()


@row
def fft():
    x = torch.randn(16, 1024, device=CUDA)
    assert torch.fft.rfft(x).shape == (16, 513) and torch.fft.irfft(torch.fft.rfft(x), n=1024).shape == x.shape
    assert torch.fft.fft2(torch.randn(4, 64, 96, device=CUDA)).shape == (4, 64, 96)
    assert torch.fft.fftn(torch.randn(8, 8, 8, dtype=torch.complex64, device=CUDA)).shape == (8, 8, 8)
    assert torch.fft.fft(torch.randn(3, 1021, dtype=torch.float64, device=CUDA)).dtype is torch.complex128
    torch.stft(x, 256, window=torch.hann_window(256, device=CUDA), return_complex=True)
    assert torch.backends.cuda.cufft_plan_cache.size >= 1
    torch.backends.cuda.cufft_plan_cache.clear()


@row
def linear_algebra():
    a = torch.randn(4, 64, 64, device=CUDA)
    s = a @ a.mT
    for call in (torch.linalg.cholesky_ex, torch.linalg.qr, torch.linalg.svd, torch.linalg.eigh, torch.linalg.lu_factor_ex, torch.linalg.det,
                 torch.linalg.slogdet, torch.linalg.inv_ex, torch.linalg.lstsq if False else torch.linalg.matrix_norm):
        call(s)
    torch.linalg.svd(a[0])
    torch.linalg.svdvals(torch.randn(300, 20, device=CUDA))
    torch.linalg.eigh(torch.randn(512, 512, device=CUDA))
    torch.linalg.solve_ex(a, torch.randn(4, 64, 3, device=CUDA))
    torch.linalg.solve_triangular(s, torch.randn(4, 64, 3, device=CUDA), upper=False)
    torch.linalg.cholesky_ex(torch.eye(64, device=CUDA, dtype=torch.float64))
    torch.cholesky_inverse(torch.eye(64, device=CUDA))
    torch.linalg.lstsq(a, torch.randn(4, 64, 3, device=CUDA), driver="gels")
    torch.linalg.householder_product(torch.randn(8, 4, device=CUDA), torch.randn(4, device=CUDA))
    torch.baddbmm(torch.randn(4, 64, 64, device=CUDA), a, a), torch.addmm(a[0], a[1], a[2]), torch.bmm(a, a), torch.mv(a[0], a[0][0])
    torch.dot(a[0][0], a[0][1])
    peak_is(torch, MIB)


@row
def sparse():
    dense = torch.zeros(128, 128)
    dense[::7, ::5] = 1
    coo = dense.to_sparse().to(CUDA)
    csr = dense.to_sparse_csr().to(CUDA)
    x = torch.randn(128, 16, device=CUDA)
    assert torch.sparse.mm(coo, x).shape == (128, 16) and (csr @ x).shape == (128, 16)
    assert coo.transpose(0, 1)._nnz() == coo._nnz()
    torch.sparse.sampled_addmm(csr, torch.randn(128, 8, device=CUDA), torch.randn(8, 128, device=CUDA))
    embedding = torch.nn.Embedding(1000, 32, sparse=True).to(CUDA)
    embedding(torch.arange(64, device=CUDA)).sum().backward()
    torch.nn.EmbeddingBag(1000, 32, mode="sum").to(CUDA)(torch.arange(64, device=CUDA).view(8, 8)).sum().backward()


@row
def sort():
    x = torch.randn(1 << 20, device=CUDA)
    assert torch.sort(x)[1].shape == x.shape and torch.argsort(x.view(1024, 1024), dim=0).shape == (1024, 1024)
    assert torch.topk(x, 100).values.shape == (100,) and torch.kthvalue(x[:5000], 5).values.ndim == 0
    torch.unique(torch.arange(1000, device=CUDA)), torch.bincount(torch.arange(1000, device=CUDA), minlength=10)
    torch.nonzero(x > 0), torch.masked_select(x, x > 0), torch.cumsum(x, 0), torch.searchsorted(x, x), torch.histc(x, 10)
    torch.median(x), torch.mode(x.view(1024, 1024)), torch.quantile(x[:1000], 0.5), torch.msort(x.view(1024, 1024))


@row
def random():
    torch.cuda.manual_seed_all(7)
    state = torch.cuda.get_rng_state()
    for make in (torch.rand, torch.randn):
        make(1000, 1000, device=CUDA)
    torch.cuda.set_rng_state(state)
    torch.randperm(100000, device=CUDA), torch.randint(0, 9, (1000,), device=CUDA)
    torch.bernoulli(torch.full((1000,), 0.5, device=CUDA)), torch.empty(1000, device=CUDA).exponential_().normal_().uniform_().cauchy_()
    torch.poisson(torch.ones(1000, device=CUDA)), torch.multinomial(torch.ones(100, device=CUDA), 10, replacement=True)
    F.dropout(torch.ones(1000, device=CUDA), 0.5)
    torch.distributions.Gamma(torch.ones(10, device=CUDA), 1.0, validate_args=False).sample()


@row
def transformer():
    """Ten steps of a small transformer with AdamW and autocast, with a complete history."""
    torch.cuda.memory._record_memory_history(max_entries=200000)
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, norm_first=True)
    net = torch.nn.Sequential(torch.nn.Embedding(5000, 256), torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                              torch.nn.Linear(256, 5000)).to(CUDA)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(10):
        tokens = torch.randint(0, 5000, (8, 129), device=CUDA)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = net(tokens[:, :-1])
            loss = F.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
    snapshot = torch.cuda.memory._snapshot()
    assert len(snapshot["device_traces"][0]) > 5000
    peak_is(torch, 100 * MIB, 2000 * MIB)


if __name__ == "__main__":
    main()
