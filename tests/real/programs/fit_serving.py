"""Tests the answers of `vram fit` about servers, and about models of which only a configuration exists: fit_serving.py VRAM ROW FOLDER
(the environment's)."""
import json
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time

import gguf_header
from cuda_toolkit import use_toolkit
from small_llama import CONFIG

PROGRAMS = pathlib.Path(__file__).parent
GIB, MIB = 1 << 30, 1 << 20
MOST_SECONDS, MOST_HOST_BYTES = 180, 4 * 10**9
LLAMA_7B = {**CONFIG, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
            "head_dim": 128, "max_position_embeddings": 4096}
PARAMETERS_7B = 6738415616

GENERATE = """
import sys, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16).to("cuda")
ids = torch.ones(1, 128, dtype=torch.long, device="cuda")
for i in range(1000):
    model.generate(ids, max_new_tokens=32, do_sample=False, eos_token_id=None)
"""
INITIALISE = """
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for i in range(24)]).cuda()
with torch.no_grad():
    for i in range(1000):
        model(torch.empty(16, 8192, device="cuda"))
"""
LLM = """
import sys
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    llm = LLM(model=sys.argv[1], max_model_len=1024)
    for i in range(1000):
        llm.generate([{"prompt_token_ids": [1, 5, 9, 11]}], SamplingParams(max_tokens=8, ignore_eos=True, detokenize=False, temperature=0), use_tqdm=False)
"""


COUNTERS = """
import json, sys
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    llm = LLM(model=sys.argv[1], max_model_len=1024, enforce_eager=True, num_gpu_blocks_override=BLOCKS, disable_log_stats=False, load_format="dummy",
              skip_tokenizer_init=True)
    prompts = [{"prompt_token_ids": [7] * 32 + [11 + i] * 268} for i in range(COUNT)]
    llm.generate(prompts, SamplingParams(max_tokens=100, ignore_eos=True, detokenize=False), use_tqdm=False)
    counters = {each.name: each.value for each in llm.get_metrics() if hasattr(each, "value")}
    print("counters", json.dumps(counters))
"""


def model(config):
    folder = tempfile.mkdtemp(prefix="model.")
    pathlib.Path(folder, "config.json").write_text(json.dumps(config))
    return folder


