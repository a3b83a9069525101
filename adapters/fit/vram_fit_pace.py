"""Computes the virtual time of a server's step: the time that its card needs, at its peak rates, to read the weights and the cache once and
to multiply every token with every weight. A real server is slower. The figure orders arrivals and ends of requests, and is the same on
every run."""

# Floating-point operations of 16 bits that a multiprocessor does per clock without sparsity, from NVIDIA's data sheets, by compute capability.
OPERATIONS = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 6): 1024, (8, 7): 1024, (8, 9): 1024, (9, 0): 4096, (10, 0): 8192, (10, 3): 8192,
              (12, 0): 1024, (12, 1): 1024}


class Pace:
    def __init__(self, weight_bytes, element_bytes, token_bytes, read_bytes_per_s, operations_per_s):
        self.weights_ns = weight_bytes / read_bytes_per_s * 1e9
        self.token_ns = 2 * weight_bytes / element_bytes / operations_per_s * 1e9
        self.cached_ns = token_bytes / read_bytes_per_s * 1e9

    def step_ns(self, tokens, cached_tokens):
        """Returns the time of a step that computes `tokens` and reads the cache of `cached_tokens`."""
        return round(max(self.weights_ns + self.cached_ns * cached_tokens, self.token_ns * tokens))


def card(properties):
    """Returns a device's peak rates: bytes per second and operations per second."""
    operations = OPERATIONS.get((properties.major, properties.minor), 1024)
    return (properties.memory_clock_rate * 1000 * 2 * properties.memory_bus_width // 8,
            properties.multi_processor_count * operations * properties.clock_rate * 1000)


def weights_and_card(worker):
    """Called in a worker of vLLM."""
    import torch

    return int(worker.model_runner.model_memory_usage), *card(torch.cuda.get_device_properties(worker.device))


def of_vllm(core):
    config = core.scheduler.kv_cache_config
    block = config.kv_cache_groups[0].kv_cache_spec.block_size
    token_bytes = sum(each.size for each in config.kv_cache_tensors) / config.num_blocks / block
    weight_bytes, read, operations = core.model_executor.collective_rpc(weights_and_card)[0]
    return Pace(weight_bytes, core.vllm_config.model_config.dtype.itemsize, token_bytes, read, operations)


def of_sglang(scheduler):
    """Called in SGLang's scheduler, which runs the model in its own process."""
    import torch

    runner, cache = scheduler.tp_worker.model_runner, scheduler.token_to_kv_pool_allocator.get_kvcache()
    weights = list(runner.model.parameters())
    weight_bytes = sum(each.numel() * each.element_size() for each in weights)
    token_bytes = cache.mem_usage * 2**30 / scheduler.max_total_num_tokens
    return Pace(weight_bytes, runner.dtype.itemsize, token_bytes, *card(torch.cuda.get_device_properties(runner.gpu_id)))
