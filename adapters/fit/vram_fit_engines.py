"""Facts from model servers for `vram fit` during their start: the current phase, the size of the key-value cache and its number of tokens,
and the share of the device they may use. One table covers all engines; for other engines only the recording is used.

The facts are lines of text in PID.facts. Sizes of the server: `serving engine NAME`, `serving share OPTION VALUE` (of the device's memory), `serving tokens N`,
`serving cache_bytes N` (of keys and values, where the engine reports them), `serving block_tokens N`, `serving length N` (the longest sequence),
`serving sequences N` (at once). What it did: `serving graphs COUNT BYTES`, `serving dummy 1` (its weights),
`serving estimated_NAME BYTES` (the engine's own figures, by which it sized its cache; cli/fit_serving.h),
`phase NAME BEGIN END` (microseconds of the recording's clock)."""
import functools
import os
import sys
import time

STANDING = 100  # steps of an engine without a new peak


def now():
    return time.time_ns() // 1000


class Serving:
    """The serving state of this process. Errors here become notes; the engine never sees them."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.inside = 0  # depth of nested phases; during a phase the engine computes for no request
        self.reset()

    def reset(self):
        self.values, self.phases, self.pools = {}, [], set()
        self.captures = self.steps = self.highest_step = 0
        self.highest = (0, 0)

    def lines(self, snapshot_segments):
        lines = [f"serving {name} {value}" for name, value in self.values.items() if value is not None]
        if self.captures:
            inside = sum(segment["total_size"] for segment in snapshot_segments if tuple(segment.get("segment_pool_id", (0, 0))) in self.pools)
            lines.append(f"serving graphs {self.captures} {inside}")
        return lines + [f"phase {name} {begin} {end}" for name, begin, end in self.phases[:64]]

    # --- observations ----------------------------------------------------------------------------------------------------

    def passed(self, phase, begin):
        last = self.phases[-1] if self.phases else None
        if last is not None and last[0] == phase:
            last[2] = now()
        else:
            self.phases.append([phase, begin, now()])

    def step(self):
        """Counts a step that computes for requests."""
        self.steps += 1
        peaks = self.recorder.highest_now()
        if any(new > old for new, old in zip(peaks, self.highest)):
            self.highest, self.highest_step = tuple(map(max, peaks, self.highest)), self.steps
        elif self.steps - self.highest_step == STANDING and os.environ.get("VRAM_FIT_STEPS", "auto") == "auto":
            self.recorder.finish("served")


# --- the engines ------------------------------------------------------------------------------------------------------------------


def is_dummy(options):
    """Returns whether the engine uses dummy weights, by its options for loading."""
    return int("dummy" in str(getattr(options, "load_format", "")).lower())


def vllm_cache(worker, _, config):
    """Returns the facts after vLLM's worker created its cache from `config`."""
    settings = worker.vllm_config
    block = getattr(config.kv_cache_groups[0].kv_cache_spec, "block_size", None) if config.kv_cache_groups else None
    tokens = config.num_blocks * block if block else None
    capacity = getattr(sys.modules.get("vllm.v1.core.kv_cache_utils"), "get_kv_cache_capacity", None)
    if capacity is not None:
        tokens = capacity(settings, config)[0]
    given = settings.cache_config.kv_cache_memory_bytes if hasattr(settings.cache_config, "kv_cache_memory_bytes") else None
    return {"engine": "vllm", "share": None if given else f"gpu_memory_utilization {settings.cache_config.gpu_memory_utilization}", "tokens": tokens,
            "blocks": config.num_blocks, "block_tokens": block, "length": settings.model_config.max_model_len,
            "sequences": settings.scheduler_config.max_num_seqs, "dummy": is_dummy(getattr(settings, "load_config", None))}


def vllm_v0_cache(worker, *_):
    """Returns the facts after the worker of vLLM's first engine, V0, created its cache."""
    cache = worker.cache_config
    tokens = cache.num_gpu_blocks * cache.block_size
    return {"engine": "vllm", "share": f"gpu_memory_utilization {cache.gpu_memory_utilization}", "tokens": tokens, "blocks": cache.num_gpu_blocks,
            "block_tokens": cache.block_size, "length": worker.model_config.max_model_len, "sequences": worker.scheduler_config.max_num_seqs,
            "dummy": is_dummy(getattr(worker, "load_config", worker.model_config))}  # before 0.4 the model's configuration has it


def vllm_estimate(worker, *_):
    """Returns what vLLM measured to size its cache, after it captured its graphs. Versions before 0.11 do not keep it. An activation peak includes
    the estimate for graphs where the worker also keeps what was consumed in total."""
    if not hasattr(worker, "available_kv_cache_memory_bytes"):
        return {}
    graph = getattr(worker, "cudagraph_memory_estimate", None)
    subtracted = graph if graph and getattr(sys.modules.get("vllm.envs"), "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", False) else 0
    consumed, activation = getattr(worker, "total_consumed", None), getattr(worker, "peak_activation_memory", None)
    if consumed is not None and activation is not None:
        activation -= subtracted
    of = {"weight": worker.model_runner.model_memory_usage, "requested": getattr(worker, "requested_memory", None), "cache": worker.available_kv_cache_memory_bytes,
          "consumed": consumed, "outside": getattr(worker, "non_torch_memory", None), "activation": activation, "graph": graph, "subtracted_graph": subtracted}
    return {f"estimated_{name}": int(value) for name, value in of.items() if value is not None}