def fit(vram, *arguments, code=0):
    """Returns the answer, and prints its cost."""
    begun = time.monotonic()
    run = subprocess.run([vram, "fit", "--json", "-q", *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = json.loads(run.stdout)
    print(f"{time.monotonic() - begun:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of processors, {used.ru_maxrss / 1e6:.2f} GB of the host, "
          f"needs {answer['need_bytes'] / GIB:.2f} GiB, ended: {answer['ended']}\n{answer['serving']}")
    assert run.returncode == code, run.returncode
    assert used.ru_maxrss * 1024 < MOST_HOST_BYTES
    return answer


LARGE = """
import sys, tempfile, torch
from transformers import AutoModelForCausalLM, GPTBigCodeConfig
folder = tempfile.mkdtemp()
GPTBigCodeConfig(vocab_size=49152, n_embd=6144, n_layer=int(sys.argv[1]), n_head=48, architectures=["GPTBigCodeForCausalLM"], dtype="bfloat16").save_pretrained(folder)
AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, device_map="auto")
"""


def fit_dummy_7b(vram, _):
    """A Llama of 7 billion parameters from its config.json, in little host memory, generating until its calls repeat."""
    answer = fit(vram, "--dummy-weights", "--card", "h100,rtx4090", "--value", "__call__()=0,0,0,1", "--", sys.executable, "-c", GENERATE, model(LLAMA_7B))
    assert answer["ended"] == "calls" and answer["steps"] < 10, (answer["ended"], answer["steps"])
    assert abs(answer["roles"]["parameters"] - 2 * PARAMETERS_7B) < 64 * MIB, answer["roles"]
    assert answer["serving"]["token_bytes"] == 2 * 2 * 32 * 4096 and 12 * GIB < answer["allocated_bytes"] < 13.5 * GIB


def fit_dummy_large(vram, _):
    """One and a half times the host's memory: the kernel would refuse to map it as one file."""
    layer = 2 * (12 * 6144 * 6144 + 13 * 6144) - 2 * 2 * 5952 * 6144  # bytes in bf16, with one head of keys and values
    layers = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 2, 150 << 30) // layer
    answer = fit(vram, "--dummy-weights", "--card", "b200", "--", sys.executable, "-c", LARGE, layers)
    assert answer["ended"] == "end" and answer["fits"], answer
    assert abs(answer["roles"]["parameters"] - layers * layer) < GIB, (answer["roles"], layers * layer)


def fit_dummy_initialisation(vram, _):
    """6.4 GB that PyTorch would initialise on the CPU."""
    answer = fit(vram, "--dummy-weights", "--", sys.executable, "-c", INITIALISE)
    assert answer["ended"] == "calls" and 24 * 8192 * 8193 * 4 <= answer["allocated_bytes"] < 24 * 8192 * 8193 * 4 + 256 * MIB, answer["allocated_bytes"]


def engine(answer, most):
    serving = answer["serving"]
    assert (serving["engine"], serving["share_option"], serving["length"]) == ("vllm", "gpu_memory_utilization", 1024), serving
    assert serving["blocks"] * serving["block_tokens"] == serving["tokens"] and serving["token_bytes"] == 2 * 2 * 4 * 512
    assert 64 * MIB < serving["weight_bytes"] < serving["profiling_bytes"] < 2 * GIB
    cards = {card["key"]: card for card in serving["cards"]}
    assert cards["h100"]["fits"] and 0.92 < cards["h100"]["most_share"] < most, cards
    assert abs(cards["h100"]["tokens"] - serving["tokens"]) < serving["tokens"] / 1000
    return serving


def fit_vllm_serve(vram, _):
    """Runs the server until it answers, with its defaults: torch.compile, graphs."""
    use_toolkit()
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    answer = fit(vram, "--card", "h100,rtx4090", "--", "vllm", "serve", model(CONFIG), "--max-model-len", "1024", "--port", port)
    serving = engine(answer, 1)
    assert answer["ended"] == "ready" and serving["graphs"] > 10 and serving["graph_bytes"] > MIB, answer["ended"]


def fit_vllm_script(vram, _):
    """Generates until a round has no new peak."""
    use_toolkit()
    answer = fit(vram, "--card", "h100,rtx4090", "--", sys.executable, "-c", LLM, model(CONFIG))
    engine(answer, 1)
    assert answer["ended"] == "served", answer["ended"]


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


def serve(vram, folder, requests, *options, code=0):
    return fit(vram, "--card", "h100", "--requests", requests, *options[:options.index("--")], "--", "vllm", "serve", folder, "--max-model-len", "1024",
               "--enforce-eager", "--port", free_port(), *options[options.index("--") + 1:], code=code)


def fit_vllm_requests(vram, _):
    """Requests that the cache has no room for: the same on every run, and as many preemptions and hits as vLLM counts itself."""
    folder, blocks, count = model(CONFIG), 401, 24
    shape = f"prompt=300,output=100,count={count},prefix=32"
    answers = [serve(vram, folder, shape, "--", "--num-gpu-blocks-override", blocks) for _ in range(2)]
    first, second = (answer["played"] for answer in answers)
    assert first == second, (first, second)
    assert first["served"] == count and first["preemptions"] > 0 and 0.9 * blocks < first["blocks"] <= first["pool_blocks"] == blocks - 1, first
    script = COUNTERS.replace("BLOCKS", str(blocks)).replace("COUNT", str(count))
    run = subprocess.run([vram, "sim", "--card", "h100", "--", sys.executable, "-c", script, folder], stdout=subprocess.PIPE, text=True, check=True,
                         env={**os.environ, "VLLM_USE_FLASHINFER_SAMPLER": "0"})  # the sampler does not matter to the scheduler
    own = json.loads(next(line for line in run.stdout.splitlines() if line.startswith("counters ")).partition(" ")[2])
    print(own)
    for name, value in (("num_preemptions", first["preemptions"]), ("prefix_cache_hits", first["prefix_hit_tokens"]), ("prefix_cache_queries", first["prefix_queried_tokens"]),
                        ("generation_tokens", first["output_tokens"])):
        assert own[f"vllm:{name}"] == value, (name, own[f"vllm:{name}"], value)


def fit_vllm_plan(vram, _):
    """The engine starts from the plan of a simulated run, without profiling, with as many blocks."""
    folder, plan = model(CONFIG), tempfile.mkdtemp(prefix="plan.")
    first = serve(vram, folder, "prompt=100..500,output=20,count=50", "--write-plan", plan, "--")
    written = [path.name for path in pathlib.Path(plan).rglob("*") if path.is_file()]
    assert "options" in written and any(name.startswith("startup_plan_") for name in written), written
    os.environ.update(VLLM_ENABLE_STARTUP_PLAN="1", VLLM_CACHE_ROOT=plan)
    second = serve(vram, folder, "prompt=100..500,output=20,count=50", "--")
    assert second["serving"]["blocks"] == first["serving"]["blocks"] > 1000, (first["serving"], second["serving"])
    # With the bytes given, the engine does not measure, and its share of the device does not matter.
    assert (first["serving"]["share_option"], second["serving"]["share_option"]) == ("gpu_memory_utilization", ""), second["serving"]
    option = pathlib.Path(plan, "options").read_text().split()
    os.environ["VLLM_ENABLE_STARTUP_PLAN"] = "0"
    third = serve(vram, folder, "prompt=100..500,output=20,count=50", "--", *option)
    assert third["serving"]["blocks"] == first["serving"]["blocks"]


def serve_by_sglang(vram, folder, requests, *options):
    """Returns the answer, and what the server printed."""
    use_toolkit()
    os.environ["SGLANG_JIT_CACHE_DIR"] = os.path.join(sys.prefix, "jit")  # compiling takes minutes of CPU time
    own = options.index("--")
    command = [vram, "fit", "--json", "--card", "h100", "--requests", requests, *options[:own], "--", sys.executable, "-m", "sglang.launch_server", "--model-path", folder,
               "--context-length", "1024", "--port", free_port(), *options[own + 1:]]
    run = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(run.stderr)
    answer = json.loads(run.stdout)
    print(f"needs {answer['need_bytes'] / GIB:.2f} GiB\n{answer['serving']}\n{answer['played']}")
    assert (run.returncode, answer["ended"]) == (0, "played"), run.returncode
    return answer, run.stderr


def printed(log, name):
    return [int(found) for found in re.findall(rf"{re.escape(name)}: (\d+)", log)]


def fit_sglang_requests(vram, _):
    """Requests that the cache has no room for: the same on every run, with as many retractions as SGLang prints."""
    folder, tokens, count = model(CONFIG), 6400, 80
    # The scheduler takes more requests than its cache has room for if it expects few tokens of each.
    os.environ["SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION"] = "16"
    options = (f"prompt=100,output=40..400,count={count}", "--", "--max-total-tokens", tokens, "--disable-cuda-graph")
    answers = [serve_by_sglang(vram, folder, *options) for _ in range(2)]
    first, second = (answer["played"] for answer, _ in answers)
    assert first == second, (first, second)
    assert first["served"] == count and first["preemptions"] > 0 and 0.9 * tokens < first["blocks"] <= first["pool_blocks"] == tokens, first
    for _, log in answers:
        assert sum(printed(log, "#retracted_reqs")) == first["preemptions"], (printed(log, "#retracted_reqs"), first)


def fit_sglang_plan(vram, _):
    """The engine starts from the plan of a simulated run, with as many tokens. With another share it has another number. It prints as many hits as the
    answer has."""
    folder, plan = model(CONFIG), tempfile.mkdtemp(prefix="plan.")
    shape = "prompt=100..500,output=20,count=50,prefix=64"
    first, log = serve_by_sglang(vram, folder, shape, "--write-plan", plan, "--", "--chunked-prefill-size", "2048")
    assert sum(printed(log, "#cached-token")) == first["played"]["prefix_hit_tokens"] > 0, (printed(log, "#cached-token"), first["played"])
    options = pathlib.Path(plan, "options").read_text().split()
    assert "--mem-fraction-static" in options and any(option.startswith("--cuda-graph-bs") for option in options), options
    tokens = [serve_by_sglang(vram, folder, shape, "--", *given)[0]["serving"]["tokens"] for given in (options, ())]
    assert tokens[0] == first["serving"]["tokens"] != tokens[1], (tokens, first["serving"])


def fit_gguf_header(vram, folder):
    """llama.cpp: weights, cache and scratch of a model of which only the header exists."""
    path = os.path.join(tempfile.mkdtemp(prefix="model."), "model.gguf")
    weights = gguf_header.write(path)
    assert os.path.getsize(path) < MIB
    node = os.path.join(folder, "bin/node")
    answer = fit(vram, "--dummy-weights", "--card", "h100,rtx3060", "--", node, PROGRAMS / "llama_model.mjs", folder, path, 4096)
    serving = answer["serving"]
    assert abs(serving["weight_bytes"] - weights) < MIB and serving["cache_bytes"] == 4096 * 2 * 2 * 32 * 4096, serving
    assert answer["allocated_bytes"] > weights + serving["cache_bytes"]


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1], sys.argv[3])
    print("ok")
