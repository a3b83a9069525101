"""Runs a program under PyTorch's MemTracker and fake tensors. Prints its peak, in bytes, as JSON on the last line.

usage: memtracker.py SNAPSHOT (SCRIPT | -c CODE | -m MODULE) ARGUMENT...      ends where the program would write SNAPSHOT

Makes the changes that a user would have to make: creates tensors on the device at once (fake parameters cannot be moved: "Couldn't
swap"), resets the statistics of a module that is called again ("multiple iterative calls"), collects the cycles held by its hooks, and
turns PyTorch's own history off."""
import gc
import json
import os
import runpy
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker


class Tracker(MemTracker):
    def _pre_fw_hook(self, module, inputs):
        try:
            super()._pre_fw_hook(module, inputs)
        except NotImplementedError:
            self.reset_mod_stats()
            gc.collect()
            super()._pre_fw_hook(module, inputs)


def tell(tracker):
    peaks = {str(device): snapshot["Total"] for device, snapshot in tracker.get_tracker_snapshot("peak").items()}
    print(json.dumps({"allocated": sum(size for device, size in peaks.items() if device.startswith("cuda"))}), flush=True)
    os._exit(0)


def run(arguments):
    first, rest = arguments[0], arguments[1:]
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


def main():
    wanted = os.path.basename(sys.argv[1])
    tracker = Tracker()

    def dump(path="", *_, **__):
        if os.path.basename(path) == wanted:
            tell(tracker)

    torch.cuda.memory._record_memory_history = lambda *_, **__: None
    torch.cuda.memory._dump_snapshot = dump
    torch.cuda.memory._snapshot = lambda *_, **__: {"segments": [], "device_traces": []}
    torch.nn.Module.to = lambda module, *_, **__: module
    torch.zeros(1, device="cuda")
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"), tracker:
        try:
            run(sys.argv[2:])
        except SystemExit as end:
            if end.code:
                raise
    tell(tracker)


if __name__ == "__main__":
    main()
