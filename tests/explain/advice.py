#!/usr/bin/env python3
"""Advice needs grounds: every row of recordings/analyze/advice.def appears in the report's text, its JSON, the page's answers and those for agents if a
recording has its grounds, and does not appear if one of them is removed.

usage: advice.py VRAM [SOURCE_DIR]
"""
import gzip
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../judgement"))
import edited
import surfaces
from causes import CALL, GIB, MIB, TRAIN, Device, Host, a_fraction, another_process, cache_of_a_stream, few_blocks_in_the_way, frames, maximum_of_a_pool, pinned_all, pinned_with_others, pinned_buffers_kept, pinned_in_a_container, pool_of_a_graph, pools_of_the_driver, run, waits_for_a_stream

C = [("solver.c", 90, "main")]
OPTIMIZER = [("/env/torch/optim/adamw.py", 5, "step"), *TRAIN]
STATE = frames(("/env/torch/optim/adamw.py", 6, "_init_group"), *OPTIMIZER)
MODULE = "/usr/lib/python3/site-packages/torch/nn/modules/module.py"


def module(line, file="model.py", name="forward"):
    return frames((file, line, name), CALL, *TRAIN)


def apply(device, size=64 * MIB):
    return device.take(size, frames((MODULE, 934, "_apply"), *TRAIN))


def others(device, *frame_names):
    """Returns the history with every stack replaced by a C one."""
    for event in device.events:
        event["frames"] = frames(*(frame_names or C))
    for block in device.blocks.values():
        block[2] = frames(*(frame_names or C))
    for segment in device.segments.values():
        segment["frames"] = frames(*(frame_names or C))
    return device


def changed(maker, change):
    def made():
        device = maker()
        change(device)
        return device

    return made


def setting(maker, **settings):
    return changed(maker, lambda device: device.settings.update(settings))


def served(hours=12, until=12, frees=False):
    """Keeps a block every ten minutes, until an hour; or frees the one before."""
    device, kept = Device(), []
    for i in range(int(hours * 6)):
        device.time += 600 * 1000000
        if i < until * 6:
            kept.append(device.take(MIB, frames(*C)))
        if frees and len(kept) > 1:
            device.give(kept.pop(0))
        device.give(device.take(2 * MIB, frames(("solver.c", 91, "main"))))
    return device


def without_setting(maker, *names):
    return changed(maker, lambda device: [device.settings.pop(name) for name in names])


# --- recordings of training ------------------------------------------------------------------------------------------------------------------------


def layers(device, count=8, size=100 * MIB, keep=True):
    return [device.take(size, module(11)) for _ in range(count)]


def training(frames_of=module, fail=True, room=50 * MIB):
    """Parameters, six layers called from one line, and one larger tensor."""
    device = Device()
    apply(device)
    for i in range(6):
        device.take(96 * MIB + i * 512, frames(("model.py", 11, "forward"), CALL, ("model.py", 40, "forward"), CALL, *TRAIN))
        device.take(8 * MIB + i * 512, frames(("model.py", 12, "forward"), CALL, ("model.py", 40, "forward"), CALL, *TRAIN))
    device.take(400 * MIB, frames_of(50))
    if fail:
        device.fail(200 * MIB, room, frames_of(51))
    return device


def in_c():
    return others(training())


def of_a_solver():
    """Python, but no pass of any model."""
    return others(training(), ("solve.py", 12, "run"))


def in_cxx():
    """A backward pass is visible, but no Python."""
    device = others(training(), ("??", 0, "at::native::mm(at::Tensor const&)"), *C)
    device.events[1]["frames"] = frames(("??", 0, "torch::autograd::Engine::evaluate_function(...)"), *C)
    return device


def equal_layers():
    device = Device()
    apply(device)
    layers(device)
    device.fail(200 * MIB, 50 * MIB, module(11))
    return device


def scores(name="attention", size=4096 * 4096 * 2 * 16):
    device = Device()
    apply(device)
    device.take(100 * MIB, module(11))
    device.fail(size, 60 * MIB, module(60, f"{name}.py"))
    return device


