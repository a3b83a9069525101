#!/usr/bin/env python3
"""Tests `vram fit` on programs that do not train: servers, loops of calls, missing weights. Usage: test_serving.py VRAM PROGRAM"""
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

VRAM, PROGRAM = sys.argv[1:3]
HERE = pathlib.Path(__file__).resolve().parent
MIB, GIB = 1 << 20, 1 << 30
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith(("VRAM_", "PYTHON"))}
H100 = 85021163520  # bytes

MODEL = """
import sys, torch
class Model(torch.nn.Module):
    def forward(self, size): torch.free(torch.empty(size << 20))
model, weights = Model(), torch.empty(64 << 20)
"""
ENGINE = """
import sys
from sglang.srt.server_args import ServerArgs
from sglang.srt.model_executor.model_runner import ModelRunner
runner = ModelRunner(ServerArgs(sys.argv[1]), %d, int(sys.argv[2]))
""" % H100


def fit(*arguments, **variables):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{HERE / 'fake'}:{HERE / 'fake/site-packages'}"
        result = subprocess.run([VRAM, "fit", *arguments], capture_output=True, text=True, check=False,
                                env={**ENVIRONMENT, "PYTHONPATH": path, "TMPDIR": folder, **variables})
        assert os.listdir(folder) == [], os.listdir(folder)
    return result


def python(program, *arguments):
    return ("--", sys.executable, "-c", program, *arguments)


def answer_of(*arguments, **variables):
    result = fit("--json", *arguments, **variables)
    assert result.stdout, result.stderr
    return json.loads(result.stdout)


def model_folder(test, *names):
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    for name in names:
        pathlib.Path(folder.name, name).write_text("{}")
    return folder.name


class Calls(unittest.TestCase):
    def test_calls_that_repeat(self):
        answer = answer_of(*python(MODEL + "for i in range(100000): model(32)\n"))
        self.assertEqual((answer["ended"], answer["allocated_bytes"], answer["exit_code"]), ("calls", 96 * MIB, 0))
        self.assertLess(answer["steps"], 120)

    def test_the_end_of_a_short_loop_is_seen(self):
        answer = answer_of(*python(MODEL + "for i in range(60): model(32)\ntorch.empty(512 << 20)\n"))
        self.assertEqual((answer["ended"], answer["allocated_bytes"]), ("end", 576 * MIB))

    def test_a_call_of_a_library_is_whole(self):
        program = MODEL + "import whole_calls\nfor i in range(100): whole_calls.generate(model, 256)\n"
        answer = answer_of(*python(program))
        self.assertEqual((answer["ended"], answer["steps"], answer["allocated_bytes"]), ("calls", 4, 320 * MIB))

    def test_calls_of_growing_size_are_not_alike(self):
        answer = answer_of(*python(MODEL + "for i in range(150): model(i)\n"))
        self.assertEqual((answer["ended"], answer["allocated_bytes"]), ("end", 214 * MIB))

    def test_a_program_that_trains_later_is_not_stopped_before(self):
        program = MODEL + "optimizer = torch.Optimizer()\nfor i in range(300): model(32)\n" \
                          "for i in range(1000):\n    torch.free(torch.empty(128 << 20))\n    optimizer.step()\n"
        answer = answer_of(*python(program))
        self.assertEqual((answer["ended"], answer["steps"], answer["allocated_bytes"]), ("repeats", 4, 192 * MIB))

    def test_as_many_calls_as_asked(self):
        answer = answer_of("--steps", "5", *python(MODEL + "for i in range(100): model(32)\n"))
        self.assertEqual((answer["ended"], answer["steps"]), ("steps", 5))


