"""Announces launches of CUDA graphs to vram, so that it can lend their memory (option lend_graph_pools).

vram_torch.enable() and configure() use this module. It changes torch.cuda.CUDAGraph.replay(), with which make_graphed_callables(),
torch.compile(mode="reduce-overhead"), vLLM and SGLang launch their graphs.
"""
import functools


def announce_launches(torch, made, conf):
    """Makes each graph announce its launches, if the option string names the option. Calling it again changes nothing."""
    graph = getattr(torch.cuda, "CUDAGraph", None)
    if "lend_graph_pools" not in (conf or "") or graph is None or hasattr(graph, "vram_announces"):
        return
    graph.vram_announces = True
    begin_before, replay_before = graph.capture_begin, graph.replay

    @functools.wraps(begin_before)
    def capture_begin(self, *arguments, **named):
        self.vram_device = torch.cuda.current_device()
        return begin_before(self, *arguments, **named)

    @functools.wraps(replay_before)
    def replay(self):
        device = getattr(self, "vram_device", None)
        if device is None:  # PyTorch itself refuses to launch it
            return replay_before(self)
        pool = self.pool()
        made.launch_begin(device, pool, torch.cuda.current_stream(device).cuda_stream)
        try:
            return replay_before(self)
        finally:
            made.launch_end(device, pool)

    graph.capture_begin, graph.replay = capture_begin, replay
