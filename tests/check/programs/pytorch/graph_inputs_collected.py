"""pytorch #174649: a helper captures a graph over tensors of its own, which die when it returns."""
import torch


def capture():
    x = torch.ones(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2  # capture
    #+ graph.inputs = x
    return graph, y  # free


graph, y = capture()
other = torch.zeros(1 << 20, device="cuda")  # reuse
graph.replay()  # launch
torch.cuda.synchronize()
