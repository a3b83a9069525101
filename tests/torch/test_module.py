#!/usr/bin/env python3
"""Tests the Python module without PyTorch: the class Allocator and the functions around it, on a simulated device."""
import ctypes
import json
import os
import random
import threading

import cases
import vram_torch

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def raises(kind, function, *arguments, **named):
    """Returns the exception that the call must raise."""
    try:
        function(*arguments, **named)
    except kind as error:
        assert type(error) is kind, f"{type(error)} instead of {kind}"
        assert "\n" not in str(error) and str(error), f"not one line: {error!r}"
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


@cases.environment(VRAM_SIM="memory=8GiB,devices=2")
def test_sizes():
    made = vram_torch.Allocator()
    sizes = {1: 512, 512: 512, 513: 1024, MIB: MIB, MIB + 1: MIB + 512, 10 * MIB + 1: 10 * MIB + 512}
    for asked, given in sizes.items():
        before = made.memory_allocated()
        address = made.malloc(asked)
        assert address % 512 == 0 and address != 0
        assert made.memory_allocated() - before == given, (asked, made.memory_allocated() - before)
        made.free(address)
        assert made.memory_allocated() == before
    assert made.malloc(0) == 0
    made.free(0)
    for wrong in (-1, 1 << 64):
        raises(ValueError, made.malloc, wrong)
    assert made.device_count() == 2
    assert made.mem_get_info(1) == (8 * GIB, 8 * GIB)
    made.check()


@cases.environment(VRAM_SIM="memory=8GiB")
def test_streams():
    made = vram_torch.Allocator()
    first = made.malloc(MIB, stream=0)
    made.free(first)
    other = made.malloc(MIB, stream=1)  # stream 1 cannot use stream 0's cache
    assert other != first
    assert made.malloc(MIB, stream=0) == first
    base, size = made.base_allocation(first + 5)
    assert base <= first < base + size and size == 2 * MIB
    assert made.base_allocation(12345) == (12345, 0)
    assert made.base_allocation(0) == (0, 0)


@cases.environment(VRAM_SIM="memory=8GiB,manual")
def test_record_stream():
    made = vram_torch.Allocator()
    block = made.malloc(64 * KIB)
    made.record_stream(block, 2)
    made.free(block)
    stats = made.memory_stats()
    assert stats["allocated_bytes.all.current"] == 0 and stats["active_bytes.all.current"] == 64 * KIB
    assert made.malloc(64 * KIB) != block  # the other stream may still use it
    made.empty_cache()  # waits
    assert made.memory_stats()["active_bytes.all.current"] == 64 * KIB
    assert made.malloc(64 * KIB) == block
    raises(vram_torch.Error, made.record_stream, 12345, 2)


@cases.environment(VRAM_SIM="memory=1GiB")
def test_out_of_memory():
    made = vram_torch.Allocator()
    assert made.last_oom() is None and made.last_error() == ""
    kept = made.malloc(700 * MIB)
    text = raises(vram_torch.OutOfMemory, made.malloc, 400 * MIB)
    assert text.startswith("CUDA out of memory. Tried to allocate 400.00 MiB. GPU 0 has a total capacity of 1024.00 MiB of which 324.00 MiB is free. ")
    assert text.endswith(made.last_oom())
    assert "request of 400.00 MiB on device 0" in text and "324.00 MiB of it free" in text
    assert issubclass(vram_torch.OutOfMemory, MemoryError) and issubclass(vram_torch.OutOfMemory, RuntimeError)
    raises(vram_torch.OutOfMemory, made.malloc, (1 << 64) - 1)
    assert made.memory_stats()["num_ooms"] == 1  # more than any device holds is not requested, and not counted
    seen = []
    thread = threading.Thread(target=lambda: seen.append((made.last_error(), vram_torch.last_oom())))
    thread.start()
    thread.join()
    assert seen == [("", made.last_oom())]  # errors are kept per thread, the report per process
    made.free(kept)
    made.free(made.malloc(GIB))
    made.empty_cache()
    made.set_memory_fraction(0.5)
    assert "512.00 MiB" in raises(vram_torch.OutOfMemory, made.malloc, 600 * MIB)
    raises(vram_torch.Error, made.set_memory_fraction, -0.1)


@cases.environment(VRAM_SIM="memory=1GiB,devices=2", PYTORCH_ALLOC_CONF="max_split_size_mb:100")
def test_settings():
    made = vram_torch.Allocator()
    assert made.configuration() == "max_split_size_mb:100"
    assert "character 1" in raises(vram_torch.Error, vram_torch.configure, "max_split_mb:1")
    assert made.configuration() == "max_split_size_mb:100"
    vram_torch.configure("expandable_segments:True")
    assert made.configuration() == "expandable_segments:True"
    long = "roundup_power2_divisions:[" + ",".join("1:2" for _ in range(2000)) + "]"
    made.configure(long)
    assert made.configuration() == long  # longer than the first buffer
    made.check_options("")
    raises(vram_torch.OptionError, made.check_options, "max_split_size_mb:1")
    # PyTorch's exception: RuntimeError in older versions, ValueError in newer ones.
    assert issubclass(vram_torch.OptionError, ValueError) and issubclass(vram_torch.OptionError, RuntimeError)