def optimizer(foreach=True, fail=True):
    device = Device()
    for _ in range(4):
        apply(device)
    for _ in range(8):
        device.take(64 * MIB, STATE)
    stack = frames(("/env/torch/optim/adamw.py", 40, "_multi_tensor_adamw" if foreach else "_single_tensor_adamw"), *OPTIMIZER)
    passing = [device.take(64 * MIB, stack) for _ in range(4)]
    if fail:
        device.fail(64 * MIB, 10 * MIB, stack)
    for address in passing:
        device.give(address)
    device.take(MIB, module(11))
    return device


def autocast(frame="at::autocast::cached_cast(c10::ScalarType, at::Tensor const&)"):
    device = Device()
    for _ in range(4):
        apply(device, 128 * MIB)
    for _ in range(4):
        device.take(64 * MIB, [{"filename": "??", "line": 0, "name": frame}, *module(11)])
    device.fail(64 * MIB, 10 * MIB, module(12))
    return device


def stateless():
    device = Device()
    apply(device, 500 * MIB)
    device.fail(64 * MIB, 10 * MIB, frames(*OPTIMIZER))
    return device


def gradients():
    """Two backward passes without an optimizer step in between."""
    device = Device()
    apply(device, 100 * MIB)
    for i in range(2):
        inside = device.take(50 * MIB, module(11))
        gradient = device.take(100 * MIB, [])
        device.give(inside)
        if i == 1:
            device.give(gradient)
    device.take(150 * MIB, module(11))
    device.fail(60 * MIB, 10 * MIB, module(12))
    return device


def gradients_dropped():
    device = Device()
    apply(device, 100 * MIB)
    inside = device.take(50 * MIB, module(11))
    gradient = device.take(100 * MIB, [])
    device.give(inside)
    device.give(gradient)
    device.take(150 * MIB, module(11))
    device.fail(60 * MIB, 10 * MIB, module(12))
    return device


def keys_and_values(file="/env/transformers/cache_utils.py"):
    device = Device()
    apply(device)
    for i in range(20):
        passing = device.take(5 * MIB, module(50))
        device.take((10 + i) * MIB, frames((file, 4, "update"), ("model.py", 50, "forward"), CALL, *TRAIN))
        device.give(passing)
    device.fail(30 * MIB, 4 * MIB, module(50))
    return device


def steps(kept=0, graph=False, validate=False, caller=TRAIN):
    """Six steps of a model whose layers the backward pass frees or not; each keeps `kept` more."""
    device = Device()
    apply(device, 60 * MIB)
    for _ in range(12):
        inside = [device.take(30 * MIB, frames(("model.py", line, "forward"), CALL, *caller)) for line in (11, 12, 13)]
        gradient = device.take(6 * MIB, [])
        if not graph:
            for address in inside:
                device.give(address)
        device.give(gradient)
        if kept:
            device.take(kept, frames(("train.py", 31, "remember"), *TRAIN))
    if validate:
        for _ in range(8):
            device.take(90 * MIB, frames(("model.py", 11, "forward"), CALL, ("train.py", 90, "validate")))
    device.fail(60 * MIB, 10 * MIB, frames(("model.py", 11, "forward"), CALL, *caller))
    return device


# --- and of allocators -----------------------------------------------------------------------------------------------------------------------------


def in_pieces(path="train.py", **settings):
    device = Device(**settings)
    stack = frames((path, 20, "step"))
    wholes = [device.take(200 * MIB, stack) for _ in range(7)]
    for address in wholes:
        device.give(address, back=False)
    for address in wholes:
        device.put(address, 110 * MIB, stack)
    device.fail(300 * MIB, 86 * MIB, stack)
    return device


def other_class():
    device = Device()
    small = [device.take(2 * MIB, frames(*TRAIN)) for _ in range(300)]
    for address in small:
        device.give(address, back=False)
    recording = device.recording

    def as_small():
        made = recording()
        for segment in made["segments"]:
            segment["segment_type"] = "small"
        return made

    device.fail(400 * MIB, 50 * MIB, frames(*TRAIN))
    device.recording = as_small
    return device


def busy_stream():
    device = Device()
    large = device.take(5 * GIB, frames(("data.py", 30, "copy_ahead"), *TRAIN), stream=7)
    device.take(2 * MIB, frames(("data.py", 31, "index"), *TRAIN), stream=7)
    device.take(2 * GIB, frames(("train.py", 3, "load"), *TRAIN))
    device.give(large, stream=7, back=False)
    device.fail(4 * GIB, 500 * MIB, frames(("train.py", 9, "step"), *TRAIN))
    return device


