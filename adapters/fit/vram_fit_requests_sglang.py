"""SGLang's part in playing requests (vram_fit_requests.py). Each rank of a tensor-parallel group has a scheduler of its own, and all take the same
steps; each plays the requests, and the first one writes what was counted."""
import array
import functools
import os

import _vram_shared as shared

requests = shared.part("vram_fit_requests")
OWN = "vram-"  # ids of requests played here begin so


def is_own(request):
    return str(getattr(request, "rid", "")).startswith(OWN)


def can_play(scheduler, request_kind):
    """Returns whether the scheduler has one loop over whole batches, and counts what the answer needs."""
    setting = functools.partial(shared.part("vram_fit_engines").sglang_setting, scheduler.server_args)
    is_one = all((setting(name) or 1) == 1 for name in ("dp_size", "pp_size"))
    is_whole = setting("disaggregation_mode") in (None, "null") and setting("speculative_algorithm") is None
    counts = {"retraction_count", "cached_tokens"} <= set(request_kind.__init__.__code__.co_names)
    return is_one and is_whole and scheduler.is_generation and counts


def prepare_worker(scheduler):
    """From here on no values are computed. A rule supplies those that the engine reads: each request gets token 0 from a step."""
    import torch

    shared.part("vram_values").stop()
    worker = scheduler.tp_worker
    generate = worker.forward_batch_generation
    zeros = torch.zeros(scheduler.max_running_requests + 1, dtype=torch.int64, device="cpu")

    def generate_by_rule(*args, **kwargs):
        result = generate(*args, **kwargs)
        tokens = getattr(result, "next_token_ids", None)
        if tokens is not None:
            tokens.copy_(zeros[: tokens.numel()])
        return result

    worker.forward_batch_generation = generate_by_rule