@cases.environment(VRAM_SIM="memory=1GiB,devices=2")
def test_questions_by_device():
    made = vram_torch.Allocator()
    block = made.malloc(3 * MIB, device=1)
    for device in (1, "cuda:1", type("device", (), {"type": "cuda", "index": 1})()):
        assert vram_torch.memory_allocated(device) == 3 * MIB
        assert vram_torch.memory_reserved(device=device) == 20 * MIB
    for device in (None, 0, "cuda", "cuda:0", type("device", (), {"type": "cuda", "index": None})()):
        assert vram_torch.memory_allocated(device) == 0
    for device in ("cpu", "cuda:x", "cuda1"):
        raises(ValueError, vram_torch.memory_allocated, device)
    raises(vram_torch.Error, vram_torch.memory_stats, 64)
    made.free(block)
    assert vram_torch.max_memory_allocated(1) == 3 * MIB and vram_torch.max_memory_reserved(1) == 20 * MIB
    vram_torch.empty_cache()
    assert vram_torch.memory_reserved(1) == 0
    vram_torch.reset_peak_memory_stats(1)
    assert vram_torch.max_memory_allocated(1) == 0 and vram_torch.max_memory_reserved(1) == 0
    assert vram_torch.memory_stats(1)["allocation.all.allocated"] == 1
    vram_torch.reset_accumulated_memory_stats("cuda:1")
    assert vram_torch.memory_stats(1)["allocation.all.allocated"] == 0
    flat, nested = vram_torch.memory_stats(1), vram_torch.memory_stats_as_nested_dict(1)
    assert list(flat) == sorted(flat) and len(flat) > 80
    for key, value in flat.items():
        inner = nested
        for name in key.split("."):
            inner = inner[name]
        assert inner == value
    assert "device ID  1" in vram_torch.memory_summary(1)
    assert len(vram_torch.memory_summary(1, abbreviated=True)) < len(vram_torch.memory_summary(1))
    assert vram_torch.mem_get_info(1) == (GIB, GIB)
    assert not vram_torch.is_enabled()


class Library:
    """An allocator of the ordinary shared library on the simulator's library, through their own interfaces."""

    def __init__(self, settings):
        self.library = ctypes.CDLL(os.environ["VRAM_SHARED_LIBRARY"])
        options, self.driver, self.allocator = ctypes.create_string_buffer(4096), ctypes.c_void_p(), ctypes.c_void_p()
        simulator = ctypes.CDLL(os.environ["VRAM_SIM_LIBRARY"])
        assert simulator.vram_sim_parse(settings.encode(), options, None) == 0
        assert simulator.vram_sim_create(options, ctypes.byref(self.driver)) == 0
        info = ctypes.create_string_buffer(4096)
        ctypes.c_void_p.from_buffer(info).value = self.driver.value  # the first field of struct vram_create_info
        assert self.library.vram_create(info, ctypes.byref(self.allocator), None) == 0

    def malloc(self, size, device, stream):
        address = ctypes.c_uint64(0)
        status = self.library.vram_malloc(self.allocator, device, ctypes.c_uint64(size), ctypes.c_uint64(stream), ctypes.byref(address))
        return status, address.value

    def free(self, address):
        assert self.library.vram_free(self.allocator, ctypes.c_uint64(address)) == 0

    def record_stream(self, address, stream):
        assert self.library.vram_record_stream(self.allocator, ctypes.c_uint64(address), ctypes.c_uint64(stream)) == 0

    def empty_cache(self):
        assert self.library.vram_empty_cache(self.allocator) == 0

    def stats(self, device):
        stats, text = ctypes.create_string_buffer(1 << 16), ctypes.create_string_buffer(1 << 16)
        assert self.library.vram_get_stats(self.allocator, device, stats) == 0
        assert 0 < self.library.vram_stats_json(stats, text, ctypes.c_size_t(len(text))) < len(text)
        return text.value.decode()