def nobody_told():
    device = another_process()
    del device.settings["vram_accounts_0"]
    return device


def own_overhead():
    device = another_process()
    device.settings["vram_accounts_0"] = {"device": 0, "context_bytes": 5 * GIB, "module_bytes": 8 * MIB, "self_bytes": 8 * GIB, "has_self": True, "processes": []}
    return device


def unknown_holder():
    """The holder was searched for, and is neither another process nor this one."""
    device = another_process()
    device.settings["vram_accounts_0"] = {"device": 0, "context_bytes": 300 * MIB, "module_bytes": 8 * MIB, "self_bytes": 2 * GIB, "has_self": True, "processes": []}
    return device


def whole_program_under_a_limit():
    device = Device(vram_run_process=4711, vram_device_0_total_bytes=8 * GIB)
    device.event("alloc", device.next, GIB, frames(*C))
    device.fail(2 * GIB, 6 * GIB, frames(*C))
    return device


def log_of_requests():
    """Neither the driver's free memory nor the device's size is known."""
    device = Device()
    device.take(GIB, frames(*C))
    device.fail(8 * GIB, 0, frames(*C))
    del device.events[-1]["device_free"]
    return device


def waiting(pending=True):
    device = Device()
    for _ in range(5):
        batch = device.take(256 * MIB, frames(("data.py", 12, "prefetch"), *TRAIN))
        device.give(batch, pending=pending)
    return device


def without_completions():
    """Nothing waits: completions of frees were not recorded."""
    device = waiting(pending=False)
    device.events = [event for event in device.events if event["action"] != "free_completed"]
    return device


def pinned_blocks(given):
    host = Host()
    for _ in range(4):
        host.take(80 * MIB, frames(("data.py", 11, "pin"), *TRAIN), given=given)
    return host


def side_streams(used=False):
    device = Device()
    device.take(GIB, frames(*TRAIN))
    for stream in (7, 8, 9):
        block = device.take(200 * MIB, frames(("data.py", 30, "copy"), *TRAIN), stream=stream)
        if not used:
            device.give(block, stream=stream, back=False)
    return device


def side_streams_in_c():
    return others(side_streams())


def expanded_in_pieces():
    return in_pieces(expandable_segments=True)


def as_program(maker):
    return setting(maker, vram_run_process=4711)


