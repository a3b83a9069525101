"""Makes every driver call fail in turn under a PyTorch program. Each time it must end with a Python exception, or do all of its work.

PyTorch is imported once. Each try is a child that was forked before the driver was started, and VRAM_SIM_FAIL tells it which call fails (with out of
memory, or with the results named after the row). A try that is ended by a signal, hangs or returns an unknown exit code is reported."""
import ctypes
import gc
import os
import re
import signal
import sys
import tempfile
import time

import torch
import torch._dynamo  # optimizers import it; import it once, before the forks
import torch.nn.functional as F
from rows import main, row

MIB = 1 << 20
TRY_SECONDS = 120
OUT_OF_MEMORY = 2  # CUresult
RAISED, FINISHED = 7, 0
# # Destructors of PyTorch check these, and exceptions of destructors cannot be caught, so the program ends on a GPU too. The first is called in
# # ExpandableSegment's, the others in that of a tensor that another stream used, where the allocator records its event.
CHECKED_IN_DESTRUCTORS = {"cuMemAddressFree", "cuEventCreate", "cuEventRecord", "cuDevicePrimaryCtxGetState"}


# --- small programs: each of their calls fails once ---------------------------------------------------------------------------------------
def train():
    cuda = torch.device("cuda")
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)).to(cuda)
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    batch = torch.randn(16, 64).pin_memory().to(cuda, non_blocking=True)
    side = torch.cuda.Stream()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.mse_loss(net(batch).float(), torch.zeros(16, 8, device=cuda))
    loss.backward()
    optimizer.step()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        copied = batch * 2
    batch.record_stream(side)
    del batch
    torch.cuda.empty_cache()
    torch.cuda.current_stream().wait_stream(side)
    return copied.cpu(), loss.item()


def graph():
    cuda = torch.device("cuda")
    x = torch.randn(64, 64, device=cuda)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        (x @ x).relu()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = (x @ x + 1).relu()
    captured.replay()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    captured.replay()
    end.record()
    end.synchronize()
    start.elapsed_time(end)
    del y, captured
    torch.cuda.empty_cache()


def expandable():
    cuda = torch.device("cuda")
    setting = getattr(torch._C, "_accelerator_setAllocatorSettings", None) or torch.cuda.memory._set_allocator_settings
    setting("expandable_segments:True")
    kept = [torch.empty(40 * MIB, dtype=torch.uint8, device=cuda) for _ in range(4)]
    del kept[1:3]
    torch.cuda.empty_cache()
    big = torch.empty(80 * MIB, dtype=torch.uint8, device=cuda)
    big[:100].cpu()
    del kept, big
    torch.cuda.empty_cache()
    torch.cuda.mem_get_info()


# --- a try ---------------------------------------------------------------------------------------------------------------------------------
class Try:
    def __init__(self, nth, process, output):
        self.nth, self.process, self.output, self.begun = nth, process, output, time.monotonic()

    def text(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    def function(self):
        """Returns the call that failed, or None."""
        failed = re.search(r"VRAM_SIM_FAIL: (\S+) fails", self.text())
        return failed.group(1) if failed else None


def begin(nth, result, output):
    """Forks. Returns the try in the parent, and None in the child."""
    process = os.fork()
    if process:
        return Try(nth, process, output)
    os.environ["VRAM_SIM_FAIL"] = f"{nth}:{result}"
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    return None


def play(work):
    """Runs in the child. It leaves through the C library's exit(), whose destructors also make driver calls; the interpreter's own end would take a
    second each time."""
    code = FINISHED
    try:
        work()
    except Exception as error:  # any Python exception is a clean end
        print(f"{type(error).__name__}: {error}")
        code = RAISED
    gc.collect()
    sys.stdout.flush()
    ctypes.CDLL(None).exit(code)


def ending(status, text, function):
    if os.WIFSIGNALED(status):
        if function in CHECKED_IN_DESTRUCTORS and "terminate called after throwing an instance of 'c10::" in text:
            return "thrown by a destructor"
        return signal.Signals(os.WTERMSIG(status)).name
    return {RAISED: "raised", FINISHED: "finished"}.get(os.WEXITSTATUS(status), f"exit {os.WEXITSTATUS(status)}")


def wait_for_one(tries):
    """Returns the next try that ends, and how it ended. Kills one that takes too long."""
    while True:
        for each in tries:
            ended, status = os.waitpid(each.process, os.WNOHANG)
            if ended:
                return each, ending(status, each.text(), each.function())
            if time.monotonic() - each.begun > TRY_SECONDS:
                os.kill(each.process, signal.SIGKILL)
                os.waitpid(each.process, 0)
                return each, "hung"
        time.sleep(0.005)


def try_each_call(work, result, workers, first, step):
    """Tries calls first, first + step and so on, up to one that the program does not make."""
    gc.freeze()  # the collector skips objects of the imports
    counts, bad, running, nth, over = {}, [], [], first - step, False
    while running or not over:
        while not over and len(running) < workers:
            nth += step
            begun = begin(nth, result, tempfile.TemporaryFile())
            if begun is None:
                play(work)
            running.append(begun)
        each, how = wait_for_one(running)
        running.remove(each)
        over = over or (each.function() is None and how == "finished")
        counts[how] = counts.get(how, 0) + 1
        if how not in ("raised", "finished", "thrown by a destructor"):
            lines = [line for line in each.text().splitlines() if line.strip()]
            bad.append(each.nth)
            print(f"call {each.nth} ({each.function()}): {how}: {' | '.join(lines[:1] + lines[-3:])[:300]}", flush=True)
        each.output.close()
    gc.unfreeze()
    print(f"{work.__name__}: {sum(counts.values())} tries, result {result}:", ", ".join(f"{count} {how}" for how, count in sorted(counts.items())), flush=True)
    return not bad


def add_rows(work, parts):
    """Splits the calls over several short rows: WORK_faults_1 and so on, each with every parts-th call."""
    for part in range(1, parts + 1):
        def fails(*results, part=part):
            assert all([try_each_call(work, int(result), 2, part, parts) for result in results or (OUT_OF_MEMORY,)]), "see above"
        fails.__name__ = f"{work.__name__}_faults" + f"_{part}" * (parts > 1)
        row(fails)


add_rows(train, 8)
add_rows(graph, 4)
add_rows(expandable, 2)

if __name__ == "__main__":
    main()
