"""A loader thread fills the pinned buffer as soon as the copy has been enqueued, not when it completes."""
import queue
import threading

import torch

host = torch.zeros(1 << 20, pin_memory=True)
free, full = queue.Queue(), queue.Queue()


def load():
    for step in range(2):
        free.get()
        host.fill_(step)  # conflict
        full.put(step)


loader = threading.Thread(target=load)
loader.start()
free.put(None)
for _ in range(2):
    full.get()
    batch = host.to("cuda", non_blocking=True)  # use
    #+ torch.cuda.current_stream().synchronize()
    free.put(None)
loader.join()
torch.cuda.synchronize()
