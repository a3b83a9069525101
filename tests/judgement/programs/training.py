"""Programs that train, each with one finding about its memory. What a program returns lives until the recording is written."""
import gc

import torch
import torch.nn as nn
from models import MIB, Attention, Block, Model, batch, step


def train_fits():
    """Six steps of AdamW that fit and keep nothing."""
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(8):
        step(model, optimizer, 8192)
    return model, optimizer


def train_larger_batches():
    """AdamW with a batch that grows in every step."""
    model = Model(layers=2).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for i in range(16):
        step(model, optimizer, 1024 * (i + 1))
    return model, optimizer


def large_batch():
    """Activations of the second batch fill the device."""
    model = Model(layers=8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer, 1024)
    step(model, optimizer, 131072)


def large_batch_sgd():
    """Activations of the second batch fill the device; the optimizer has no state."""
    model = Model(layers=8).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    step(model, optimizer, 1024)
    step(model, optimizer, 131072)


def attention_of_a_long_sequence():
    """Scores of 65,536 by 65,536."""
    model = nn.Sequential(Block(512), Attention()).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    step(model, optimizer, 4096)
    step(model, optimizer, 65536)


def first_step_of_adam():
    """Parameters and gradients fit, the optimizer's state does not."""
    model = Model(width=2048, layers=7).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer, 64, 2048)


def foreach_temporaries():
    """Adam's temporaries for all parameters at once are the peak."""
    model = Model(width=2048, layers=4).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(3):
        step(model, optimizer, 64, 2048)
    return model, optimizer


def one_after_the_other():
    """Adam with foreach=False, without those temporaries."""
    model = Model(width=2048, layers=4).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(3):
        step(model, optimizer, 64, 2048)
    return model, optimizer


def autocast_copies():
    """Autocast keeps copies of the weights, and the forward pass runs out."""
    model = Model(width=2048, layers=12).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        model(batch(16384, 2048)).sum()


def zeroed_gradients():
    """Gradients are zeroed, not dropped, and live through the forward pass that fails."""
    model = Model(width=2048, layers=6).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    step(model, optimizer, 16, 2048, set_to_none=False)
    step(model, optimizer, 16384, 2048, set_to_none=False)


def graphs_are_kept():
    """A list of losses keeps the graph of each step."""
    model, losses = Model(layers=4).cuda(), []
    for _ in range(400):
        losses.append(model(batch(4096)).sum())
        losses[-1].backward(retain_graph=True)
        model.zero_grad()


def outputs_are_kept():
    """A list keeps a copy of each step's output."""
    model, kept = Model(layers=1).cuda(), []
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(400):
        step(model, optimizer, 256)
        kept.append(remember(torch.empty(60 * MIB, dtype=torch.uint8, device="cuda")))


def remember(x):
    return x.clone()


def hook_that_keeps():
    """A forward hook collects the outputs of layers, which are never used."""
    model, seen = Model(layers=1).cuda(), []
    model.blocks[0].register_forward_hook(lambda module, given, made: seen.append(collect(made)))
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(24):
        step(model, optimizer, 1024)
    return model, seen


def collect(made):
    return made.detach().clone()


def cycles_that_stay():
    """Each step leaves a reference cycle; the collector that would find it is off."""
    gc.disable()
    model = Model(layers=1).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(24):
        step(model, optimizer, 1024)
        tie(log_of_step())
    return model


def log_of_step():
    return torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")


def tie(memory):
    knot = {"memory": memory}
    knot["self"] = knot


def validation_with_graph():
    """Training fits; validation keeps a graph without need."""
    model = Model(layers=8).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(3):
        step(model, optimizer, 1024)
    validate(model)


def validate(model):
    return model(batch(131072)).argmax(-1)


def accumulated_gradients():
    """Gradients of four parts are accumulated before each step; no memory stays."""
    model = Model(layers=2).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(8):
        for _ in range(4):
            (model(batch(2048)).sum() / 4).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def epochs_are_dropped():
    """A list that is emptied after every epoch of six steps."""
    model, kept = Model(layers=1).cuda(), []
    optimizer = torch.optim.SGD(model.parameters())
    for i in range(30):
        step(model, optimizer, 1024)
        kept.append(remember(torch.empty(2 * MIB, dtype=torch.uint8, device="cuda")))
        if i % 6 == 5:
            kept.clear()
    return model


def window_of_five():
    """The last five outputs are kept."""
    model, kept = Model(layers=1).cuda(), []
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(30):
        step(model, optimizer, 1024)
        kept = kept[-4:] + [remember(torch.empty(2 * MIB, dtype=torch.uint8, device="cuda"))]
    return model, kept


def cache_that_fills():
    """A cache of positions is made in the first six steps."""
    model, cache = Model(layers=1).cuda(), {}
    optimizer = torch.optim.SGD(model.parameters())
    for i in range(30):
        step(model, optimizer, 1024)
        if i < 6:
            cache[i] = remember(torch.empty(2 * MIB, dtype=torch.uint8, device="cuda"))
    return model, cache


def one_step():
    """A single step, so leaks cannot be judged."""
    model = Model(layers=12, width=256).cuda()
    step(model, torch.optim.AdamW(model.parameters()), 2048, 256)
    return model


PROGRAMS = [train_fits, train_larger_batches, large_batch, large_batch_sgd, attention_of_a_long_sequence, first_step_of_adam, foreach_temporaries, one_after_the_other, autocast_copies, zeroed_gradients, graphs_are_kept, outputs_are_kept,
            hook_that_keeps, cycles_that_stay, validation_with_graph, accumulated_gradients, epochs_are_dropped, window_of_five, cache_that_fills, one_step]
OPTIONS = {}
