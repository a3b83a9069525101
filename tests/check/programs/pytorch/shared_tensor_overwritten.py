"""A producer fills the tensor that it has sent while the consumer's kernels may still read it."""
import torch
import torch.multiprocessing as mp


def consume(queue, done):
    for _ in range(2):
        batch = queue.get()
        total = (batch * 2).sum()  # use
        #+ del batch, total; torch.cuda.synchronize()
        done.put(1)
    torch.cuda.synchronize()


if __name__ == "__main__":
    mp.set_start_method("spawn")
    queue, done = mp.Queue(), mp.Queue()
    worker = mp.Process(target=consume, args=(queue, done))
    worker.start()
    buffer = torch.zeros(1 << 20, device="cuda")
    for step in range(2):
        buffer.fill_(step)  # conflict
        queue.put(buffer)
        done.get()
    worker.join()