class SglangPlay:
    """Plays requests in SGLang's scheduler. They enter at the same place as those of the front end, and its figures are read before each batch runs."""

    def __init__(self, scheduler, recorder, played, io):
        self.scheduler, self.recorder, self.played, self.io = scheduler, recorder, played, io
        self.vocabulary = scheduler.model_config.vocab_size
        self.length = min(scheduler.model_config.context_len, scheduler.max_req_len - 1)
        self.page = getattr(scheduler, "page_size", None) or 1
        self.requests, self.others, self.over = {}, [], False
        self.pace = shared.part("vram_fit_pace").of_sglang(scheduler)
        prepare_worker(scheduler)

    def took(self, received):
        """Returns what the scheduler receives before a step: the requests that are due. Those of others, such as the server's own first
        request, would make the steps depend on when they arrive; they wait until the end."""
        self.see_lost()
        generates = (self.io.TokenizedGenerateReqInput, getattr(self.io, "BatchTokenizedGenerateReqInput", ()))
        self.others += [each for each in received if isinstance(each, generates)]
        kept = [each for each in received if not isinstance(each, generates)]
        for request in self.played.due():
            if request.prompt_tokens + request.output_tokens > self.length:
                self.played.refuse(request)
                continue
            self.requests[f"{OWN}{request.number}"] = request
            self.played.inside += 1
            kept.append(self.made(request))
        if self.played.is_over() and not self.over:
            self.over = True
            self.end()
        return kept

    def made(self, request):
        sampling = self.io.SamplingParams(max_new_tokens=request.output_tokens, ignore_eos=True)
        sampling.normalize(None)
        kind, tokens = self.io.TokenizedGenerateReqInput, request.prompt(self.vocabulary)
        values = dict(rid=f"{OWN}{request.number}", input_text=None, input_ids=array.array("q", tokens), input_embeds=None, mm_inputs=None, token_type_ids=None,
                      sampling_params=sampling, return_logprob=False, logprob_start_len=-1, top_logprobs_num=0, token_ids_logprob=None, stream=False)
        known = getattr(kind, "__struct_fields__", None) or getattr(kind, "__dataclass_fields__", values)
        if not hasattr(kind, "__struct_fields__"):  # older versions take a list
            values["input_ids"] = tokens
        return kind(**{name: value for name, value in values.items() if name in known})

    def see_batch(self, batch):
        """Reads the figures when they are highest: the batch has its tokens in the cache, and those of finished requests are not yet freed."""
        played, scheduler = self.played, self.scheduler
        own = {id(each) for each in batch.reqs} | {id(each) for each in scheduler.running_batch.reqs}
        played.facts["steps"] += 1
        played.most("blocks", -(-self.used_tokens() // self.page), "blocks_at_ns")
        played.most("running", len(own), "running_at_ns")
        played.most("waiting", len(scheduler.waiting_queue), "waiting_at_ns")
        computed = batch.extend_num_tokens if batch.forward_mode.is_extend() else len(batch.reqs)
        known = sum(len(each.origin_input_ids) + len(each.output_ids) for each in batch.reqs)
        played.now += self.pace.step_ns(computed, max(known - computed, 0))

    def used_tokens(self):
        """Returns the tokens that requests hold, by the scheduler's own count: without those that only the prefix cache keeps."""
        observer = getattr(self.scheduler, "pool_stats_observer", None)
        if observer is not None:
            return observer.get_pool_stats().full_num_used
        return self.scheduler._get_token_info()[0]

    def see_result(self, batch):
        for each in batch.reqs:
            if each.rid in self.requests and each.finished():
                self.see_finished(each, self.requests.pop(each.rid))

    def see_finished(self, made, request):
        facts, outputs = self.played.facts, len(made.output_ids)
        self.played.inside -= 1
        if outputs != request.output_tokens:
            return  # the engine gave it up
        facts["served"] += 1
        facts["prompt_tokens"] += len(made.origin_input_ids)
        facts["output_tokens"] += outputs
        facts["preemptions"] += made.retraction_count
        facts["prefix_queried_tokens"] += len(made.origin_input_ids)
        facts["prefix_hit_tokens"] += made.cached_tokens
        total = len(made.origin_input_ids) + outputs
        self.played.most("longest_tokens", total)
        self.played.most("request_blocks", -(-total // self.page))

    def see_lost(self):
        """Counts requests that the idle scheduler no longer has: it gives up the last one that does not fit in its cache."""
        scheduler = self.scheduler
        busy = scheduler.waiting_queue or scheduler.running_batch.reqs or scheduler.last_batch or getattr(scheduler, "chunked_req", None)
        if self.requests and not busy:
            self.played.inside -= len(self.requests)
            self.requests.clear()

    def end(self):
        self.played.facts["pool_blocks"] = self.scheduler.max_total_num_tokens // self.page
        if self.recorder.place()[0] != 0:
            return
        if os.environ.get("VRAM_FIT_PLAN"):
            shared.part("vram_fit_plan").write_sglang(self.scheduler, self.played.folder)
        self.played.end(self.recorder)


def play_sglang(recorder, module):
    """Called with sglang.srt.managers.scheduler."""
    kind, plays = module.Scheduler, {}
    take, run, process = kind.process_input_requests, kind.run_batch, kind.process_batch_result

    def play_of(scheduler):
        if scheduler not in plays:
            import sglang.srt.managers.io_struct as io

            plays[scheduler] = None
            if can_play(scheduler, module.Req):
                plays[scheduler] = SglangPlay(scheduler, recorder, requests.Played(os.environ["VRAM_FIT"]), io)
                recorder.begin_playing()
        return plays[scheduler]

    @functools.wraps(take)
    def process_input_requests(scheduler, received):
        play = play_of(scheduler)
        return take(scheduler, received if play is None else play.took(list(received)))

    @functools.wraps(run)
    def run_batch(scheduler, batch, *args, **kwargs):
        if plays.get(scheduler) is not None:
            plays[scheduler].see_batch(batch)
        return run(scheduler, batch, *args, **kwargs)

    @functools.wraps(process)
    def process_batch_result(scheduler, batch, *args, **kwargs):
        made = process(scheduler, batch, *args, **kwargs)
        if plays.get(scheduler) is not None:
            plays[scheduler].see_result(batch)
        return made

    kind.process_input_requests, kind.run_batch, kind.process_batch_result = process_input_requests, run_batch, process_batch_result


def keep_outputs(owner, module):
    """The front end does not know the requests played here, so their outputs are not sent to it."""
    kind = getattr(module, owner)
    send = kind.stream_output

    @functools.wraps(send)
    def stream_output(self, reqs, *args, **kwargs):
        others = [each for each in reqs if not is_own(each)]
        return send(self, others, *args, **kwargs) if others or not reqs else None

    kind.stream_output = stream_output


def modules(recorder):
    return {"sglang.srt.managers.scheduler": functools.partial(play_sglang, recorder),
            "sglang.srt.managers.scheduler_components.output_streamer": functools.partial(keep_outputs, "SchedulerOutputStreamer"),
            "sglang.srt.managers.scheduler_output_processor_mixin": functools.partial(keep_outputs, "SchedulerOutputProcessorMixin")}