def vllm_graphs(_, taken, *__):
    return {"taken_graph": int(taken)} if isinstance(taken, int) else {}


def sglang_setting(arguments, name):
    """Returns an option of SGLang's as it was settled. Newer versions keep the given options as they were."""
    settled = getattr(sys.modules.get("sglang.srt.server_args"), "resolution_result", None)
    return getattr(arguments, name, None) if settled is None else settled(arguments, name)


def sglang_cache(runner, *_):
    """Returns the facts after SGLang's runner created its pools, and again after it captured its graphs: it may change the pools then."""
    arguments = runner.server_args
    page = getattr(runner, "page_size", None) or sglang_setting(arguments, "page_size") or 1
    tokens, given = getattr(runner, "max_total_num_tokens", None), sglang_setting(arguments, "max_total_tokens")
    share = None if given and tokens and given <= tokens + page else f"mem_fraction_static {sglang_setting(arguments, 'mem_fraction_static')}"
    pool = getattr(getattr(runner, "token_to_kv_pool", None), "mem_usage", None)
    return {"engine": "sglang", "share": share, "cache_bytes": None if pool is None else round(pool * 2**30), "tokens": tokens, "blocks": tokens // page if tokens else None,
            "block_tokens": page, "length": runner.model_config.context_len, "sequences": getattr(runner, "max_running_requests", None), "dummy": is_dummy(arguments)}


def sglang_estimate(runner, *_):
    """Returns what SGLang measured, after it captured its graphs. It leaves a share of the memory that was free before the weights for
    activations and graphs, without measuring them."""
    gib, facts, share = 2**30, sglang_cache(runner), sglang_setting(runner.server_args, "mem_fraction_static")
    free, weights = getattr(runner, "pre_model_load_memory", None), getattr(runner, "weight_load_mem_usage", None)
    graphs = getattr(runner, "graph_memory_usage", None) or getattr(runner, "graph_mem_usage", None)
    if free is not None and weights is not None:
        facts.update(estimated_weight=int(weights * gib), estimated_requested=int(free * share * gib),
                     estimated_reserve=int(free * (1 - share) * gib))
    if graphs is not None:
        facts["taken_graph"] = int((sum(graphs.values()) if hasattr(graphs, "values") else graphs) * gib)
    return facts


# Module, class, method; its phase ("": none); the function that returns its facts from the object, the result and the arguments; whether it
# is a step.
METHODS = (
    ("vllm.v1.worker.gpu_worker", "Worker", "load_model", "loading", None, False),
    ("vllm.v1.worker.gpu_worker", "Worker", "determine_available_memory", "profiling", None, False),
    ("vllm.v1.worker.gpu_worker", "Worker", "initialize_from_config", "cache", vllm_cache, False),
    ("vllm.v1.worker.gpu_worker", "Worker", "compile_or_warm_up_model", "capture", vllm_estimate, False),
    ("vllm.v1.worker.gpu.model_runner", "GPUModelRunner", "capture_model", "", vllm_graphs, False),
    ("vllm.v1.worker.gpu_model_runner", "GPUModelRunner", "capture_model", "", vllm_graphs, False),
    ("vllm.v1.worker.gpu_worker", "Worker", "execute_model", "", None, True),
    ("vllm.worker.worker", "Worker", "load_model", "loading", None, False),
    ("vllm.worker.worker", "Worker", "determine_num_available_blocks", "profiling", None, False),
    ("vllm.worker.worker", "Worker", "_init_cache_engine", "cache", vllm_v0_cache, False),
    ("vllm.worker.worker", "Worker", "_warm_up_model", "capture", None, False),
    ("vllm.worker.worker", "Worker", "profile_num_available_blocks", "profiling", None, False),  # these four: before 0.4.1
    ("vllm.worker.worker", "Worker", "init_cache_engine", "cache", vllm_v0_cache, False),
    ("vllm.worker.worker", "Worker", "warm_up_model", "capture", None, False),
    ("vllm.worker.worker", "Worker", "execute_model", "", None, True),
    ("vllm.worker.worker_base", "LocalOrDistributedWorkerBase", "execute_model", "", None, True),
    ("sglang.srt.model_executor.model_runner", "ModelRunner", "load_model", "loading", None, False),
    ("sglang.srt.model_executor.model_runner", "ModelRunner", "init_memory_pool", "cache", sglang_cache, False),
    ("sglang.srt.model_executor.model_runner", "ModelRunner", "alloc_memory_pool", "cache", sglang_cache, False),
    ("sglang.srt.model_executor.model_runner", "ModelRunner", "init_cuda_graphs", "capture", sglang_estimate, False),
    ("sglang.srt.model_executor.model_runner", "ModelRunner", "init_device_graphs", "capture", sglang_estimate, False),
    ("sglang.srt.model_executor.model_runner", "ModelRunner", "forward", "", None, True),
)
# Phases after which an engine may serve. vLLM always has both; an early recording of a large model takes seconds.
READY = (("vllm.v1.worker.gpu_worker", "capture"), ("vllm.worker.worker", "capture"), ("sglang.srt.model_executor.model_runner", "cache"), ("sglang.srt.model_executor.model_runner", "capture"))
REHEARSALS = ("profiling", "capture")  # phases in which an engine runs its model on made-up inputs
WANTED_BY_ENGINE = "VRAM_FIT_DUMMY"