@cases.environment(VRAM_SIM="memory=1GiB,devices=2", VRAM_ALLOC_CONF="garbage_collection_threshold:0.6,max_split_size_mb:200")
def test_the_same_as_the_library():
    made, library = vram_torch.Allocator(), Library(os.environ["VRAM_SIM"])
    draw = random.Random(1)
    live, failed = [], 0
    for step in range(4000):
        kind = draw.random()
        if live and kind < 0.42:
            address = live.pop(draw.randrange(len(live)))
            made.free(address)
            library.free(address)
        elif live and kind < 0.47:
            address, stream = draw.choice(live), draw.choice((1, 2))
            made.record_stream(address, stream)
            library.record_stream(address, stream)
        elif kind < 0.48:
            made.empty_cache()
            library.empty_cache()
        else:
            size = int(2 ** draw.uniform(3, 28.5))
            device, stream = draw.randrange(2), draw.randrange(2)
            status, address = library.malloc(size, device, stream)
            try:
                assert made.malloc(size, device, stream) == address and status == 0
                live.append(address)
            except vram_torch.OutOfMemory:
                assert status == vram_torch.OUT_OF_MEMORY
                failed += 1
        if step % 50 == 0:
            for device in range(2):
                assert made.memory_stats(device) == json.loads(library.stats(device))
    assert failed > 0 and sum(made.memory_stats(device)["num_alloc_retries"] for device in range(2)) >= failed
    for device in range(2):
        assert made.memory_stats(device) == json.loads(library.stats(device))


@cases.environment(VRAM_SIM="memory=8GiB")
def test_threads():
    made = vram_torch.Allocator()
    wrong = []

    def work(number):
        draw, mine = random.Random(number), []
        try:
            for _ in range(1500):
                if mine and draw.random() < 0.5:
                    made.free(mine.pop(draw.randrange(len(mine))))
                else:
                    mine.append(made.malloc(draw.randrange(1, 2 * MIB), stream=number % 3))
            for address in mine:
                made.free(address)
        except Exception as error:  # passed to the main thread
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    stats = made.memory_stats()
    assert stats["allocation.all.current"] == 0 and stats["allocation.all.allocated"] == stats["allocation.all.freed"] > 1000
    made.check()
    made.empty_cache()
    assert made.memory_reserved() == 0


@cases.environment(VRAM_SIM="memory=8GiB")
def test_history():
    made = vram_torch.Allocator()
    made.record_memory_history(stacks="python", skip_actions=["segment_alloc"])
    made.set_memory_metadata("step 1")
    address = made.malloc(3 * MIB)
    made.set_memory_metadata("")
    made.annotate_memory(address, "weights")
    shot = made.snapshot()
    assert set(shot) == {"segments", "device_traces", "allocator_settings", "external_annotations"}
    events = shot["device_traces"][0]
    assert [(event["action"], event["addr"], event["size"]) for event in events] == [
        ("alloc", address, 3 * MIB), ("annotate", address, 3 * MIB)]
    assert [event["user_metadata"] for event in events] == ["step 1", "weights"]
    block = shot["segments"][0]["blocks"][0]
    assert block["address"] == address and block["state"] == "active_allocated" and block["user_metadata"] == "weights"
    assert [frame["name"] for frame in events[0]["frames"]][:3] == ["_call", "malloc", "test_history"]
    assert block["frames"] == events[0]["frames"] and os.path.samefile(events[0]["frames"][2]["filename"], __file__)
    made.free(address)
    made.record_memory_history(enabled=None)
    assert made.snapshot()["device_traces"][0] == []
    assert "malloc" in raises(vram_torch.Error, made.record_memory_history, skip_actions=["malloc"])
    assert "context" in raises(vram_torch.Error, made.record_memory_history, context="most")
    made.check()


def test_no_library():
    path = os.path.join(os.path.dirname(__file__), "no", "such", "libvram_torch.so")
    assert "VRAM_TORCH_LIBRARY" in raises(vram_torch.Error, vram_torch.Allocator, path)
    os.environ["VRAM_TORCH_LIBRARY"] = path
    assert path in raises(vram_torch.Error, vram_torch.memory_stats)
    os.environ["VRAM_TORCH_LIBRARY"] = ""
    assert vram_torch.library_path() == os.path.join(os.path.dirname(vram_torch.__file__), "libvram_torch.so")
    assert vram_torch.Allocator().version()


@cases.environment(VRAM_SIM="memory=1GiB,colour=red")
def test_wrong_simulator():
    made = vram_torch.Allocator()
    assert "colour" in raises(vram_torch.Error, made.malloc, 1)
    assert "colour" in raises(vram_torch.Error, made.memory_stats)
    os.environ["VRAM_SIM"] = "memory=1GiB"
    assert made.malloc(1) != 0


@cases.environment(VRAM_LIBCUDA="/no/such/libcuda.so.1")
def test_no_driver():
    assert "/no/such/libcuda.so.1" in raises(vram_torch.Error, vram_torch.Allocator().malloc, 1)


if __name__ == "__main__":
    cases.main(__file__, globals())
