"""vLLM's part in playing requests (vram_fit_requests.py)."""
import functools
import os

import _vram_shared as shared

requests = shared.part("vram_fit_requests")


def ends_prompts(batch):
    """Returns for each request of a batch of vLLM's whether the step ends its prompt, or computes a token after it."""
    count = batch.num_reqs
    return batch.num_computed_tokens_np[:count] + batch.num_scheduled_tokens[:count] >= batch.prefill_len_np[:count]


def prepare_worker(worker):
    """Called in each worker of vLLM. From here on no values are computed. A rule supplies those that the engine reads: each request gets
    token 0 from a step, unless the step computes only part of its prompt."""
    shared.part("vram_values").stop()
    runner = worker.model_runner
    sample = getattr(runner, "sample", None)
    if sample is None:
        return  # vLLM's older runner has these numbers on the host
    import torch

    zeros = torch.zeros((worker.vllm_config.scheduler_config.max_num_seqs, 1), dtype=torch.int64, device="cpu")

    def sample_by_rule(hidden_states, batch, *args, **kwargs):
        made = sample(hidden_states, batch, *args, **kwargs)
        made[0].sampled_token_ids.copy_(zeros[: batch.num_reqs])
        made[1].copy_(torch.from_numpy(ends_prompts(batch).astype("int32")))
        return made

    runner.sample = sample_by_rule


class VllmPlay:
    """Plays requests in vLLM's engine core. They enter at the same place as those of the front end, and the scheduler's figures are read after each step."""

    def __init__(self, core, recorder, played):
        self.core, self.recorder, self.played = core, recorder, played
        self.scheduler, self.pool = core.scheduler, core.scheduler.kv_cache_manager.block_pool
        self.vocabulary = core.vllm_config.model_config.get_vocab_size()
        self.length = core.vllm_config.model_config.max_model_len
        self.requests, self.over = {}, False
        self.pace = shared.part("vram_fit_pace").of_vllm(core)
        core.model_executor.collective_rpc(prepare_worker)
        self.watch()

    def watch(self):
        schedule, step = self.scheduler.schedule, self.core.step_fn

        def schedule_and_see(*args, **kwargs):
            output = schedule(*args, **kwargs)
            self.see_scheduled(output)
            return output

        def step_and_see():
            outputs, executed = step()
            return self.see_outputs(outputs), executed

        self.scheduler.schedule, self.core.step_fn = schedule_and_see, step_and_see

    def add_due(self):
        """Adds the requests that have arrived. Called before each step."""
        for request in self.played.due():
            if request.prompt_tokens + request.output_tokens > self.length:
                self.played.refuse(request)
                continue
            made, wave = self.core.preprocess_add_request(self.made(request))
            self.core.add_request(made, wave)
            self.requests[made.request_id] = made
            self.played.inside += 1
        if self.played.is_over() and not self.over:
            self.over = True
            self.end()

    def made(self, request):
        from vllm import SamplingParams
        from vllm.v1.engine import EngineCoreRequest

        sampling = SamplingParams(max_tokens=request.output_tokens, ignore_eos=True, detokenize=False)
        values = dict.fromkeys(("mm_features", "pooling_params", "lora_request", "cache_salt", "data_parallel_rank"))
        return EngineCoreRequest(request_id=f"vram-{request.number}", prompt_token_ids=request.prompt(self.vocabulary), sampling_params=sampling,
                                 arrival_time=self.played.now / 1e9, **values)

    def see_scheduled(self, output):
        """Reads the figures when they are highest: blocks have been allocated, and those of finished requests are not yet freed."""
        played, facts = self.played, self.played.facts
        if output.total_num_scheduled_tokens == 0:
            return
        facts["steps"] += 1
        played.most("blocks", self.pool.num_gpu_blocks - 1 - self.pool.get_num_free_blocks(), "blocks_at_ns")
        running, waiting = self.scheduler.get_request_counts()
        played.most("running", running, "running_at_ns")
        played.most("waiting", waiting, "waiting_at_ns")
        for each in output.num_scheduled_tokens:
            self.see_blocks(each)
        read = sum(self.scheduler.requests[each].num_computed_tokens for each in output.num_scheduled_tokens)
        played.now += self.pace.step_ns(output.total_num_scheduled_tokens, read)

    def see_blocks(self, name):
        """Keeps the most blocks that one request held, in all groups of layers. A block before a sliding window is a null block, which is not counted."""
        blocks_of = getattr(self.scheduler.kv_cache_manager, "get_blocks", None)
        if blocks_of is None:  # vLLM before 0.9
            return
        groups = blocks_of(name).blocks
        if sum(map(len, groups)) > self.played.facts["request_blocks"]:
            self.played.most("request_blocks", sum(not block.is_null for group in groups for block in group))

    def see_outputs(self, outputs):
        """Counts what the engine reports, and returns the outputs that are not for requests played here."""
        for made in (outputs or {}).values():
            self.see_stats(made.scheduler_stats)
            for output in [output for output in made.outputs if output.request_id in self.requests]:
                self.see_output(output)
            made.outputs = [output for output in made.outputs if not output.request_id.startswith("vram-")]
            if made.finished_requests:
                made.finished_requests = {each for each in made.finished_requests if not each.startswith("vram-")}
        return outputs

    def see_output(self, output):
        if not output.finished:
            return
        facts, request = self.played.facts, self.requests.pop(output.request_id)
        self.played.inside -= 1
        facts["served"] += output.finish_reason is not None and request.num_output_tokens == request.max_tokens
        facts["prompt_tokens"] += request.num_prompt_tokens
        facts["output_tokens"] += request.num_output_tokens
        facts["preemptions"] += request.num_preemptions
        self.played.most("longest_tokens", request.num_tokens)

    def see_stats(self, stats):
        """Takes the counters that the engine reports to its own statistics."""
        if stats is None:
            return
        facts, cache = self.played.facts, stats.prefix_cache_stats
        facts["prefix_queried_tokens"] += cache.queries
        facts["prefix_hit_tokens"] += cache.hits

    def end(self):
        self.played.facts["pool_blocks"] = self.pool.num_gpu_blocks - 1
        if os.environ.get("VRAM_FIT_PLAN"):
            shared.part("vram_fit_plan").write_vllm(self.core, self.played.folder)
        self.played.end(self.recorder)


def play_vllm(recorder, module):
    """Called with vllm.v1.engine.core."""
    take = module.EngineCoreProc._process_input_queue
    plays = {}

    @functools.wraps(take)
    def _process_input_queue(core):
        if core.vllm_config.parallel_config.data_parallel_size > 1:
            return take(core)  # each of its engines would play all requests
        if core not in plays:
            plays[core] = VllmPlay(core, recorder, requests.Played(os.environ["VRAM_FIT"]))
            recorder.begin_playing()
        plays[core].add_due()
        return take(core)

    module.EngineCoreProc._process_input_queue = _process_input_queue


def modules(recorder):
    return {"vllm.v1.engine.core": functools.partial(play_vllm, recorder)}