# Code of a row -> its sentence, recordings that have its grounds, and for each of its grounds recordings that lack only that one.
# JSON has a remedy's name, and the sentence of any other row.
ROWS = {
    "RELEASE": (r"in each step, free what train\.py:31:remember", [lambda: steps(kept=64 * MIB)], [lambda: steps()]),
    "DETACH": (r"detach values that are kept across steps", [lambda: steps(graph=True)], [lambda: steps(), lambda: others(steps(graph=True))]),
    "NO_GRAD": (r"under torch\.no_grad\(\)", [lambda: steps(validate=True)], [lambda: steps(), lambda: others(steps(validate=True))]),
    "ATTENTION": (r"scaled_dot_product_attention", [scores], [lambda: scores("dense"), lambda: scores(size=512 * MIB + 512), lambda: others(scores())]),
    "FOREACH": (r"foreach=False, or with fused=True", [optimizer], [lambda: optimizer(foreach=False), lambda: others(optimizer())]),
    "CASTS": (r"keep the weights in bf16", [autocast], [lambda: autocast("at::native::to(at::Tensor const&)"), lambda: others(autocast())]),
    "RECOMPUTE": (r"recompute what .*torch\.utils\.checkpoint", [training], [in_c, of_a_solver, in_cxx]),
    "BATCH": (r"reduce the batch to at most", [training, in_cxx], [in_c, of_a_solver]),
    "CHUNKS": (r"compute the largest tensors in 8 parts", [training, in_cxx], [equal_layers, in_c, of_a_solver]),
    "GRADIENTS_NONE": (r"zero_grad\(set_to_none=True\)", [gradients], [gradients_dropped, lambda: others(gradients())]),
    "STATE_8BIT": (r"optimizer's state in 8 bits", [optimizer], [stateless]),
    "STATE_OFFLOAD": (r"optimizer's state in the host's memory", [optimizer], [stateless]),
    "SHARDING": (r"\(FSDP", [stateless], [lambda: others(stateless(), ("solve.py", 12, "run")), lambda: others(stateless(), ("serve.c", 3, "load_model"))]),
    "KV_CACHE": (r"reduce the KV cache to at most", [keys_and_values], [lambda: keys_and_values("model.py")]),
    "GROWTH HOST": (r"free pinned buffers when their copies are done", [pinned_buffers_kept], [lambda: steps(kept=64 * MIB)]),
    "LIMIT HOST": (r"a container's memory, `ulimit -l`", [pinned_in_a_container], [a_fraction]),
    "OUTSIDE HOST": (r"what else uses the system's memory", [pinned_with_others], [another_process]),
    "FULL HOST|PYTHON": (r"prefetch_factor", [pinned_all], [lambda: others(pinned_all()), training]),
    "FULL HOST": (r"pin less at once: smaller buffers, or memory that is not pinned", [lambda: others(pinned_all())], [in_c]),
    "DRIVER_POOLS PYTHON": (r"backend:native", [lambda: others(pools_of_the_driver(), *TRAIN)], [pools_of_the_driver]),
    "DRIVER_POOLS 0": (r"request sizes that repeat(?!;)", [pools_of_the_driver], [in_c]),
    "LIMIT OWN_POOL": (r"raise the pool's maxSize", [maximum_of_a_pool], [whole_program_under_a_limit]),
    "LIMIT LIMIT": (r"raise the limit, or reduce what the program needs", [a_fraction], [without_setting(a_fraction, "per_process_memory_fraction")]),
    "LIMIT ALLOCATOR": (r"set_per_process_memory_fraction", [without_setting(a_fraction, "per_process_memory_fraction")], [whole_program_under_a_limit]),
    "LIMIT 0": (r"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", [whole_program_under_a_limit], [a_fraction]),
    "FRAGMENTED WINDOWS": (r"PyTorch ignores expandable_segments on Windows", [lambda: in_pieces("C:\\work\\train.py", vram_device_0_total_bytes=GIB)], [in_pieces]),
    "FRAGMENTED EXPANDED": (r"expandable segments are on already", [expanded_in_pieces], [in_pieces]),
    "FRAGMENTED ALLOCATOR": (r"(?<!already; )release memory between phases, or allocate long-lived tensors first(?!;)", [in_pieces], [expanded_in_pieces, lambda: in_pieces("C:\\work\\train.py")]),
    "PINNED 0": (r"allocate long-lived tensors before the large temporary ones", [few_blocks_in_the_way], [in_pieces]),
    "OTHER_STREAMS IDLE_STREAM": (r"a new stream for each task leaves a cache", [cache_of_a_stream], [busy_stream]),
    "OTHER_STREAMS 0": (r"allocate on one stream, or empty the cache", [busy_stream], [in_c]),
    "OTHER_POOLS 0": (r"segments of the other size class", [other_class], [in_c]),
    "PRIVATE_POOLS 0": (r"drop graphs or pools that are no longer replayed", [pool_of_a_graph], [in_c]),
    "PENDING 0": (r"so that record_stream is not needed", [waits_for_a_stream], [in_c]),
    "ROOM_UNKNOWN 0": (r"the pool or memory resource has a maximum", [log_of_requests], [in_c]),
    "OUTSIDE OTHERS": (r"end the other processes", [another_process], [nobody_told, own_overhead, unknown_holder]),
    "OUTSIDE OWN": (r"this process holds it \(contexts", [own_overhead], [another_process, unknown_holder]),
    "OUTSIDE ROCM": (r"`rocm-smi --showpids` lists", [lambda: edited.rocm_with_others()], [unknown_holder, lambda: edited.ascend_with_others()]),
    "OUTSIDE ASCEND": (r"`npu-smi info` lists", [lambda: edited.ascend_with_others()], [unknown_holder, lambda: edited.rocm_with_others()]),
    "OUTSIDE ACCOUNTS": (r"`nvidia-smi` lists other processes(?!;)", [unknown_holder], [nobody_told, own_overhead]),
    "OUTSIDE 0": (r"`vram run` names the libraries of this one", [nobody_told], [another_process]),
    "slow_leak": (r"Memory leaks at 1 call site: \S+ MiB more per hour\..*vram leaks --serving", [served], [lambda: served(hours=0.9), lambda: served(until=6), lambda: served(frees=True)]),
    "waits_for_streams": (r"waited for another stream at event .*marked with record_stream", [waiting], [lambda: waiting(pending=False), without_completions]),
    "pinned_rounding": (r"is pinned: sizes are rounded up to powers of two", [lambda: pinned_blocks(128 * MIB)], [lambda: pinned_blocks(80 * MIB)]),
    "idle_streams": (r" is cached on \S+ streams? with nothing in use", [side_streams], [lambda: side_streams(used=True), as_program(side_streams)]),
}


