"""vLLM's sleep mode by vram: `vllm serve MODEL --enable-sleep-mode --sleep-mode-backend vram` (vLLM 0.33 or newer). vLLM finds register() by its
entry point, in every process that it starts. See docs/guides/sleep.md.
"""
import functools
import importlib.util
import sys

NAME = "vram"
_WORKER = "vllm.v1.worker.gpu_worker"  # its workers use a device; the front end does not import it


def register():
    """Registers the back end. Nothing else changes before a worker starts whose configuration names it."""
    try:
        from vllm.device_allocator.sleep_mode_backend import SleepModeBackendFactory
    except ImportError:
        return  # an older vLLM, without other back ends than its own
    if NAME in SleepModeBackendFactory._registry:
        return
    SleepModeBackendFactory.register_backend(NAME, "vram_vllm_backend", "VramBackend")
    if _WORKER in sys.modules:
        _watch(sys.modules[_WORKER])
    else:
        sys.meta_path.insert(0, _WorkerImport())


class _WorkerImport:
    """Finds vLLM's worker as usual, and watches it after its import."""

    def find_spec(self, name, path=None, target=None):
        if name != _WORKER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            _watch(module)

        spec.loader.exec_module = exec_module
        return spec


def _watch(module):
    """Replaces PyTorch's allocator before a worker with this back end uses its device."""
    init_device = module.Worker.init_device

    @functools.wraps(init_device)
    def wrapper(self, *args, **kwargs):
        model = self.vllm_config.model_config
        if model.enable_sleep_mode and model.sleep_mode_backend == NAME:
            import vram_vllm_backend

            vram_vllm_backend.begin(self.vllm_config)
        return init_device(self, *args, **kwargs)

    module.Worker.init_device = wrapper
