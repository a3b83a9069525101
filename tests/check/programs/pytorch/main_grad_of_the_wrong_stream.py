"""Megatron-LM #6187: the main gradient is allocated on the default stream and replaced while the reduce-scatter stream uses it."""
import torch

reduce_scatter = torch.cuda.Stream()
main_grad = torch.zeros(1 << 20, device="cuda")  #-
#+ with torch.cuda.stream(reduce_scatter): main_grad = torch.zeros(1 << 20, device="cuda")
gradient = torch.ones(1 << 20, device="cuda")
reduce_scatter.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(reduce_scatter):
    main_grad.add_(gradient)  # use
main_grad = None  # free
activation = torch.full((1 << 20,), 2.0, device="cuda")  # reuse
torch.cuda.synchronize()