def rows_of_table(source):
    with open(os.path.join(source, "recordings/analyze/advice.def"), encoding="utf-8") as file:
        text = re.sub(r"^//.*$", "", file.read(), flags=re.M).replace("VR_GROUND_", "")
    for macro, first, grounds in re.findall(r"^(VR_\w+)\((\w+), ([^,]+),", text, flags=re.M):
        yield f"{first} {grounds.replace(' ', '')}" if macro == "VR_AFTER" else first


def said(vram, device, folder):
    path = os.path.join(folder, "made.pickle")
    with open(path, "wb") as file:
        pickle.dump(device.recording(), file, 4)
    environment = {"COLUMNS": "4000", "LC_ALL": "C"}
    # Without the search of a setting, because a found setting hides other advice.
    text = subprocess.run([vram, "report", "--no-cure", path], capture_output=True, text=True, timeout=100, env=environment)
    answer = subprocess.run([vram, "report", "--no-cure", "--json", path], capture_output=True, text=True, timeout=100, env=environment)
    assert text.returncode == 0 and answer.returncode == 0, text.stderr + answer.stderr
    report = json.loads(answer.stdout)
    sentences = [item["text"] for item in report["advice"]]
    for place in [*report["devices"].values(), *([report["host"]] if "host" in report else [])]:
        for cause in place["oom_causes"]:
            sentences += [cause["advice"], *(remedy["text"] for remedy in cause.get("demand", {}).get("remedies", []))]
    page = surfaces.Page(vram, path)
    shown = surfaces.text_of(page.ask("oom"))
    page.end()
    agent = "\n".join(surfaces.agent_answers(vram, [(tool, {"file": path}) for tool in ("summary", "why", "cure")]))
    return {"text": " ".join(text.stdout.split()), "JSON": "\n".join(sentence or "" for sentence in sentences), "page": shown, "agent": agent}


def check(vram, name, folder):
    sentence, with_grounds, without = ROWS[name]
    for i, maker in enumerate(with_grounds):
        for place, text in said(vram, maker(), folder).items():
            if place == "page" and name.islower():
                continue  # the page has no place yet for unused memory
            assert re.search(sentence, text), f"{place} {i} does not say it: {text[-900:]}"
    for i, maker in enumerate(without):
        for place, text in said(vram, maker(), folder).items():
            found = re.search(sentence, text)
            assert not found, f"{place} says it without grounds ({i}): {found and found[0]}"


# --- the first screen --------------------------------------------------------------------------------------------------------------------------------


def check_first_screen(vram, folder):
    """Without a failure, the phase, the roles and the changes that lower the peak precede the timeline, except for a solver in C."""
    path = os.path.join(folder, "screen.pickle")
    for maker, known in ((lambda: optimizer(fail=False), True), (in_c, False)):
        device = maker()
        device.events = [event for event in device.events if event["action"] != "oom"]
        with open(path, "wb") as file:
            pickle.dump(device.recording(), file, 4)
        text = run(vram, "report", "--no-cure", path).stdout.split("Timeline")[0]
        demand = json.loads(run(vram, "report", "--no-cure", "--json", path).stdout)["devices"]["0"]["demand"]
        assert ("The peak  in the optimizer's step" in text) == known, text
        assert ("foreach=False, or with fused=True if it supports that: 255.0 MiB less, 769.0 MiB in total" in " ".join(text.split())) == known, text
        assert demand["phase"] == ("optimizer" if known else None) and not demand["room_is_named"], demand
        assert ("optimizer_foreach" in [remedy["remedy"] for remedy in demand["remedies"]]) == known, demand


