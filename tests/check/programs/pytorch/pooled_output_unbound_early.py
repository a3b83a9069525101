"""vllm #36942: the output is taken apart before the event of its copy has been waited for."""
import torch


class PoolingOutput:
    def __init__(self, pooled, copies):
        self.copied = torch.cuda.Event()
        copies.wait_stream(torch.cuda.current_stream())
        self.host = torch.empty(pooled.shape, pin_memory=True)
        with torch.cuda.stream(copies):
            self.host.copy_(pooled, non_blocking=True)  # use
            self.copied.record()

    def get(self):
        #+ self.copied.synchronize()
        output = [row.tolist() for row in self.host.unbind()]  # conflict
        self.copied.synchronize()
        return output


pooled = torch.ones(16, 1024, device="cuda")
PoolingOutput(pooled, torch.cuda.Stream()).get()
torch.cuda.synchronize()
