#!/usr/bin/env python3
"""Small operations of a captured graph are computed at each launch.

Usage: test_values_graphs.py VRAM: with the PyTorch of test_values.py. Skipped without one.
"""
import sys
import unittest

import test_values
from test_values_triton import Triton as Files  # runs programs from a file


class Graphs(unittest.TestCase):
    run_file, expect, lines = Files.run_file, Files.expect, Files.lines

    def test_each_launch_computes(self):
        """A launch computes from the memory's values at that time, in the order of the capture, as a GPU does."""
        result = self.expect("""
            x, w, sums = torch.zeros(4, device="cuda"), torch.arange(4., device="cuda"), torch.zeros(4, device="cuda")
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = x * 2 + w
                sums.add_(y)
                place, any_above = y.argmax(), (y.sum() > 10).any()
                double[(2,)](y, out, count, 4, BLOCK=2)
                softmax = out[:4].softmax(0)
            sums.zero_()
            for i in range(3):
                x.fill_(i)
                graph.replay()
                print(y.tolist(), sums.tolist(), place.item(), any_above.item(), out[:4].tolist(), count.item(), round(softmax.sum().item(), 3))
            """, ["[0.0, 1.0, 2.0, 3.0] [0.0, 1.0, 2.0, 3.0] 3 False [0.0, 2.0, 4.0, 6.0] 0 1.0", "[2.0, 3.0, 4.0, 5.0] [2.0, 4.0, 6.0, 8.0] 3 True [4.0, 6.0, 8.0, 10.0] 2 1.0",
                  "[4.0, 5.0, 6.0, 7.0] [6.0, 9.0, 12.0, 15.0] 3 True [8.0, 10.0, 12.0, 14.0] 6 1.0"], "--reads")
        self.assertIn("every read returned what a GPU would have returned", result.stderr)

    def test_what_is_not_computed_is_unknown_in_its_place(self):
        """A large operation, a library's product and a kernel with a large grid overwrite known values, between operations that are
        computed."""
        program = """
            small, large = torch.ones(8, device="cuda"), torch.ones(1 << 20, device="cuda")
            square = large.view(1024, 1024)
            square @ square
            target = torch.empty(1 << 20, device="cuda")
            part = target[:8]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                part.copy_(small)
                first = part + 1
                torch.mul(large, 2, out=target)
                second = part + 1
                part.copy_(small)
                double[(1 << 10,)](large, target, count, 1 << 20, BLOCK=1024)
                third = part + 1
                part.copy_(small)
                torch.mm(square, square, out=target.view(1024, 1024))
                fourth = part + 1
                drawn, again = torch.rand(4, device="cuda"), torch.rand(4, device="cuda")
            graph.replay()
            print(first[0].item())
            print(second[0].item())
            print(third[0].item())
            print(fourth[0].item())
            print(torch.equal(drawn, again))
            """
        result = self.expect(program, ["2.0", "1.0", "1.0", "1.0", "False"], "--reads")
        self.assertEqual(self.lines(program, result), ["print(second[0].item())", "print(third[0].item())", "print(fourth[0].item())", "print(torch.equal(drawn, again))"], result.stderr)

    def test_callables_and_compiled_functions(self):
        """torch.cuda.make_graphed_callables(), whose backward pass is also a graph, and torch.compile() with captures."""
        self.expect("""
            layer, given = torch.nn.Linear(4, 2, device="cuda"), torch.ones(3, 4, device="cuda", requires_grad=True)
            graphed = torch.cuda.make_graphed_callables(layer, (torch.ones(3, 4, device="cuda", requires_grad=True),))
            made = graphed(given)
            made.sum().backward()
            print(torch.allclose(made, F.linear(given, layer.weight, layer.bias)), torch.allclose(given.grad, layer.weight.sum(0).expand(3, 4)))

            function = torch.compile(lambda x: ((x * 3).softmax(0), (x > 2).sum()), mode="reduce-overhead")
            for i in range(5):
                torch.compiler.cudagraph_mark_step_begin()
                made, above = function(known + i)
                print(torch.allclose(made.cpu(), ((torch.arange(8.) + i) * 3).softmax(0)), above.item())
            """, ["True True", "True 5", "True 6", "True 7", "True 8", "True 8"])

    def test_memory_is_that_of_the_graph(self):
        program = """
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                made = [known * i for i in range(20)]
                del made[5:]
                total = sum(made)
            graph.replay()
            print(torch.cuda.memory_stats()["allocation.all.allocated"], torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved())
            del graph, made, total
            torch.cuda.empty_cache()
            print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
            """
        computed, left = self.run_file(program), self.run_file(program, "--values", "none")
        self.assertEqual((computed.stdout, computed.returncode), (left.stdout, 0), computed.stderr)


if __name__ == "__main__":
    if not test_values.has("import torch, triton"):
        print("skipped: there is no PyTorch with Triton in VRAM_TORCH_PYTHON, or in check-real's cache")
        sys.exit(test_values.SKIPPED)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1, defaultTest="Graphs")
