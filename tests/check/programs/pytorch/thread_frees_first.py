"""A worker thread uses a tensor on its own stream. The main thread waits for the thread, but not for its stream, and frees it."""
import threading

import torch

side = torch.cuda.Stream()
x = torch.ones(1 << 20, device="cuda")
torch.cuda.synchronize()
results = []


def work(tensor):
    with torch.cuda.stream(side):
        results.append(tensor.exp())  # use
    #+ side.synchronize()


worker = threading.Thread(target=work, args=(x,))
worker.start()
worker.join()
del worker, x  # free
z = torch.zeros(1 << 20, device="cuda")  # reuse
torch.cuda.synchronize()
