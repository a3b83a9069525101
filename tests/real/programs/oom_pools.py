"""Runs PyTorch out of memory in places its own allocator cannot report: pinned host memory, and the driver's pools (backend:cudaMallocAsync).

usage: oom_pools.py VRAM [FOLDER]   runs each program below under `vram sim` and `vram run`; `vram report --json` must name the cause. With FOLDER,
                                    keeps the recordings there as CAUSE.pickle
       oom_pools.py --run CAUSE     the program itself
"""
import gzip
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile

MIB = 1 << 20


def pinned(mib):
    import torch

    return torch.empty(mib * MIB, dtype=torch.uint8, pin_memory=True)


def on_device(mib):
    import torch

    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def pinned_limit():
    """Buffers for prefetched batches, more than may be pinned."""
    return [pinned(512) for _ in range(8)]


def pinned_request():
    """Weights of a model, all pinned at the same time."""
    return pinned(64), load_weights()


def load_weights():
    return pinned(1 << 24)


def driver_pool_pieces():
    """Kept blocks lie between freed ones, so the pool has no free piece that is large enough."""
    kept, gaps = [], []
    for i in range(60):
        gaps.append(on_device(24))
        kept.append(keep_index())
    del gaps
    return kept, on_device(900)


def keep_index():
    return on_device(8)


def driver_pool_full():
    return load_model(), on_device(900)


def load_model():
    return [on_device(100) for _ in range(15)]


# name -> settings of the simulator and of the allocator; expected: whose memory (a device or the host), cause, sentence, named site
CAUSES = {
    "pinned_limit": ("pinned=2GiB", "", "host", "limit", r"pinned host memory ran out, not the device's: a limit on pinned memory refused the request: the system had .* enough for the 512\.0 MiB requested, and 1\.5 GiB|2\.0 GiB were pinned", "oom_pools.py:.*:pinned"),
    "pinned_request": ("pinned=2GiB", "", "host", "full", r"pinned host memory ran out, not the device's: .* less than the 16\.0 TiB requested", "oom_pools.py"),
    "driver_pool_pieces": ("", "backend:cudaMallocAsync", "0", "driver_pools", r"was free in the driver's own pools \(cudaMallocAsync\)", "oom_pools.py"),
    "driver_pool_full": ("", "backend:cudaMallocAsync", "0", "full", r"memory was full", "oom_pools.py"),
}


def check(vram, name, path):
    wanted, cause, says, holder = CAUSES[name][2:]
    device = json.loads(subprocess.run([vram, "report", "--json", path], capture_output=True, check=True).stdout)
    device = device["host"] if wanted == "host" else device["devices"][wanted]
    told = device["oom_causes"][-1]
    if told["cause"] != cause or not re.search(says, told["text"]) or not re.search(holder, json.dumps(told)):
        print(f"{name}: {told['cause']}: {told['text']}")
        return False
    return True


def record(vram, name, folder):
    settings, conf = CAUSES[name][:2]
    path = os.path.join(folder, name + ".vram")
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": conf}
    command = [vram, "sim", "--card", "t4", "--memory", "2GiB", *(["--set", settings + ",bytes=none"] if settings else ["--set", "bytes=none"]), "--", vram, "run", "-o", path, "--", sys.executable, os.path.abspath(__file__), "--run", name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if "out of memory" not in done.stdout and "Allocation on device" not in done.stdout:
        print(f"{name}: {done.stdout[-500:]}{done.stderr[-1500:]}")
        return None
    return path


def keep(vram, name, path, folder):
    """Returns a pickle with the Python frames, without this machine's folders."""
    whole = os.path.join(folder, name + ".pickle")
    subprocess.run([vram, "convert", path, "-o", whole], check=True)
    with open(whole, "rb") as file:
        snapshot = pickle.load(file)
    del snapshot["vram_modules"]
    for segment in [*snapshot["segments"], *snapshot.get("host_segments", [])]:
        for part in [segment, *segment["blocks"]]:
            part["frames"] = renamed(part.get("frames", []))
    for event in [event for trace in [*snapshot["device_traces"], snapshot.get("host_traces", [])] for event in trace]:
        event["frames"] = renamed(event.get("frames", []))
    with gzip.GzipFile(whole + ".gz", "wb", 9, mtime=0) as file:
        pickle.dump(snapshot, file, 4)
    os.remove(whole)


def renamed(frames):
    return [{**frame, "filename": "train.py"} for frame in frames if frame["filename"].endswith("oom_pools.py")]


def main():
    if sys.argv[1] == "--run":
        import torch

        torch.cuda.init()
        try:
            globals()[sys.argv[2]]()
        except RuntimeError as error:
            print(error)
        return
    vram = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        folder = sys.argv[2] if len(sys.argv) > 2 else scratch
        right = 0
        for name in CAUSES:
            path = record(vram, name, folder)
            right += path is not None and check(vram, name, path)
            if path and len(sys.argv) > 2:
                keep(vram, name, path, folder)
    print("ok" if right == len(CAUSES) else f"{right} of {len(CAUSES)}")


if __name__ == "__main__":
    main()