def rehearse(phase, more):
    values = sys.modules.get("_vram_values")
    if values is not None and phase in REHEARSALS:
        values.rehearse(more)


def wrap(serving, owner, name, phase, tell, is_step, is_ready):
    method = owner.__dict__.get(name)
    if not callable(method):
        return

    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        begin, result = now(), None
        serving.inside += bool(phase)
        rehearse(phase, 1)
        try:
            result = method(self, *args, **kwargs)
            return result
        finally:
            serving.inside -= bool(phase)
            rehearse(phase, -1)
            try:
                if phase:
                    serving.passed(phase, begin)
                if tell is not None:
                    serving.values.update(tell(self, result, *args, *kwargs.values()))
                if is_ready:
                    serving.recorder.write_early()
                if is_step and serving.values and not serving.inside:
                    serving.step()
            except Exception as error:
                serving.recorder.notes.append(f"{name}: {error!r}")

    setattr(owner, name, wrapper)


def watch_methods(serving, module):
    for place, owner, name, phase, tell, is_step in METHODS:
        if place == module.__name__ and hasattr(module, owner):
            wrap(serving, getattr(module, owner), name, phase, tell, is_step, (place, phase) in READY)


def watch_captures(serving, torch):
    """Counts the memory of graphs, which is in their own pools, for any engine."""
    graph = getattr(torch.cuda, "CUDAGraph", None)
    end = getattr(graph, "capture_end", None)
    if end is None:
        return

    @functools.wraps(end)
    def capture_end(self, *args, **kwargs):
        result = end(self, *args, **kwargs)
        try:
            serving.captures += 1
            serving.pools.add(tuple(self.pool()))
        except Exception as error:
            serving.recorder.notes.append(f"capture_end: {error!r}")
        return result

    graph.capture_end = capture_end


# --- weights that are made up ---------------------------------------------------------------------------------------------------------

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "tekken.json")


def lacks(folder, names):
    """Returns whether the folder has a model's configuration but no file with such an ending."""
    folder = str(folder)
    return os.path.isfile(os.path.join(folder, "config.json")) and not any(name.endswith(names) for name in os.listdir(folder))


def settle_engine(arguments, model, recorder):
    """Sets an engine's own options for dummy weights, if none exist or --dummy-weights is given."""
    if arguments.load_format != "dummy" and (os.environ.get(WANTED_BY_ENGINE) == "1" or lacks(model, WEIGHTS)):
        arguments.load_format = "dummy"
        recorder.say("the engine uses dummy weights, as with --load-format dummy")
    if getattr(arguments, "skip_tokenizer_init", True) is False and lacks(model, TOKENIZERS):
        arguments.skip_tokenizer_init = True
        recorder.say("the model has no tokenizer: the engine runs as with --skip-tokenizer-init")


# Module, class, the attribute with the model's name.
ARGUMENTS = (("vllm.engine.arg_utils", "EngineArgs", "model"), ("sglang.srt.server_args", "ServerArgs", "model_path"))


def watch_arguments(recorder, module):
    """Settles the options before the engine reads them: SGLang resolves them once, others at the end of their creation."""
    for place, owner, model in ARGUMENTS:
        if place != module.__name__ or not hasattr(module, owner):
            continue
        kind = getattr(module, owner)
        name = "resolve_once" if hasattr(kind, "resolve_once") else "__post_init__"
        settle = getattr(kind, name)

        @functools.wraps(settle)
        def settle_first(self, *args, settle=settle, model=model, **kwargs):
            try:
                if not getattr(self, "_resolution_finished", False):
                    settle_engine(self, getattr(self, model), recorder)
            except Exception as error:
                recorder.notes.append(f"options of the engine: {error!r}")
            return settle(self, *args, **kwargs)

        setattr(kind, name, settle_first)


def modules(recorder, serving):
    """Maps each module to the function to call after its import."""
    wanted = {place: functools.partial(watch_methods, serving) for place, *_ in METHODS}
    wanted.update({place: functools.partial(watch_arguments, recorder) for place, *_ in ARGUMENTS})
    return wanted
