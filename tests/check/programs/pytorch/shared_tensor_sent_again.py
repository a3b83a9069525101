"""PyTorch waits for a received tensor's event only where it opens the memory. A consumer that still has the tensor gets it again without a wait."""
import torch
import torch.multiprocessing as mp


def consume(queue, done):
    kept = []
    for _ in range(2):
        kept.append(queue.get())
        total = kept[-1].sum()  # conflict
        torch.cuda.synchronize()
        done.put(1)


if __name__ == "__main__":
    mp.set_start_method("spawn")
    queue, done = mp.Queue(), mp.Queue()
    worker = mp.Process(target=consume, args=(queue, done))
    worker.start()
    buffer = torch.zeros(1 << 20, device="cuda")
    for step in range(2):
        buffer.fill_(step)  # use
        #+ torch.cuda.synchronize()
        queue.put(buffer)
        done.get()
    worker.join()
