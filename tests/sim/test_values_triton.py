#!/usr/bin/env python3
"""Triton kernels with a small grid are computed, including those written by torch.compile().

Usage: test_values_triton.py VRAM: with the PyTorch of test_values.py. Skipped without one, or without Triton.
"""
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import test_values

HEAD = """
import torch, triton, triton.language as tl
from torch.nn import functional as F

@triton.jit
def twice(x):
    y = x * 2
    return y

@triton.jit
def double(x_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < n, other=0.0)
    tl.store(out_ptr + places, twice(x), mask=places < n)
    tl.atomic_add(count_ptr, tl.sum((x > 3).to(tl.int32), 0))

count, out = torch.zeros(1, dtype=torch.int32, device="cuda"), torch.empty(8, device="cuda")
known = torch.arange(8., device="cuda")
"""


class Triton(unittest.TestCase):
    def run_file(self, program, *options):
        """Triton reads a kernel's source from its file. The compilation caches are new for each run, because cached results are not
        measured again."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program.py"
            path.write_text(HEAD + textwrap.dedent(program))
            environment = {**test_values.ENVIRONMENT, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TRITON_CACHE_DIR": f"{folder}/triton"}
            return subprocess.run([test_values.VRAM, "sim", *options, "--", test_values.PYTHON, path], capture_output=True, text=True, env=environment, check=False)

    def expect(self, program, printed, *options):
        result = self.run_file(program, *options)
        self.assertEqual(result.stdout.split("\n"), [*printed, ""], result.stderr[-2000:])
        return result

    def lines(self, program, result):
        """Returns the lines of the program that --reads lists."""
        first = HEAD.count("\n") + 1
        return [line.strip() for number, line in enumerate(textwrap.dedent(program).split("\n"), first) if f".py:{number}\n" in result.stderr]

    def test_known_operands_give_facts(self):
        result = self.expect("""
            double[(2,)](known, out, count, 8, BLOCK=4)
            print(out.tolist(), count.item(), known.tolist())
            double[lambda meta: (1,)](known[4:], out, count, 4, BLOCK=4)
            print(out.tolist(), count.item())
            """, ["[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0] 4 [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]", "[8.0, 10.0, 12.0, 14.0, 8.0, 10.0, 12.0, 14.0] 8"], "--reads")
        self.assertIn("every read returned what a GPU would have returned", result.stderr)

    def test_a_rehearsal_is_not_computed(self):
        """A graph computes at its replay what was captured in a rehearsal."""
        program = """
            import sys
            rehearse, graph, graphed = sys.modules["_vram_values"].rehearse, torch.cuda.CUDAGraph(), torch.empty(8, device="cuda")
            rehearse(1)
            double[(2,)](known, out, count, 8, BLOCK=4)
            with torch.cuda.graph(graph):
                double[(2,)](known, graphed, count, 8, BLOCK=4)
            rehearse(-1)
            print(out[3].item())
            graph.replay()
            print(graphed.tolist())
            double[(2,)](known, out, count, 8, BLOCK=4)
            print(out.tolist())
            """
        doubled = "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]"
        result = self.expect(program, ["0.0", doubled, doubled], "--reads")
        self.assertEqual(self.lines(program, result), ["print(out[3].item())"], result.stderr)

    def test_levels_go_element_by_element(self):
        program = """
            half = torch.where(known < 4, known, torch.empty(8, device="cuda"))
            double[(2,)](half, out, count, 8, BLOCK=4)
            print(out[:4].tolist())
            print(half[1].item())
            print(out[5].item())
            print(count.item())
            double[(1,)](torch.rand(8, device="cuda"), out, count, 8, BLOCK=8)
            print(0 < out.max().item() < 2)
            """
        result = self.expect(program, ["[0.0, 2.0, 4.0, 6.0]", "1.0", "0.0", "0", "True"], "--reads")
        self.assertEqual(self.lines(program, result), ["print(out[5].item())", "print(count.item())", "print(0 < out.max().item() < 2)"], result.stderr)

    def test_a_thread_compiles_meanwhile(self):
        """The interpreter patches Triton's language for all threads. The kernel is compiled again for each block size."""
        self.expect("""
            import threading
            @triton.jit
            def smaller(x_ptr, n, BLOCK: tl.constexpr):
                width = min(n - tl.program_id(0), BLOCK)
                tl.store(x_ptr, min(width, tl.load(x_ptr)))
            errors, running = [], True
            def launch():
                while running:
                    double[(2,)](known, out, count, 8, BLOCK=4)
            thread = threading.Thread(target=launch)
            thread.start()
            for block in range(40):
                try:
                    smaller.warmup(torch.float32, 100, BLOCK=block + 1, grid=(1,))
                except Exception as error:
                    errors.append(error)
            running = False
            thread.join()
            print(*errors[:1], out.tolist()[7])
            """, ["14.0"])

    def test_short_real_numbers(self):
        """Triton's interpreter has no arithmetic for bfloat16."""
        self.expect("""
            @triton.jit
            def mixed(x_ptr, out_ptr, sums_ptr, BLOCK: tl.constexpr):
                places = tl.arange(0, BLOCK)
                x = tl.load(x_ptr + places)
                z = (x.to(tl.int32) * 3).to(tl.bfloat16) + tl.full([BLOCK], 1.5, tl.bfloat16)
                tl.store(out_ptr + places, tl.where(x > 4, tl.maximum(x, 3.0) - x / 2, z))
                wide = tl.expand_dims(x, 1) + tl.zeros([BLOCK, BLOCK], tl.bfloat16)
                tl.store(sums_ptr + places, tl.dot(wide, tl.trans(wide)).sum(0))

            x = torch.arange(16., device="cuda").bfloat16()
            made, sums = torch.empty_like(x), torch.empty(16, device="cuda")
            mixed[(1,)](x, made, sums, BLOCK=16)
            print(torch.equal(made, torch.where(x > 4, x.clamp(min=3) - x / 2, (x.int() * 3).bfloat16() + 1.5)), torch.equal(sums, 16 * x.float().sum() * x.float()))
            """, ["True True"])

    def test_a_measurement_computes_its_first_calls(self):
        """do_bench() repeats a function thousands of times, and its operands stay known."""
        program = """
            import sys
            from triton.testing import do_bench
            double[(2,)](known, out, count, 8, BLOCK=4)
            interpreter, runs = sys.modules["_vram_values_interpreter"].Interpreter, []
            run = interpreter.run
            interpreter.run = lambda self, *args: (runs.append(1), run(self, *args))[1]
            do_bench(lambda: double[(2,)](known.clone(), out, count, 8, BLOCK=4), warmup=1, rep=2)
            print(0 < len(runs) <= 4, out[1].item(), known[3].item(), (known + out).sum().item())
            """
        result = self.expect(program, ["True 2.0 3.0 84.0"], "--reads")
        self.assertEqual(self.lines(program, result), [])

    def test_what_cannot_be_computed_is_unknown(self):
        """A grid that is too large, invalid memory, and a branch on an unknown value."""
        program = """
            @triton.jit
            def branch(x_ptr, out_ptr):
                if tl.load(x_ptr) > 1:
                    tl.store(out_ptr, 7.0)

            @triton.jit
            def far(table_ptr, out_ptr):
                tl.store(out_ptr, tl.load(tl.load(table_ptr).to(tl.pointer_type(tl.float32))))

            big = torch.ones(1 << 20, device="cuda")
            double[(1 << 10,)](big, big, count, 1 << 20, BLOCK=1024)
            print(big[5].item())
            branch[(1,)](torch.empty(1, device="cuda"), out)
            print(out[0].item())
            branch[(1,)](known[2:], out[1:])
            print(out[1].item())
            far[(1,)](torch.full((1,), 64, device="cuda"), out[2:])
            print(out[2].item())
            print(torch.cuda.memory_allocated() > 0)
            """
        result = self.expect(program, ["0.0", "0.0", "7.0", "0.0", "True"], "--reads")
        self.assertEqual(self.lines(program, result), ["print(big[5].item())", "print(out[0].item())", "print(out[2].item())"], result.stderr)

    def test_a_store_at_an_unknown_place(self):
        """It makes its tensor unknown, which then reads as zeros; the kernel's other results are known."""
        self.expect("""
            @triton.jit
            def count_token(token_ptr, counts_ptr, length_ptr):
                token = tl.load(token_ptr)
                tl.store(counts_ptr + token, tl.load(counts_ptr + token) + 1)
                tl.store(length_ptr, tl.load(length_ptr) + 4)

            counts, length = torch.full((16,), 3, device="cuda"), torch.full((1,), 5, device="cuda")
            token = torch.empty(1, dtype=torch.int64, device="cuda")
            count_token[(1,)](token, counts, length)
            print(length.item(), counts.tolist() == [0] * 16)
        """, ["9 True"])

    def test_code_that_only_reads(self):
        """A kernel that is not computed, because its grid is large, leaves what it only reads as it was."""
        self.expect("""
            @triton.jit
            def copy(table_ptr, out_ptr):
                tl.store(out_ptr + tl.program_id(0), tl.load(table_ptr))

            table, out = torch.full((1,), 7, device="cuda"), torch.full((5000,), 3, device="cuda")
            copy[(5000,)](table, out)
            print(table.item(), out[0].item())
        """, ["7 0"])

    def test_compiled_functions(self):
        """Matches the host: reductions, scans, sorting, libdevice functions, half precision, gathers."""
        program = """
            def functions(x, w, i):
                return (F.layer_norm(x, (64,), w, w) + x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5), (x + 1).softmax(-1), F.cross_entropy(x, i[:8].long()),
                        x.sin() + x.tanh() + x.exp() + x.erf() + x.atan() + x.expm1() + x.abs().log1p() + torch.lgamma(x.abs() + 1) + F.gelu(x), x.bfloat16() * 2, x.half() * 2,
                        x.argmax(-1), x.max(-1).values, x.std(-1), (x > 2).any(), (i > 5).sum(), i.cumsum(0), x.cumsum(-1), (-x[:2]).sort(-1).values,
                        i // 3, i % 5, i << 2, (i.float() / 2).round(), torch.remainder(i, -4), x[i[:8].long() % 8] + 1,
                        (torch.arange(8, device=x.device)[None] <= torch.arange(8, device=x.device)[:, None]) & (x[:, :8] < 2))

            given = torch.linspace(-2, 2, 512).view(8, 64) * 1.3, torch.linspace(0, 1, 64), torch.arange(64, dtype=torch.int32)
            for one, other in zip(torch.compile(functions)(*(tensor.cuda() for tensor in given)), functions(*given)):
                torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-3)
            print("same")
            """
        self.assertEqual(self.lines(program, self.expect(program, ["same"], "--reads")), [])

    def test_memory_is_that_of_the_kernels(self):
        program = """
            @torch.compile
            def f(x):
                return (x.softmax(-1) * 2).sum()
            for _ in range(3):
                double[(2,)](known, out, count, 8, BLOCK=4)
                f(known)
            print(torch.cuda.memory_stats()["allocation.all.allocated"], torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
            """
        computed, left = self.run_file(program), self.run_file(program, "--values", "none")
        self.assertEqual((computed.stdout, computed.returncode), (left.stdout, 0), computed.stderr)


if __name__ == "__main__":
    if not test_values.has("import torch, triton"):
        print("skipped: there is no PyTorch with Triton in VRAM_TORCH_PYTHON, or in check-real's cache")
        sys.exit(test_values.SKIPPED)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
