#!/usr/bin/env python3
"""Small operations are computed: PyTorch programs under `vram sim`.

Usage: test_values.py VRAM: with the PyTorch of VRAM_TORCH_PYTHON (an interpreter), or of check-real's cache. Skipped without one.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

VRAM = sys.argv[1]
CACHE = pathlib.Path(os.environ.get("VRAM_REAL_CACHE", pathlib.Path.home() / ".cache/vram/real"))
PYTHON = os.environ.get("VRAM_TORCH_PYTHON") or str(CACHE / "torch/bin/python")
CASES = pathlib.Path(os.environ.get("VRAM_SHARED", pathlib.Path(__file__).parents[2] / "../shared")) / "data/cases"
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith("VRAM_")}
SKIPPED = 77


def run(program, *options):
    text = "import torch\nfrom torch.nn import functional as F\n" + textwrap.dedent(program)
    return subprocess.run([VRAM, "sim", *options, "--", PYTHON, "-c", text], capture_output=True, text=True, env=ENVIRONMENT, check=False)


def run_ranks(file, *options):
    """Runs two ranks, each with its own device."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", file]
    return subprocess.run([VRAM, "sim", *options, "--devices", "2", "--", PYTHON, *launch], capture_output=True, text=True, env=ENVIRONMENT, check=False)


def has(program):
    """Returns whether a program runs in that environment."""
    return os.path.exists(PYTHON) and subprocess.run([VRAM, "sim", "--", PYTHON, "-c", program], capture_output=True, env=ENVIRONMENT, check=False).returncode == 0


