"""Tests vram's back end for vLLM's sleep mode with a module that has vLLM's seams, on the simulated driver. No PyTorch, no vLLM."""
import ctypes
import os
import sys
import types
import unittest

os.environ["VRAM_SIM"] = "memory=1GiB,backed"

import vram_torch
import vram_vllm

MIB = 1 << 20


class Factory:
    """The registry of vLLM 0.33."""

    _registry = {}

    @classmethod
    def register_backend(cls, name, module_path, class_name):
        if name in cls._registry:
            raise ValueError(name)
        cls._registry[name] = (module_path, class_name)


def module(name, **names):
    made = types.ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made
    return made


class Worker:
    def __init__(self, backend, ranks=1):
        model = types.SimpleNamespace(enable_sleep_mode=True, sleep_mode_backend=backend)
        self.vllm_config = types.SimpleNamespace(model_config=model, parallel_config=types.SimpleNamespace(world_size=ranks))

    def init_device(self):
        return "device"


class Backend:
    def __init__(self):
        self._state = "RUNNING"

    def state(self):
        return self._state


class Vllm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        module("torch", cuda=types.SimpleNamespace(is_initialized=lambda: False))
        module("vllm")
        module("vllm.device_allocator")
        cls.cumem = module("vllm.device_allocator.cumem", CuMemAllocator=type("CuMemAllocator", (), {"instance": None}))
        module("vllm.device_allocator.sleep_mode_backend", SleepModeBackendFactory=Factory, SleepModeBackend=Backend)
        cls.worker = module("vllm.v1.worker.gpu_worker", Worker=Worker)
        cls.enabled = []
        vram_torch.enable = lambda conf=None, **_: cls.enabled.append(conf)
        vram_vllm.register()
        vram_vllm.register()  # each process may load plugins several times

    def setUp(self):
        self.enabled.clear()
        self.cumem.CuMemAllocator.instance = None

    def test_only_a_named_back_end_changes_the_worker(self):
        self.assertEqual(Factory._registry, {"vram": ("vram_vllm_backend", "VramBackend")})
        self.assertEqual(Worker("cumem").init_device(), "device")
        self.assertEqual((self.enabled, self.cumem.CuMemAllocator.instance), ([], None))
        self.assertEqual(Worker("vram").init_device(), "device")
        self.assertEqual(self.enabled, ["sleepable:True"])
        self.assertIsNotNone(self.cumem.CuMemAllocator.instance)

    def test_everything_sleeps_and_wakes(self):
        import vram_vllm_backend

        made = vram_torch.allocator()
        made.configure("sleepable:True")
        Worker("vram").init_device()
        backend, held = vram_vllm_backend.VramBackend(), self.cumem.CuMemAllocator.instance
        with held.use_memory_pool(tag="weights"):
            weights = made.malloc(40 * MIB)
        with held.use_memory_pool(tag="kv_cache"):
            cache = made.malloc(60 * MIB)
        graphs = made.malloc(30 * MIB)
        for address, text in ((weights, b"weights"), (graphs, b"graphs")):
            ctypes.memmove(address, text, len(text))
        free, reserved = vram_torch.mem_get_info(0)[0], vram_torch.memory_reserved(0)
        for level in (1, 1, 2):
            backend.suspend(level)
            self.assertEqual(vram_torch.mem_get_info(0)[0] - free, reserved)
            self.assertEqual(backend.state(), "SUSPENDED")
            self.assertEqual({s.tag: s.level for s in vram_torch.sleepers()}, {"weights": "keep" if level == 1 else "discard", "kv_cache": "discard", "": "keep"})
            backend.resume(["weights"])
            self.assertEqual([s.tag for s in vram_torch.sleepers()], ["kv_cache"])
            self.assertEqual(backend.state(), "SUSPENDED")
            self.assertEqual(ctypes.string_at(graphs, 6), b"graphs")
            if level == 1:
                self.assertEqual(ctypes.string_at(weights, 7), b"weights")
            backend.resume()
            self.assertEqual((vram_torch.sleepers(), backend.state()), ([], "RUNNING"))
        backend.suspend()
        more = made.malloc(MIB)  # a request wakes what has no tag
        self.assertEqual({s.tag for s in vram_torch.sleepers()}, {"weights", "kv_cache"})
        backend.resume()
        for address in (weights, cache, graphs, more):
            made.free(address)
        made.check()

    def test_ranks_keep_what_they_share(self):
        import vram_vllm_backend

        Worker("vram", ranks=2).init_device()
        self.assertEqual(self.enabled, [None])
        made, backend = vram_torch.allocator(), vram_vllm_backend.VramBackend()
        with self.cumem.CuMemAllocator.instance.use_memory_pool(tag="weights"):
            weights = made.malloc(40 * MIB)
        other = made.malloc(30 * MIB)
        ctypes.memmove(other, b"other", 5)
        backend.suspend()
        self.assertEqual([s.tag for s in vram_torch.sleepers() if s.live_bytes], ["weights"])
        self.assertEqual(ctypes.string_at(other, 5), b"other")
        backend.resume()
        for address in (weights, other):
            made.free(address)

    def test_flags(self):
        from vram_vllm_backend import VramBackend as backend

        flags = (backend.is_supported(), backend.preserves_communicators(), backend.preserves_compiled_artifacts(), backend.preserves_graphs_with_communicators())
        self.assertEqual((flags, backend.supports_durable_storage()), ((True,) * 4, False))


if __name__ == "__main__":
    unittest.main()