class Servers(unittest.TestCase):
    def test_it_answers(self):
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            port = place.getsockname()[1]
        program = MODEL + "import http.server\nmodel(32)\nhttp.server.HTTPServer(('127.0.0.1', int(sys.argv[2])), http.server.SimpleHTTPRequestHandler).serve_forever()\n"
        answer = answer_of("--for", "60s", *python(program, "--port", str(port)))
        self.assertEqual((answer["ended"], answer["allocated_bytes"]), ("ready", 96 * MIB))

    def test_it_answers_late(self):
        """It generates a token before each answer."""
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            port = place.getsockname()[1]
        program = MODEL + "import http.server, time\nclass Slow(http.server.SimpleHTTPRequestHandler):\n    def do_GET(self):\n        time.sleep(1.2)\n        super().do_GET()\n" \
                          "model(32)\nhttp.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[2])), Slow).serve_forever()\n"
        self.assertEqual(answer_of("--for", "10s", *python(program, "--port", str(port)))["ended"], "ready")

    def model(self, *names):
        return model_folder(self, *names)

    def test_an_engine(self):
        folder = self.model("config.json")
        result = fit("--json", "--card", "h100,rtx4090,rtx3060", *python(ENGINE + "while True: runner.forward()\n", folder, "2048"))
        answer = json.loads(result.stdout)
        self.assertIn("loads dummy without a tokenizer", result.stderr)
        serving, tokens = answer["serving"], (H100 // 2 - GIB) // (4 * MIB)
        self.assertEqual((answer["ended"], serving["engine"], serving["share_option"], serving["share"]), ("served", "sglang", "mem_fraction_static", 0.5))
        self.assertEqual((serving["weight_bytes"], serving["loading_bytes"], serving["cache_bytes"]), (GIB, 3 * GIB, tokens * 4 * MIB))
        self.assertEqual((serving["tokens"], serving["blocks"], serving["token_bytes"], serving["length"]), (tokens, tokens // 16, 4 * MIB, 2048))
        cards = {card["key"]: card for card in serving["cards"]}
        self.assertEqual({key: card["fits"] for key, card in cards.items()}, {"h100": True, "rtx4090": True, "rtx3060": False})
        half = {card["key"]: card["memory_bytes"] // 2 for card in answer["cards"]}
        for key in cards:  # half of the memory, minus the weights
            self.assertAlmostEqual(cards[key]["tokens"], (half[key] - GIB) // (4 * MIB), delta=1)
        self.assertEqual(result.returncode, 1)
        self.assertEqual((serving["estimated_weight_bytes"], serving["estimated_requested_bytes"], serving["estimated_reserve_bytes"], serving["taken_graph_bytes"]),
                         (GIB, H100 // 2, H100 // 2, 3 * GIB // 4))
        # The engine uses more than its share: the context, and memory to serve.
        beyond = answer["reserved_bytes"] + answer["context_bytes"] + answer["library_bytes"] - H100 // 2
        self.assertAlmostEqual(cards["h100"]["most_share"], 1 - beyond / H100, delta=0.001)

    def test_an_engine_whose_tokens_are_given(self):
        """Its share of the device does not decide how large its cache is."""
        program = ENGINE.replace("ServerArgs(sys.argv[1])", "ServerArgs(sys.argv[1], max_total_tokens=160)") + "while True: runner.forward()\n"
        serving = answer_of("--card", "h100", *python(program, self.model("config.json"), "2048"))["serving"]
        self.assertEqual((serving["tokens"], serving["share_option"], serving["cards"]), (160, "", []))

    def test_an_engine_that_is_killed(self):
        """Workers are killed at the end of a program: their recording from when they were ready counts."""
        folder = self.model("config.json")
        killed = "import os, signal\nrunner.forward()\nos.kill(os.getpid(), signal.SIGKILL)\n"
        result = fit("--json", "--card", "h100", *python(ENGINE + killed, folder, "2048"))
        answer = json.loads(result.stdout)
        self.assertIn("was killed: its recording ends at the point where it was ready to serve", result.stderr)
        self.assertEqual((answer["holdings"][0]["recorded_by"], answer["serving"]["engine"]), ("pytorch", "sglang"))
        self.assertEqual(answer["serving"]["weight_bytes"], GIB)

    def test_text_about_an_engine(self):
        folder = self.model("config.json", "tokenizer.json", "model.safetensors")
        result = fit("-q", "--card", "h100", *python(ENGINE + "for i in range(300): runner.forward()\n", folder, "2048"))
        self.assertEqual(result.returncode, 0, result.stderr)
        told = " ".join(result.stdout.split())
        for part in ("Serving sglang, at most 7 sequences of 2,048 tokens", "Weights 1.0 GiB", "4.0 MiB per token", "concurrent sequences by length: 4 at 2,048, 19 at 512",
                     "Its estimate 1.0 GiB weights, 39.6 GiB left free for activations and graphs, 768.0 MiB taken by graphs; 39.6 GiB stayed free",
                     "Share mem_fraction_static 0.5", "so the cache may be up to 56 tokens smaller",
                     "h100 up to 0.99", "it served 100 steps without a new peak"):
            self.assertIn(part, told)
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80)
        result = fit("-q", "--dummy-weights", *python(ENGINE, folder, "2048"))
        self.assertEqual(result.returncode, 0)

    def first_engine(self, **variables):
        program = f"from vllm.worker.worker import Worker\nworker = Worker({H100}, 2048)\nwhile True: worker.execute_model()\n"
        answer = answer_of("--for", "60s", "--card", "h100", *python(program), **variables)
        serving, blocks = answer["serving"], (H100 // 2 - 3 * GIB) // (64 * MIB)
        self.assertEqual((answer["ended"], serving["engine"], serving["share_option"], serving["share"]), ("served", "vllm", "gpu_memory_utilization", 0.5))
        self.assertEqual((serving["weight_bytes"], serving["profiling_bytes"], serving["cache_bytes"]), (GIB, 3 * GIB, blocks * 64 * MIB))
        self.assertEqual((serving["tokens"], serving["blocks"], serving["length"], serving["sequences"]), (16 * blocks, blocks, 2048, 7))

    def test_the_remedy_for_host_memory(self):
        """Dummy weights are no remedy where the engine uses them already. The program pretends to take 5 GiB of host memory."""
        program = "import resource, types\nresource.getrusage = lambda who: types.SimpleNamespace(ru_maxrss=5 << 20)\n" + ENGINE
        for names, remedy in ((("config.json",), False), (("config.json", "tokenizer.json", "model.safetensors"), True)):
            told = " ".join(fit("-q", *python(program, self.model(*names), "2048")).stdout.split())
            self.assertIn("5.0 GiB of host memory", told)
            self.assertEqual("--dummy-weights avoids the cost" in told, remedy)

    def test_the_first_engine_of_vllm(self):
        self.first_engine()

    def test_the_first_engine_of_vllm_by_its_early_names(self):
        self.first_engine(FAKE_VLLM="0.2")

    def estimate(self, version, subtracts="1"):
        """Returns what the answer says of the engine's own measurements."""
        program = f"from vllm.v1.worker.gpu_worker import Worker\nworker = Worker({H100})\nwhile True: worker.execute_model()\n"
        told = fit("-q", "--for", "60s", "--card", "h100", *python(program), FAKE_VLLM=version, FAKE_SUBTRACTS=subtracts).stdout
        return " ".join(told.split()).partition("Its estimate ")[2].partition("; it asked")[0]

    def test_what_each_version_measured(self):
        """A version's answer has the parts that it keeps, and no zero for the others."""
        self.assertEqual(self.estimate("0.33"), "1.0 GiB weights, 1.1 GiB with context and libraries, 2.0 GiB activations, 512.0 MiB for graphs, 500.0 MiB taken by graphs")
        self.assertEqual(self.estimate("0.19", "0"), "1.0 GiB weights, 64.0 MiB outside of PyTorch, 2.0 GiB activations, 512.0 MiB for graphs, not taken from the cache, 500.0 MiB taken by graphs")
        self.assertEqual(self.estimate("0.11"), "1.0 GiB weights, 500.0 MiB taken by graphs")
        self.assertEqual(self.estimate("0.8"), "")

    def test_options_of_an_engine_that_always_needs_a_tokenizer(self):
        program = "import sys\nfrom vllm.engine.arg_utils import EngineArgs\nEngineArgs(sys.argv[1])\nimport torch\ntorch.empty(1 << 20)\n"
        result = fit("--json", *python(program, self.model("config.json")))
        self.assertIn("loads dummy", result.stderr)
        self.assertNotIn("the recorder: options", result.stderr)

    def test_options_that_are_there_already(self):
        folder = self.model("config.json", "tokenizer.json", "model.safetensors")
        for options, format in (((), "auto"), (("--dummy-weights",), "dummy")):
            result = fit("--json", *options, *python(ENGINE, folder, "2048"))
            self.assertIn(f"loads {format} with one", result.stderr)


PLAYS = "from vllm.v1.engine.core import EngineCoreProc\nEngineCoreProc().run()\n"


class Requests(unittest.TestCase):
    def played(self, shape, code=0, **variables):
        result = fit("--json", "--requests", shape, *python(PLAYS), **variables)
        self.assertEqual(result.returncode, code, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["ended"], "played")
        return answer["played"]

    def test_all_at_once(self):
        """100 blocks: six requests of 16 blocks fit, the seventh waits."""
        played = self.played("prompt=250,output=6,count=10")
        self.assertEqual((played["asked"], played["served"], played["refused"], played["preemptions"]), (10, 10, 0, 0))
        self.assertEqual((played["running"], played["waiting"], played["blocks"], played["pool_blocks"]), (6, 4, 96, 100))
        self.assertEqual((played["prompt_tokens"], played["output_tokens"], played["longest_tokens"], played["steps"]), (2500, 60, 256, 12))

    def test_the_cache_runs_out(self):
        """Prompts of 16 blocks, each of which grows by one: one of six requests is preempted."""
        played = self.played("prompt=256,output=6,count=6")
        self.assertEqual((played["served"], played["running"]), (6, 6))
        self.assertEqual((played["preemptions"], played["blocks"]), (1, 96))

    def test_arrivals(self):
        """A request per second, each served at once: the clock goes on from one to the next."""
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for second in range(5):
                print(json.dumps({"arrival": second, "prompt_tokens": 100, "output_tokens": 10}), file=file)
            file.flush()
            played = self.played(file.name)
        self.assertEqual((played["served"], played["running"], played["waiting"], played["steps"]), (5, 1, 0, 50))
        self.assertAlmostEqual(played["lasted_ns"], 4e9 + 10 * (16 << 30) / 3.352e9 * 1e9 / 1e3, delta=5e6)

    def test_at_most_so_many_at_once(self):
        played = self.played("prompt=16,output=8,count=20,concurrency=3")
        self.assertEqual((played["served"], played["running"], played["waiting"]), (20, 3, 0))

    def test_requests_that_are_too_long(self):
        played = self.played("prompt=1000..1040,output=10,count=50", FAKE_BLOCKS="2001")
        self.assertEqual(played["served"] + played["refused"], 50)
        self.assertGreater(played["served"], 5)
        self.assertGreater(played["refused_tokens"], 1024)

    def test_shared_prefixes_are_found(self):
        self.assertEqual(self.played("prompt=64,output=2,count=10")["prefix_hit_tokens"], 0)
        self.assertEqual(self.played("prompt=64,output=2,count=10,prefix=32")["prefix_hit_tokens"], 9 * 16)

    def test_the_same_on_every_run(self):
        shape = "rate=40/s,prompt=1..900,output=1..100,count=60,prefix=1"
        self.assertEqual(self.played(shape), self.played(shape))

    def test_text(self):
        told = " ".join(fit("-q", "--requests", "prompt=256,output=6,count=6", *python(PLAYS)).stdout.split())
        for part in ("Requests 6 of 6 served, in", "Tokens 1,536 in prompts, 36 in outputs", "KV cache at most 96 of 100 blocks in use (96.0 %)", "Running at most 6",
                     "at most 1 waited", "Preemptions 1: the cache was full", "Virtual time", "all requests were played"):
            self.assertIn(part, told)

    def test_replicas(self):
        """20 users with 1,008 tokens each, 63 blocks: the cache has room for two on one card, and for the seven that the engine runs on another."""
        program = python(ENGINE + PLAYS, model_folder(self), "2048")
        users, cards = ("--requests", "prompt=1000,output=8,count=20,concurrency=20"), ("--card", "a100-40,h100,h200")
        answer = json.loads(fit("--json", *users, *cards, *program, FAKE_BLOCKS="617").stdout)
        self.assertEqual([(card["key"], card["tokens"], card["fits"]) for card in answer["serving"]["cards"]],
                         [("a100-40", 0, False), ("h100", 2119, True), ("h200", 9879, True)])
        self.assertEqual([(card["key"], card["safe_sequences"], card["replicas"]) for card in answer["played"]["cards"]],
                         [("a100-40", None, None), ("h100", 2, 10), ("h200", 7, 3)])
        told = " ".join(fit("-q", *users, *cards, *program, FAKE_BLOCKS="617").stdout.split())
        self.assertIn("Replicas for 20 users at once without a preemption: 10 on h100, 3 on h200", told)
        # The smallest card holds 78.6 GiB. A replay with another card's cache would say otherwise.
        self.assertIn("a100-40 39.5 GiB no, 39.1 GiB short (by its memory share) h100", told)
        answer = json.loads(fit("--json", "--requests", "prompt=1000,output=8,count=20", *cards, *program, FAKE_BLOCKS="617").stdout)
        self.assertEqual([(card["safe_sequences"], card["replicas"]) for card in answer["played"]["cards"]], [(None, None), (2, None), (7, None)])

    def test_blocks_of_windows_count(self):
        """100 blocks. A request holds 16 of them in layers with full attention, and one more in those with a window."""
        for variables, blocks, safe in (({}, 16, 6), ({"FAKE_WINDOW": "1"}, 17, 5)):
            played = self.played("prompt=250,output=6,count=3", **variables)
            self.assertEqual((played["request_blocks"], played["safe_sequences"]), (blocks, safe))

    def test_nothing_that_takes_requests(self):
        for program, variables in (("import torch\ntorch.empty(1 << 20)\n", {}), (PLAYS, {"FAKE_ENGINES": "2"})):
            result = fit("--json", "--for", "5s", "--requests", "prompt=1,output=1", *python(program), **variables)
            self.assertIn("--requests: no engine accepted the requests", result.stderr)
            self.assertIsNone(json.loads(result.stdout)["played"])

    def test_a_plan_is_written_when_all_was_served(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder, "new/plan")
            result = fit("-q", "--write-plan", str(plan), "--requests", "prompt=100,output=4,count=3", *python(PLAYS))
            self.assertEqual(result.returncode, 0, result.stderr)
            size = 101 * 16 * 1024
            self.assertEqual(plan.joinpath("options").read_text(), f"--kv-cache-memory-bytes {size}\n")
            written = json.loads(plan.joinpath("startup_plan/startup_plan_fake.json").read_text())
            self.assertEqual(written, {"kv_cache_memory_bytes": size, "free_memory_baseline": 60 * GIB})
            margin = json.loads(plan.joinpath("margin.json").read_text())
            self.assertEqual((margin["card"], margin["requests_served"]), ("h100", 3))
            self.assertEqual(margin["needed_bytes"] + margin["margin_bytes"], margin["memory_bytes"])
            self.assertGreater(margin["margin_bytes"], 0)
            for part in (f"to use it, set VLLM_ENABLE_STARTUP_PLAN=1 VLLM_CACHE_ROOT={plan}; without it, use --kv-cache-memory-bytes {size}\n", "of the h100 stays free"):
                self.assertIn(part, result.stderr)

    def test_no_plan_of_what_was_not_served(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder, "plan")
            result = fit("-q", "--write-plan", str(plan), "--requests", "prompt=1000..1040,output=10,count=20", *python(PLAYS), FAKE_BLOCKS="2001")
            self.assertEqual((result.returncode, plan.exists()), (1, False), result.stderr)
            self.assertIn("no plan is written: not all requests were served\n", result.stderr)
            result = fit("--write-plan", str(plan), *python("print('ran')\n"))
            self.assertEqual((result.returncode, plan.exists()), (2, False))
            self.assertIn("--write-plan needs --requests", result.stderr)

    def test_mistakes_come_before_the_program_runs(self):
        for shape in ("rate=8", "nothing.jsonl"):
            result = fit("--requests", shape, *python("print('ran')\n"))
            self.assertEqual((result.returncode, "ran" in result.stderr), (2, False), result.stderr)
        result = fit("--requests", "prompt=1,output=1", "--steps", "3", *python("print('ran')\n"))
        self.assertIn("--requests and --steps cannot be used together", result.stderr)


SGLANG = "import sys\nfrom sglang.srt.managers.scheduler import serve\nserve(sys.argv[1], **eval(sys.argv[2]))\n"


class RequestsOfSglang(unittest.TestCase):
    """A cache of 100 pages. The server's own first request waits until the others were played."""

    def run_of(self, shape, *options, engine="{}", **variables):
        return fit(*options, "--requests", shape, *python(SGLANG, model_folder(self, "config.json"), engine), **variables)

    def played(self, shape, **variables):
        result = self.run_of(shape, "--json", **variables)
        answer = json.loads(result.stdout)
        self.assertEqual((result.returncode, answer["ended"]), (0, "played"), result.stderr)
        return answer["played"]

    def test_all_at_once(self):
        played = self.played("prompt=250,output=6,count=10")
        self.assertEqual((played["asked"], played["served"], played["refused"], played["preemptions"]), (10, 10, 0, 0))
        self.assertEqual((played["running"], played["waiting"], played["blocks"], played["pool_blocks"], played["request_blocks"]), (6, 4, 96, 100, 16))
        self.assertEqual((played["prompt_tokens"], played["output_tokens"], played["longest_tokens"], played["steps"]), (2500, 60, 256, 12))

    def test_the_cache_runs_out(self):
        played = self.played("prompt=256,output=6,count=6")
        self.assertEqual((played["served"], played["preemptions"], played["blocks"]), (6, 1, 96))

    def test_arrivals_and_the_same_on_every_run(self):
        shape = "rate=40/s,prompt=20..900,output=1..100,count=60,prefix=20"
        first = self.played(shape)
        self.assertEqual(first, self.played(shape))
        self.assertEqual((first["served"], first["prefix_hit_tokens"] % 16), (60, 0))
        self.assertGreater(first["prefix_hit_tokens"], 16 * 30)
        self.assertGreater(first["lasted_ns"], 10**9)

    def test_requests_that_are_too_long(self):
        """The engine gives all tokens to requests of at most 1,022 tokens."""
        played = self.played("prompt=1000..1040,output=10,count=50", FAKE_TOKENS="32000")
        self.assertEqual((played["served"] + played["refused"], played["refused_tokens"]), (50, 1023))

    def test_a_request_that_the_engine_gives_up(self):
        played = self.played("prompt=64,output=80,count=3", FAKE_TOKENS="128")
        self.assertEqual((played["asked"], played["served"], played["refused"]), (3, 0, 0))

    def test_engines_that_are_not_played(self):
        result = self.run_of("prompt=1,output=1", "--json", "--for", "5s", engine="{'dp_size': 2}")
        self.assertIn("--requests: no engine accepted the requests", result.stderr)
        self.assertIsNone(json.loads(result.stdout)["played"])

    def test_a_plan_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder, "plan")
            result = self.run_of("prompt=100,output=4,count=3", "-q", "--write-plan", str(plan))
            self.assertEqual(result.returncode, 0, result.stderr)
            options = " ".join(["--mem-fraction-static", "0.5", "--cuda-graph-bs", "1", "2", "4"])
            self.assertEqual(plan.joinpath("options").read_text(), options + "\n")
            self.assertIn(f"this engine takes {options}\n", result.stderr)


class Kernels(unittest.TestCase):
    def test_kernels_without_a_compiler(self):
        for name, code in (("sampling", 0), ("trtllm_comm", 0), ("batch_decode", 3)):
            program = f"import torch\nfrom flashinfer.jit.core import JitSpec\ntorch.empty(1 << 20)\nJitSpec({name!r}).build_and_load().top_k(1, 2)\n"
            result = fit(*python(program))
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(f"nvcc not found: FlashInfer's {name} kernels are not compiled" if code == 0 else "its package flashinfer-jit-cache", result.stderr)

    def test_kernels_of_sglang_without_a_compiler(self):
        program = "import sys, torch\nfrom sglang.kernels.jit.utils.compile.loader import load_jit\ntorch.empty(1 << 20)\nload_jit(sys.argv[1], 8).run(1, 2)\n"
        for name, code in (("activation", 0), ("fused_rope", 0), ("hadamard", 3)):
            result = fit(*python(program, name))
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(f"nvcc not found: SGLang's {name} kernels are not compiled" if code == 0 else "set CUDA_HOME to a toolkit that has nvcc", result.stderr)
        with tempfile.TemporaryDirectory() as home:
            pathlib.Path(home, "bin").mkdir()
            pathlib.Path(home, "bin/nvcc").symlink_to("/bin/false")
            result = fit(*python(program, "activation"), CUDA_HOME=home)
            self.assertEqual((result.returncode, "nvcc not found" in result.stderr), (3, False), result.stderr)

    def test_kernels_that_need_the_toolkit_already_when_they_are_imported(self):
        """vLLM 0.20 takes DeepGEMM for usable where its files are, and then its start ends."""
        program = "import torch\nfrom vllm.utils.import_utils import has_deep_gemm\ntorch.empty(1 << 20)\nprint('usable', has_deep_gemm(), has_deep_gemm())\n"
        told = "no CUDA toolkit: vLLM runs without DeepGEMM"
        with tempfile.TemporaryDirectory() as home:
            for variables, usable in (({"CUDA_HOME": home}, True), ({"CUDA_PATH": home}, True), ({"CUDA_HOME": "", "CUDA_PATH": "", "PATH": home}, os.path.exists("/usr/local/cuda"))):
                stderr = fit(*python(program), **variables).stderr
                self.assertIn(f"usable {usable} {usable}\n", stderr)
                self.assertEqual(stderr.count(told), int(not usable))

    def test_norms_without_the_runtime_that_wants_nvidias_driver(self):
        program = "import os, torch\ntorch.empty(1)\nprint('norms', os.environ['FLASHINFER_USE_CUDA_NORM'])\n"
        self.assertIn("norms 1\n", fit(*python(program)).stderr)
        self.assertIn("norms 0\n", fit(*python(program), FLASHINFER_USE_CUDA_NORM="0").stderr)

    def test_kernels_of_an_older_version_without_a_compiler(self):
        """It writes the instructions of a build at once, and calls overloads."""
        program = "import torch\nfrom flashinfer.jit.core import gen_jit_spec\ntorch.empty(1 << 20)\ngen_jit_spec('sampling').build_and_load().top_k.default(1, 2)\n"
        result = fit(*python(program))
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_runtime_in_python_is_replaced_by_the_driver(self):
        program = """
import torch
import cuda.bindings.runtime as runtime
torch.empty(1)
print(*runtime.cudaGetDeviceCount(), *runtime.cudaSetDevice(1), *runtime.cudaGetDevice(), *runtime.cudaSetDevice(7), *runtime.cudaSetDevice(8), runtime.cudaMalloc(8)[0])
"""
        result = fit(*python(program))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("0 2 0 0 1 101 999 801\n", result.stderr)


class Files(unittest.TestCase):
    def test_a_missing_file_is_named(self):
        result = fit(*python("import torch\ntorch.empty(1)\ntorch.load('runs/not-there.pt')\n"))
        self.assertEqual(result.returncode, 3)
        self.assertIn("vram fit: cannot find runs/not-there.pt (torch.load)\n", result.stderr)

    def header(self, **changed):
        """One tensor of 2^20 halves; the file ends where it would begin."""
        values = {"magic": b"GGUF", "version": 3, "tensors": 1, "type": 1, "size": MIB, **changed}
        text = lambda word: struct.pack("<Q", len(word)) + word
        pairs = [text(b"general.alignment") + struct.pack("<II", 4, 64), text(b"names") + struct.pack("<IIQ", 9, 8, 2) + text(b"a") + text(b"bc")]
        info = text(b"weights") + struct.pack("<IQIQ", 1, values["size"], values["type"], 0)
        return values["magic"] + struct.pack("<IQQ", values["version"], values["tensors"], len(pairs)) + b"".join(pairs) + info

    def test_headers_of_gguf(self):
        program = "import os, sys, torch\ntorch.empty(1)\npath = sys.argv[1].rpartition('=')[2]\nprint(os.path.basename(path), os.path.getsize(path), os.stat(path).st_blocks < 100)\n"
        data_begin = -(-len(self.header()) // 64) * 64
        with tempfile.TemporaryDirectory() as folder:
            for names in (("model.gguf",), ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf")):
                for name in names:
                    pathlib.Path(folder, name).write_bytes(self.header())
                for prefix in ("", "--model="):
                    result = fit("--dummy-weights", *python(program, prefix + os.path.join(folder, names[0])))
                    self.assertIn(f"{names[0]} {data_begin + 2 * MIB} True\n", result.stderr)
                    self.assertIn(f"{len(names)} tensors of {len(names) * 2 * MIB} B", result.stderr)
            self.assertEqual(pathlib.Path(folder, "model.gguf").stat().st_size, len(self.header()))

    def test_headers_that_are_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.gguf")
            good = self.header()
            wrong = [b"", b"GGUX" + good[4:], self.header(version=9), self.header(type=77), self.header(size=1 << 62), self.header(tensors=1 << 60)]
            for content in wrong + [good[:length] for length in range(4, len(good), 7)]:
                path.write_bytes(content)
                result = fit("--dummy-weights", *python("import torch\n", str(path)))
                self.assertEqual((result.returncode, result.stderr.count("\n")), (3, 1), result.stderr)
                self.assertIn("model.gguf: ", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