# --- missing facts ---------------------------------------------------------------------------------------------------------------------------------


def missing(vram, recording, folder):
    path = os.path.join(folder, "missing.pickle")
    with open(path, "wb") as file:
        pickle.dump(recording, file, 4)
    notes = json.loads(run(vram, "report", "--no-cure", "--json", path).stdout)["missing"]
    text = " ".join(run(vram, "report", "--no-cure", path).stdout.split())
    for note in notes:
        assert note["text"] in text, f"the report does not say: {note['text']}"
    return {note["code"]: note["text"] for note in notes}


def check_missing(vram, folder):
    empty = missing(vram, {"segments": [], "device_traces": [[]]}, folder)
    assert "before the first allocation" in empty["empty"] and "_dump_snapshot() while the memory is in use" in empty["empty"], empty
    device = waiting()
    late = missing(vram, dict(device.recording(), device_traces=[[]]), folder)
    assert "switched off before the dump" in late["no_history"], late
    found = missing(vram, device.recording(), folder)
    assert "pinned host memory was not recorded" in found["no_host"] and "filtered" not in found, found
    assert "no_host" not in missing(vram, pinned_blocks(128 * MIB).recording(), folder)
    assert "no_host" not in missing(vram, side_streams_in_c().recording(), folder)
    assert "filtered" in missing(vram, without_completions().recording(), folder)


# --- cures -----------------------------------------------------------------------------------------------------------------------------------------


def ring(source, events):
    """The example as a ring of this many entries keeps it."""
    with gzip.open(os.path.join(source, "examples/recordings/oom.pickle.gz")) as file:
        recording = pickle.load(file)
    recording["device_traces"] = [trace[-events:] for trace in recording["device_traces"]]
    return recording


def cure_of(vram, recording, folder):
    path = os.path.join(folder, "cured.pickle")
    with open(path, "wb") as file:
        pickle.dump(recording, file, 4)
    report = [subprocess.run([vram, "report", *more, path], capture_output=True, text=True, timeout=200, env={"COLUMNS": "4000"}).stdout for more in ((), ("--json",))]
    cure = json.loads(report[1])["cures"][0]
    assert cure["text"] in " ".join(report[0].split()), f"the report does not say: {cure['text']}"
    return cure


def check_cures(vram, source, folder):
    limited = cure_of(vram, without_setting(a_fraction, "per_process_memory_fraction")().recording(), folder)
    assert limited["verdict"] == "limit" and limited["limit_at_least_bytes"] == 22 * GIB, limited
    assert limited["text"].startswith("Raise the limit to at least 22.0 GiB."), limited
    named = cure_of(vram, a_fraction().recording(), folder)
    assert named["verdict"] == "limit" and "it is 20.0 GiB" in named["text"], named
    windows = cure_of(vram, in_pieces("C:\\work\\train.py").recording(), folder)
    assert "expandable" not in (windows["conf"] or "") and "PyTorch ignores it on Windows" in windows["text"], windows
    linux = cure_of(vram, in_pieces().recording(), folder)
    assert linux["conf"] == "expandable_segments:True" and "Windows" not in linux["text"], linux
    lost = cure_of(vram, ring(source, 2000), folder)
    assert lost["verdict"] == "setting" and lost["start"] == "recorded", lost
    gone = cure_of(vram, ring(source, 1), folder)
    assert gone["verdict"] == "not_seen" and gone["usual"] == "expandable_segments:True", gone


def main():
    vram = os.path.abspath(sys.argv[1])
    source = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    names, wrong = list(rows_of_table(source)), 0
    if sorted(names) != sorted(ROWS):
        print(f"rows without a test: {sorted(set(names) - set(ROWS))}, tests without a row: {sorted(set(ROWS) - set(names))}")
        wrong += 1
    with tempfile.TemporaryDirectory() as folder:
        for name in ROWS:
            try:
                check(vram, name, folder)
            except AssertionError as error:
                wrong += 1
                print(f"{name}: {error}")
        try:
            check_first_screen(vram, folder)
            check_missing(vram, folder)
            check_cures(vram, source, folder)
        except AssertionError as error:
            wrong += 1
            print(f"the first screen, what is missing, cures: {error}")
    print(f"{len(names)} rows of advice, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
