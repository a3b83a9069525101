"""Sleeps and wakes vLLM through vram's back end, which vLLM finds by its entry point: vllm_sleep.py ROW. Needs the folder of vram_torch in VRAM_BUILD."""
import os
import pathlib
import runpy
import sys
import tempfile

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # the engine runs here, so that its graphs and addresses can be seen

from rows import main, row
from vllm_engine import engine, generate

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROUNDS = 1000
LEAST_SHARE = 0.995


def install_entry_point():
    """Makes vram_torch importable, with the entry points of the wheel."""
    wheel = runpy.run_path(str(ROOT / "packaging/wheel/build.py"))
    info = pathlib.Path(tempfile.mkdtemp(prefix="site.")) / "vram-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vram\nVersion: 0\n")
    (info / "entry_points.txt").write_text(wheel["entry_points_text"](wheel["NATIVE_ENTRY_POINTS"]))
    sys.path[:0] = [str(info.parent), os.path.join(os.environ["VRAM_BUILD"], "adapters/torch")]


def addresses(llm):
    """Returns where the weights and the cache are."""
    runner = llm.llm_engine.model_executor.driver_worker.worker.model_runner
    caches = [cache for cache in runner.kv_caches if hasattr(cache, "data_ptr")]
    assert caches
    return [tensor.data_ptr() for tensor in [*runner.model.parameters(), *caches]]


def sleep_often(**options):
    """Sleeps and wakes ROUNDS times. Returns the smallest share of the allocator's memory that a sleep gave back."""
    install_entry_point()
    llm = engine(enable_sleep_mode=True, sleep_mode_backend="vram", **options)
    import torch
    import vram_torch
    from vllm.compilation.counter import compilation_counter

    def used():
        free, total = torch.cuda.mem_get_info()
        return total - free

    assert vram_torch.is_enabled(), "vLLM did not find the back end"
    generate(llm)
    places, awake, captured, shares = addresses(llm), used(), compilation_counter.num_cudagraph_captured, []
    for number in range(ROUNDS):
        reserved, before = torch.cuda.memory_reserved(), used()
        llm.sleep(level=1 + number % 2)
        shares.append((before - used()) / reserved)
        if number % 3 == 0:
            llm.wake_up(tags=["weights"])
            llm.wake_up(tags=["kv_cache"])
        else:
            llm.wake_up()
        if number % 100 == 0:
            generate(llm)
    generate(llm)
    assert addresses(llm) == places
    assert compilation_counter.num_cudagraph_captured == captured, "graphs were captured again"
    assert used() <= awake, (used(), awake)
    print(f"{ROUNDS} rounds: at least {min(shares):.4%} of the allocator's {reserved >> 20} MiB given back; {captured} graphs captured once")
    assert min(shares) >= LEAST_SHARE, min(shares)


@row
def vllm_sleeps_by_vram():
    sleep_often()


@row
def vllm_sleeps_by_vram_eager():
    sleep_often(enforce_eager=True)


if __name__ == "__main__":
    main()