class Values(unittest.TestCase):
    def expect(self, program, printed, *options):
        result = run(program, *options)
        self.assertEqual(result.stdout.split("\n"), [*printed, ""], result.stderr[-2000:])
        return result

    def test_what_is_known_is_a_fact(self):
        """Known values are not listed as reads."""
        result = self.expect("""
            x = torch.arange(12, device="cuda").view(3, 4)
            print(x.sum().item(), x[1].tolist(), (x.float() @ x.float().T)[2, 2].item(), (x % 3 == 1).nonzero().tolist())
            print(torch.cat([x, x + 1]).unique().numel(), bool((x >= 0).all()), x.t().contiguous().argmax(1).tolist(), torch.equal(x, x.clone()))
            # Element by element: true or unknown is true, and what is unknown is not put.
            unknown = torch.empty(4, device="cuda") > 1
            known = torch.tensor([True, False, True, False], device="cuda")
            print((known | unknown)[::2].all().item(), (~known & unknown)[::2].any().item(), torch.where(known, 5, unknown.long())[0].item())
            # Operations on lists: place by place.
            copied = [torch.empty(2, device="cuda"), torch.empty(4, device="cuda")]
            torch._foreach_copy_(copied, [torch.ones(2, device="cuda"), torch.empty(4, device="cuda")])
            print(copied[0].tolist(), torch._foreach_norm([copied[0], unknown.float()], 1)[0].item())
            print(torch.tril_indices(2, 2, device="cuda").tolist())
            # A backward pass has a thread of its own.
            x = torch.arange(4., device="cuda", requires_grad=True)
            (x * x).sum().backward()
            print(x.grad.tolist())
            """, ["66 [4, 5, 6, 7] 366.0 [[0, 1], [1, 0], [1, 3], [2, 2]]", "13 True [2, 2, 2, 2] True", "True False 5", "[1.0, 1.0] 2.0", "[[0, 1, 1], [0, 0, 1]]", "[0.0, 2.0, 4.0, 6.0]"], "--reads")
        self.assertIn("every read returned what a GPU would have returned", result.stderr)

    def test_what_is_likely_is_listed(self):
        """Checks random numbers, which are equal for equal seeds, and results of tables. The host's generator does not change."""
        result = self.expect("""
            x = torch.rand(100, device="cuda")
            print((x < 2).sum().item())
            print((x < 0).any().item())
            torch.manual_seed(7); a = torch.rand(3); torch.manual_seed(7); first = torch.randn(5, device="cuda"); b = torch.rand(3)
            torch.cuda.manual_seed(7); second = torch.randn(5, device="cuda"); third = torch.randn(5, device="cuda")
            print(bool((first == second).all()), bool((second == third).all()), torch.equal(a, b))
            torch.manual_seed(7); F.dropout(first, 0.5); print(torch.equal(torch.rand(3), a))
            x = torch.empty(1000, 1000, device="cuda") @ torch.empty(1000, 1000, device="cuda")
            print(torch.isfinite(x).all().item(), torch.isnan(x).any().item(), 1 / x.norm().item(), x.sum().item())
            print(len(set(x.view(-1).topk(5)[1].tolist())), 0 < x.view(-1).argmax().item() < x.numel() - 1, sorted(x[0].sort()[1].tolist()) == list(range(1000)))
            """, ["100", "False", "True False True", "True", "True False 1.0 1.0", "5 True True"], "--reads")
        for line in (5, 6, 9, 12, 13):
            self.assertIn(f"<module> at <string>:{line}\n", result.stderr)

    def test_what_a_library_writes_is_no_fact(self):
        """A large product is written over known values, without a kernel launch that the simulator sees."""
        result = self.expect("""
            x = torch.rand(512, 512, device="cuda")
            x @ x
            known = torch.ones(512, 512, device="cuda"); del known
            y = x @ x
            print(y[3, 3].item())
            """, ["0.0"], "--reads")
        self.assertIn("<module> at <string>:8\n", result.stderr)

    def test_attention_and_products_of_eight_bits(self):
        """Operations that the host lacks or implements differently: gradients, with groups of heads, masks and scales."""
        result = self.expect("""
            from torch.nn.attention import SDPBackend, sdpa_kernel
            def gradients(device, kind, backend, heads=2, **options):
                given = [torch.linspace(-1, 1, 2 * count * 8 * 16).view(2, count, 8, 16).flip(i).to(device, kind).requires_grad_() for i, count in enumerate((2, heads, heads))]
                options = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in options.items()}
                with sdpa_kernel(backend):
                    made = F.scaled_dot_product_attention(*given, **options)
                (made * torch.arange(16., device=device).to(kind)).sum().backward()
                return [item.grad.float().cpu() for item in given]
            def same(kind, backend, **options):
                pairs = zip(gradients("cuda", kind, backend, **options), gradients("cpu", kind, SDPBackend.MATH, **options))
                return all(torch.allclose(one, other, rtol=0.05, atol=0.05) for one, other in pairs)
            print(same(torch.bfloat16, SDPBackend.FLASH_ATTENTION, is_causal=True), same(torch.float32, SDPBackend.EFFICIENT_ATTENTION),
                  same(torch.float32, SDPBackend.EFFICIENT_ATTENTION, attn_mask=torch.ones(8, 8).tril().log()))
            print(same(torch.bfloat16, SDPBackend.FLASH_ATTENTION, heads=1, enable_gqa=True))
            a, b = torch.linspace(-4, 4, 256, device="cuda").view(16, 16).to(torch.float8_e4m3fn), torch.eye(16, device="cuda").to(torch.float8_e4m3fn)
            two, rows = torch.full((), 2., device="cuda"), torch.arange(16., device="cuda").view(16, 1)
            print(torch.equal(torch._scaled_mm(a, b.t(), two, two, out_dtype=torch.bfloat16), (a.float() * 4).bfloat16()),
                  torch.equal(torch._scaled_mm(a, b.t(), rows, torch.ones(1, 16, device="cuda"), out_dtype=torch.bfloat16), (a.float() * rows).bfloat16()))
            """, ["True True True", "True", "True True"], "--reads")
        self.assertIn("every read returned what a GPU would have returned", result.stderr)

    def test_a_rule_goes_before(self):
        self.expect("""
            print(torch.rand(100, device="cuda").sum().item(), torch.ones(3, device="cuda").sum().item())
            """, ["7.0 3.0"], "--value", "*=f32:7")

    def test_limits(self):
        self.expect("""
            print((torch.ones(3, device="cuda") + 1).sum().item())
            """, ["0.0"], "--values", "none")
        self.expect("""
            print((torch.ones(3, device="cuda") + 1).sum().item(), (torch.ones(64, device="cuda") + 1).sum().item())
            """, ["6.0 1.0"], "--compute", "100B")

    def test_masks_and_lengths_of_long_batches(self):
        """Integers and bools are computed up to four times the limit in elements, so the lengths of audio clips are those of their mask."""
        result = self.expect("""
            for mask in (torch.ones(2, 100_000, dtype=torch.long, device="cuda"), torch.ones(2, 100_000, dtype=torch.long).cuda()):
                mask[1, 50_000:] = 0
                print(mask.sum(-1).tolist(), mask.cumsum(-1)[:, -1].tolist(), (~mask.bool()).nonzero().size(0), mask.bool().all().item(), mask.unique().tolist())
            lengths = (mask.sum(-1) - 10) // 5000
            print(F.ctc_loss(torch.zeros(20, 2, 5, device="cuda").log_softmax(-1), torch.ones(2, 3, dtype=torch.long, device="cuda"), lengths, lengths // 9).item() > 0)
            print(torch.ones(2, 200_000, dtype=torch.long, device="cuda").sum().item())
            """, ["[100000, 50000] [100000, 50000] 50000 False [0, 1]"] * 2 + ["True", "0"], "--reads")
        self.assertEqual(re.findall(r"<module> at <string>:([0-9]+)\n", result.stderr), ["9"], result.stderr)

    def test_memory_is_that_of_the_operation(self):
        program = """
            x = torch.nn.Linear(8, 8, device="cuda")
            for _ in range(3):
                x(torch.randn(4, 8, device="cuda")).square().mean().backward()
            # Gradients of one tensor are added up in place, where nothing else holds them.
            y = torch.ones(32, 32, device="cuda", requires_grad=True).sin()
            ((y @ y) + y.cos() * y.exp() + y.tanh()).sum().backward()
            m = torch.arange(10, device="cuda")
            m[m > 100]
            print(torch.cuda.memory_stats()["allocation.all.allocated"], torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
            """
        computed, left = run(program), run(program, "--values", "none")
        self.assertEqual((computed.stdout, computed.returncode), (left.stdout, 0), computed.stderr)

    def test_a_step_of_an_optimizer(self):
        """Optimizers pass lists of tensors to kernels in memory that still contains the addresses of earlier lists."""
        self.expect("""
            for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop, torch.optim.Adagrad, lambda p: torch.optim.Adam(p, fused=True),
                         lambda p: torch.optim.SGD(p, momentum=0.9), torch.optim.NAdam):
                nets = [torch.nn.Linear(4, 3), torch.nn.Linear(4, 3).cuda()]
                nets[1].load_state_dict(nets[0].state_dict())
                x = torch.arange(8.).view(2, 4)
                for net in nets:
                    optimizer = make(net.parameters())
                    for _ in range(3):
                        net(x.to(net.weight.device)).square().mean().backward()
                        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                        optimizer.step()
                        optimizer.zero_grad()
                print(torch.allclose(nets[0].weight, nets[1].weight.cpu(), atol=1e-5), end=" ")
            print()
            """, ["True " * 8], "--reads")

    def test_what_a_training_step_updates(self):
        """Running means and noise are written although the schema does not say so. They are known, or unknown if the step is large."""
        result = self.expect("""
            def same(make, shape):
                x, net, own = torch.linspace(-1, 1, 96).view(shape), make(), make().cuda()
                for _ in range(3):
                    net(x), own(x.cuda())
                net.eval(), own.eval()
                net(x), own(torch.empty(shape, device="cuda"))
                return all(torch.allclose(one, other.cpu()) for one, other in zip(net.state_dict().values(), own.state_dict().values())) and torch.allclose(net(x), own(x.cuda()).cpu(), atol=1e-5)
            for torch.backends.cudnn.enabled in (True, False):
                print(same(lambda: torch.nn.BatchNorm1d(3, affine=False), (32, 3)), same(lambda: torch.nn.BatchNorm2d(3), (2, 3, 4, 4)), same(lambda: torch.nn.InstanceNorm1d(3, track_running_stats=True), (2, 3, 16)))
            layer = torch.nn.RReLU(0.5, 0.6).cuda()
            x = torch.full((4,), -1., device="cuda", requires_grad=True)
            layer(x).sum().backward()
            print(0.5 < x.grad.min().item() < x.grad.max().item() < 0.6)
            norm = torch.nn.BatchNorm2d(3).cuda()
            torch.backends.cudnn.enabled = True
            norm(torch.empty(4, 3, 100, 100, device="cuda"))
            print(len(norm.running_mean.tolist()))
            """, ["True True True"] * 2 + ["True", "3"], "--reads")
        for line in range(3, 13):
            self.assertNotIn(f"<module> at <string>:{line}\n", result.stderr)
        self.assertIn("<module> at <string>:20\n", result.stderr)

    def test_norms_losses_and_products_that_only_a_device_has(self):
        """Layers and their gradients give the host's results."""
        result = self.expect("""
            def near(some, others):
                return all(torch.allclose(one.float().cpu(), other.float().cpu(), atol=1e-4) for one, other in zip(some, others))
            def alike(layer, *shapes):
                found = []
                for device in ("cpu", "cuda"):
                    given = [torch.linspace(-1, 2, torch.Size(shape).numel()).view(shape).to(device).requires_grad_() for shape in shapes]
                    made = layer(*given)
                    (made * torch.linspace(0, 1, made.numel(), device=device).view(made.shape)).sum().backward()
                    found.append([made, *(item.grad for item in given)])
                return near(*found)
            targets = torch.tensor([1, 2, 3, 1, 1], dtype=torch.int32)
            print(not hasattr(F, "rms_norm") or alike(lambda x, w: F.rms_norm(x, (3, 2), w), (4, 3, 2), (3, 2)), alike(lambda x, grid: F.grid_sample(x, grid, align_corners=True), (1, 2, 4, 4), (1, 3, 3, 2)),
                  alike(lambda x: F.ctc_loss(x.log_softmax(-1), targets, (8, 8), (3, 2)).view(1), (8, 2, 5)))
            # Batch norm over ranks, of which this is the only one.
            x, weight = torch.linspace(-1, 1, 96, device="cuda").view(4, 3, 8), torch.arange(1., 4., device="cuda")
            gradient, running, count = x.flip(0), (torch.zeros(3, device="cuda"), torch.ones(3, device="cuda")), torch.full((1,), 32., device="cuda")
            own = torch.batch_norm_stats(x, 1e-5)
            found = torch.batch_norm_gather_stats_with_counts(x, own[0][None], own[1][None], *running, 0.1, 1e-5, count)
            made = torch.batch_norm_elemt(x, weight, weight, *found, 1e-5)
            *sums, of_weight, of_bias = torch.batch_norm_backward_reduce(gradient, x, *found, weight, True, True, True)
            of_x = torch.batch_norm_backward_elemt(gradient, x, *found, weight, *sums, count.int())
            norm, given = torch.nn.BatchNorm1d(3), x.cpu().requires_grad_()
            norm.load_state_dict({**norm.state_dict(), "weight": weight, "bias": weight})
            expected = norm(given)
            expected.backward(gradient.cpu())
            print(near([made, of_x, of_weight, of_bias, *running], [expected, given.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]))
            """, ["True True True", "True"], "--reads")
        self.assertIn("every read returned what a GPU would have returned", result.stderr)

    def test_sparse_tensors(self):
        """The number of elements after coalesce() is known if the indices are, however large the values."""
        if not has("import torch; torch.library.get_kernel"):
            self.skipTest("a replaced kernel cannot be called before PyTorch 2.9")
        result = self.expect("""
            import warnings; warnings.simplefilter("ignore")
            where = torch.tensor([[0, 1, 1, 2], [2, 0, 0, 1]], device="cuda")
            raw = torch.sparse_coo_tensor(where, torch.tensor([3., 4., 5., 6.], device="cuda"), (3, 3))
            made = raw.coalesce()
            print(made._nnz(), made.indices().tolist(), made.values().tolist(), raw._values().tolist(), raw.to_dense().tolist())
            print((made @ torch.ones(3, 1, device="cuda")).tolist(), (raw + raw).coalesce().values().tolist(), (made * 2).values().tolist(), (made * made)._nnz())
            rows = made.to_sparse_csr()
            print(rows.crow_indices().tolist(), (rows @ torch.ones(3, 1, device="cuda")).tolist(), rows.to_dense()[0].tolist())
            layer = torch.nn.Embedding(10, 100_000, sparse=True, device="cuda")
            layer(torch.tensor([1, 2, 2], device="cuda")).sum().backward()
            found = layer.weight.grad.coalesce()
            print(found._nnz(), found.indices().tolist())
            torch.optim.SparseAdam(layer.parameters()).step()
            print(len(found.values()[0, :1].tolist()))
            """, ["3 [[0, 1, 2], [2, 0, 1]] [3.0, 9.0, 6.0] [3.0, 4.0, 5.0, 6.0] [[0.0, 0.0, 3.0], [9.0, 0.0, 0.0], [0.0, 6.0, 0.0]]",
                  "[[3.0], [9.0], [6.0]] [6.0, 18.0, 12.0] [6.0, 18.0, 12.0] 3", "[0, 1, 2, 3] [[3.0], [9.0], [6.0]] [0.0, 0.0, 3.0]", "2 [[1, 2]]", "1"], "--reads")
        self.assertEqual(re.findall(r"<module> at <string>:([0-9]+)\n", result.stderr), ["17"], result.stderr)

    def test_types_that_the_host_has_no_kernel_for(self):
        """Types without a host kernel are computed in a wider type: a histogram of integers, with which transformers routes tokens to experts."""
        result = self.expect("""
            ids = torch.tensor([0, 1, 1, 3], device="cuda")
            print(torch.histc(ids.int(), 4, 0, 3).tolist(), torch.histc(ids, 4, 0, 3).cumsum(0).tolist(), torch.histc(ids, 4, 0, 3).dtype)
            library = torch.library.Library("narrow", "DEF")
            library.define("twice(Tensor x, Tensor index) -> Tensor")
            def on_host(x, index):
                if x.dtype == torch.half:
                    raise NotImplementedError("\\"twice_cpu\\" not implemented for 'Half'")
                return x[index] * 2
            library.impl("twice", on_host, "CPU")
            library.impl("twice", lambda x, index: torch.empty_like(index, dtype=x.dtype), "CUDA")
            try:
                torch.ops.load_library("none.so")
            except OSError:
                pass
            for _ in range(6):
                made = torch.ops.narrow.twice(torch.tensor([1., 2., 3.], device="cuda").half(), ids[:3])
            print(made.tolist(), made.dtype)
            """, ["[1, 2, 0, 1] [1, 3, 3, 4] torch.int64", "[2.0, 4.0, 4.0] torch.float16"], "--reads")
        self.assertIn("every read returned what a GPU would have returned", result.stderr)

    def test_what_is_written_in_part(self):
        """Elements that are written are known, even in an unknown tensor: an inverse permutation."""
        result = self.expect("""
            order, values = torch.tensor([2, 0, 1], device="cuda"), torch.arange(3, device="cuda")
            def empty():
                return torch.empty(4, dtype=torch.long, device="cuda")
            a, b, c, d, e = (empty() for _ in range(5))
            a[order] = values
            b[torch.tensor([True, True, False, False], device="cuda")] = 5
            c.scatter_(0, order, values)
            d.index_copy_(0, order, values)
            e.index_fill_(0, order, 7)
            print(a[:3].tolist(), b[:2].tolist(), c[:3].tolist(), d[:3].tolist(), e[:3].tolist(), empty().scatter(0, order, 9)[:3].tolist())
            print(a[3].item())
            a.index_put_((order,), values, accumulate=True)
            print(a[:3].tolist())
            f = empty()
            f[a[3:]] = 1
            print(f.tolist())
            """, ["[1, 2, 0] [5, 5] [1, 2, 0] [1, 2, 0] [7, 7, 7] [9, 9, 9]", "0", "[2, 4, 0]", "[1, 0, 0, 0]"], "--reads")
        self.assertNotIn("<string>:13\n", result.stderr)
        for line in (14, 16, 19):
            self.assertIn(f"<module> at <string>:{line}\n", result.stderr)

    def test_layers_that_only_a_device_has(self):
        self.expect("""
            torch.manual_seed(3)
            x, state = torch.randn(5, 2, 4), torch.randn(2, 8)
            for layer in (torch.nn.LSTM(4, 8, 2), torch.nn.GRU(4, 8, bidirectional=True), torch.nn.RNN(4, 8, bias=False), torch.nn.LSTM(4, 8, proj_size=3)):
                expected = layer(x)[0]
                layer.cuda()
                print(torch.allclose(layer(x.cuda())[0].cpu(), expected, atol=1e-5), torch.allclose(layer(x.cuda())[0].cpu(), expected, atol=1e-5))
            for cell, states in ((torch.nn.LSTMCell(4, 8), (state, state + 1)), (torch.nn.GRUCell(4, 8), state)):
                expected = cell(x[0], states)
                made = cell.cuda()(x[0].cuda(), tuple(part.cuda() for part in states) if isinstance(states, tuple) else states.cuda())
                print(all(torch.allclose(one.cpu(), other, atol=1e-5) for one, other in zip(made, expected)))
            """, ["True True"] * 4 + ["True"] * 2)

    def test_operations_of_other_libraries(self):
        """Operations that also have a kernel for the host are computed, even from a library that is loaded late."""
        self.expect("""
            def define(name):
                library = torch.library.Library(name, "DEF")
                library.define("count(Tensor x) -> Tensor")
                library.impl("count", lambda x: x.sum(), "CPU")
                library.impl("count", lambda x: torch.empty((), device=x.device), "CUDA")
                return library
            early = define("early")
            x = torch.ones(5, device="cuda")
            late = define("late")
            try:
                torch.ops.load_library("none.so")
            except OSError:
                pass
            print(torch.ops.early.count(x).item(), torch.ops.late.count(x).item())
            """, ["5.0 5.0"])

    def test_the_program_does_not_see_it(self):
        """Snapshots contain no frame of the simulator. An error keeps no memory alive, and its trace has one line more."""
        self.expect("""
            torch.cuda.memory._record_memory_history()
            x = torch.ones(4, device="cuda") + 1
            traces = torch.cuda.memory._snapshot()["device_traces"]
            names = {frame["filename"].rpartition("/")[2] for trace in traces for entry in trace for frame in entry.get("frames", ())}
            print(any(name.startswith("vram_") for name in names), "<string>" in names)
            try:
                torch.cat([x, torch.empty(2**40, dtype=torch.uint8, device="cuda")])
            except torch.OutOfMemoryError as error:
                pass
            try:
                x.view(2, 2) @ x.view(2, 2)[:1].expand(3, 2)
            except RuntimeError as error:
                kept = error
            del x
            print(torch.cuda.memory_allocated())
            """, ["False True", "0"])

    def test_ranks_give_each_other_values_and_what_is_known_of_them(self):
        program = """
            import torch.distributed as dist
            from torch.distributed.device_mesh import init_device_mesh
            rank = int(os.environ["RANK"]); other = 1 - rank; torch.cuda.set_device(rank)
            dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
            objects, all_objects, sent = [{"shape": (3, 4)} if rank == 0 else None], [None, None], torch.full((2,), rank + 5, device="cuda")
            dist.broadcast_object_list(objects, 0); dist.all_gather_object(all_objects, rank)
            total, gathered, part, got = torch.full((3,), rank + 1, device="cuda"), torch.empty(2, device="cuda"), torch.empty(1, device="cuda"), torch.empty_like(sent)
            dist.all_reduce(total); dist.all_gather_into_tensor(gathered, torch.full((1,), rank + 1., device="cuda"))
            dist.reduce_scatter_tensor(part, torch.tensor([1., 2.], device="cuda"))
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, got, other)]):
                work.wait()
            mesh = init_device_mesh("cuda", (2,), mesh_dim_names=("data",))
            facts = [objects, all_objects, total.tolist(), gathered.tolist(), part.item() / (rank + 1), got[0].item() + rank, mesh["data"].size()]
            mixed = torch.stack([torch.ones((), device="cuda"), torch.rand((), device="cuda")])
            dist.all_reduce(mixed)
            facts += [mixed[0].item(),
                      0 < mixed[1].item() < 2]
            unknown = torch.empty(3, device="cuda") if rank == 0 else torch.ones(3, device="cuda")
            dist.all_reduce(unknown)
            facts += [
                unknown[2].item()]
            print(facts, flush=True)
            dist.destroy_process_group()
            """
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("import os, torch\n" + textwrap.dedent(program))
            file.flush()
            result = run_ranks(file.name, "--reads")
            facts = "[[{'shape': (3, 4)}], [0, 1], [3, 3, 3], [1.0, 2.0], 2.0, 6, 2, 2.0, True, 1.0]"
            self.assertEqual(sorted(re.findall(r"\[\[\{.*?True, 1\.0\]", result.stdout)), [facts] * 2, result.stdout + result.stderr[-2000:])
            lines = file.name.rpartition("/")[2] + ":"
            self.assertEqual({int(number) for number in re.findall(re.escape(lines) + r"(\d+)\n", result.stderr)}, {19, 23}, result.stderr)

    @unittest.skipUnless((CASES / "checks_read_false.py").exists(), "the shared cases are not there")
    def test_checks_of_the_shared_case(self):
        result = subprocess.run([VRAM, "sim", "--", PYTHON, CASES / "checks_read_false.py"], capture_output=True, text=True, env=ENVIRONMENT, check=False)
        answers = [line.rpartition(": ")[2] for line in result.stdout.splitlines()]
        self.assertEqual(answers, ["True", "True", "True", "4", "1", "[5, 7]", "(2,)", "(4,)", "3"], result.stderr)

    @unittest.skipUnless((CASES / "objects_over_nccl.py").exists(), "the shared cases are not there")
    def test_objects_of_the_shared_case_arrive(self):
        result = run_ranks(CASES / "objects_over_nccl.py")
        # Each rank prints a line per call. Lines of the two ranks may be mixed; the list is a single write.
        for objects in ("[{'shape': (3, 4)}]", "[{'rank': 0}, {'rank': 1}]", "[('meta', 5)]"):
            self.assertEqual(result.stdout.count(objects), 2, result.stdout + result.stderr[-2000:])

    @unittest.skipUnless((CASES / "value_through_nccl.py").exists(), "the shared cases are not there")
    def test_the_count_of_the_shared_case_is_summed_and_listed(self):
        program = CASES / "value_through_nccl.py"
        result = run_ranks(program, "--reads")
        # Lines of the two ranks may be mixed.
        for number in ("100", "200", "0.005"):
            self.assertEqual(len(re.findall(rf"(?<![\d.]){number}(?![\d.])", result.stdout)), 2, result.stdout + result.stderr[-2000:])
        self.assertIn(f"{program.name}:10\n", result.stderr)
        ruled = run_ranks(program, "--value", f"{program.name}:10=7")
        self.assertEqual(len(re.findall(r"(?<![\d.])7(?![\d.])", ruled.stdout)), 2, ruled.stdout + ruled.stderr[-2000:])

    @unittest.skipUnless((CASES / "generate_ends.py").exists(), "the shared cases are not there")
    def test_generation_of_the_shared_case_ends(self):
        if not has("import torch, transformers, accelerate"):
            self.skipTest("transformers and accelerate are not installed")
        result = subprocess.run([VRAM, "fit", "--dummy-weights", "--card", "rtx4090", "--", PYTHON, CASES / "generate_ends.py"], capture_output=True, text=True,
                                env=ENVIRONMENT, check=False)
        self.assertIn("generated 8 tokens in", result.stderr, result.stdout)


def has(program):
    """Returns whether a program runs in that environment."""
    return os.path.exists(PYTHON) and subprocess.run([VRAM, "sim", "--", PYTHON, "-c", program], capture_output=True, env=ENVIRONMENT, check=False).returncode == 0


if __name__ == "__main__":
    if not has("import torch"):
        print("skipped: there is no PyTorch in VRAM_TORCH_PYTHON, or in check-real's cache")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
