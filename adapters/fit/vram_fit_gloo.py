"""Gloo in groups of which only some ranks run (`vram fit --fold`). Gloo connects every member with every other, so the running members form a
smaller group of gloo. The input of an absent member is that of its representative: the next lower member that runs, else the lowest."""
import functools
import operator

import torch
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import Backend, BroadcastOptions, ReduceOp, ScatterOptions, _create_work_from_future

FOLDS = {ReduceOp.MIN: torch.minimum, ReduceOp.MAX: torch.maximum, ReduceOp.BAND: operator.and_, ReduceOp.BOR: operator.or_}


def done(result):
    future = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


def reduced(parts, weights, operation):
    """Reduces the running members' tensors. Each counts once for each member that it represents."""
    for known, fold in FOLDS.items():
        if operation == known:
            return functools.reduce(fold, parts)
    if operation == ReduceOp.PRODUCT:
        return functools.reduce(operator.mul, [part**weight for part, weight in zip(parts, weights)])
    if operation == ReduceOp.BXOR:
        return functools.reduce(operator.xor, [part if weight % 2 else torch.zeros_like(part) for part, weight in zip(parts, weights)])
    total = functools.reduce(operator.add, [part * weight for part, weight in zip(parts, weights)])
    return total / sum(weights) if operation == ReduceOp.AVG else total


class FoldedGloo(Backend):
    # PyTorch looks these up in Python and in C++; the two lookups would call each other forever.
    supports_splitting = supports_coalescing = supports_shrinking = supports_reconfigure = supports_window = False

    def __init__(self, store, rank, size, timeout, running):
        super().__init__(rank, size)
        self.place, self.count, self.running = rank, size, running
        self.inner = c10d.ProcessGroupGloo(store, running.index(rank), len(running), timeout=timeout)
        # By member: the index of its representative among those that run.
        self.giver = [max([i for i, place in enumerate(running) if place <= member], default=0) for member in range(size)]
        self.weights = [self.giver.count(i) for i in range(len(running))]

    def getBackendName(self):
        return "gloo"

    def gathered(self, tensor):
        parts = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in self.running]
        self.inner.allgather([parts], [tensor.contiguous()]).wait()
        return parts

    def allreduce(self, tensors, options):
        for tensor in tensors:
            tensor.copy_(reduced(self.gathered(tensor), self.weights, options.reduceOp))
        return done(tensors)

    def reduce(self, tensors, options):
        for tensor in tensors:
            total = reduced(self.gathered(tensor), self.weights, options.reduceOp)
            if self.place == options.rootRank:
                tensor.copy_(total)
        return done(tensors)

    def broadcast(self, tensors, options):
        own = BroadcastOptions()
        own.rootRank, own.rootTensor = self.giver[options.rootRank], options.rootTensor
        return self.inner.broadcast(tensors, own)

    def allgather(self, outputs, inputs, options=None):
        for output, tensor in zip(outputs, inputs):
            parts = self.gathered(tensor)
            for one, giver in zip(output, self.giver):
                one.copy_(parts[giver])
        return done(outputs)

    def gather(self, outputs, inputs, options):
        parts = self.gathered(inputs[0])
        if self.place == options.rootRank:
            for one, giver in zip(outputs[0], self.giver):
                one.copy_(parts[giver])
        return done(outputs)

    def all_gather_single(self, output, tensor, options=None):
        return self.allgather([list(output.view(self.count, *tensor.shape))], [tensor])

    def scatter(self, outputs, inputs, options):
        """Leaves the outputs unchanged if the root does not run, because its values are not known."""
        if options.rootRank not in self.running:
            return done(outputs)
        own = ScatterOptions()
        own.rootRank = self.giver[options.rootRank]
        return self.inner.scatter(outputs, [[parts[place] for place in self.running] for parts in inputs], own)

    def reduce_scatter(self, outputs, inputs, options):
        for output, parts in zip(outputs, inputs):
            joined = torch.cat([part.reshape(-1) for part in parts])
            sums = reduced(self.gathered(joined), self.weights, options.reduceOp).split([part.numel() for part in parts])
            output.copy_(sums[self.place].view_as(output))
        return done(outputs)

    def reduce_scatter_single(self, output, tensor, options):
        return self.reduce_scatter([output], [list(tensor.chunk(self.count))], options)

    def all_to_all_single(self, output, tensor, output_sizes, input_sizes, options=None):
        given = tensor.split(list(input_sizes) or len(tensor) // self.count)
        taken = output.split(list(output_sizes) or len(output) // self.count)
        sent, got = (torch.cat([parts[place] for place in self.running]) for parts in (given, taken))
        sent_sizes, got_sizes = ([len(parts[place]) for place in self.running] for parts in (given, taken))
        self.inner.alltoall_base(got, sent, got_sizes, sent_sizes).wait()
        parts = got.split(got_sizes)
        for one, giver in zip(taken, self.giver):
            if one.shape == parts[giver].shape:
                one.copy_(parts[giver])
        return done([output])

    def send(self, tensors, to, tag):
        return self.inner.send(tensors, self.running.index(to), tag) if to in self.running else done(tensors)

    def recv(self, tensors, source, tag):
        return self.inner.recv(tensors, self.running.index(source), tag) if source in self.running else done(tensors)

    def recv_anysource(self, tensors, tag):
        return self.inner.recv_anysource(tensors, tag)

    def barrier(self, options=None):
        return self.inner.barrier()

    # The names before PyTorch 2.15.
    _allgather_base, _reduce_scatter_base, alltoall_base = all_gather_single, reduce_scatter_single, all_to_all_single
