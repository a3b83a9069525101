"""Programs whose peak moves to another moment with another size, each run in four sizes: three to forecast from, and a fourth to compare with.

usage: sizes.py FOLDER [PROGRAM...]     writes PROGRAM.SIZE.pickle.gz for the three, and a line `PROGRAM SIZE PEAK` for the fourth

All were written after `vram forecast`.
"""
import gc
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from models import Attention, Block, Model, batch


def train(rows, width=512, layers=4, steps=2, optimizer=torch.optim.AdamW, loss=lambda y: y.sum()):
    model = Model(width, layers).cuda()
    made = optimizer(model.parameters())
    for _ in range(steps):
        loss(model(batch(rows, width))).backward()
        made.step()
        made.zero_grad()


def adam_or_activations(rows):
    """Small: the optimizer's step; large: the backward pass."""
    train(rows, 1024, 4)


def sgd_or_activations(rows):
    """Small: gradients and parameters after the backward pass; large: the forward pass."""
    train(rows, 1024, 6, optimizer=torch.optim.SGD)


def loading_or_inference(rows):
    """Small: weights in two types while they are converted; large: inference."""
    model = Model(1024, 4).cuda()
    model = model.to(torch.bfloat16)
    with torch.no_grad():
        model(batch(rows, 1024).to(torch.bfloat16))


def attention_or_mlp(tokens):
    """Small: the wide layer; large: the attention scores, which grow with the square of `tokens`."""
    model = nn.Sequential(Block(1024), Attention(1024)).cuda()
    with torch.no_grad():
        model(batch(tokens, 1024))


def loss_or_layers(rows):
    """At small sizes the peak is the weights and state of many layers; at large sizes, the logits of many words."""
    model, head = Model(512, 6).cuda(), nn.Linear(512, 16384).cuda()
    made = torch.optim.Adam([*model.parameters(), *head.parameters()])
    for _ in range(2):
        target = torch.zeros(rows, dtype=torch.long, device="cuda")
        F.cross_entropy(head(model(batch(rows))), target).backward()
        made.step()
        made.zero_grad()


def evaluation_or_training(rows):
    """At small sizes the peak is the training of a fixed batch; at large sizes, an evaluation of all rows."""
    model = Model(512, 6).cuda()
    made = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(batch(4096)).sum().backward()
        made.step()
        made.zero_grad()
    with torch.no_grad():
        model(batch(8 * rows))


def preparation_or_training(rows):
    """Small: training; large: features that are made before, in double precision."""
    table = torch.empty(rows, 2048, dtype=torch.float64, device="cuda")
    table = (table * 2).float()
    del table
    train(2048, 1024, 3)


def image_stages(rows):
    """Small: the last stage's weights and gradients; large: the first stage's images."""
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 1000)).cuda()
    made = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.empty(rows, 3, 64, 64, device="cuda")).sum().backward()
        made.step()
        made.zero_grad()


def recomputed(rows):
    """With checkpointing, the peak is the optimizer at small sizes, and one layer of the backward pass at large sizes."""
    from torch.utils.checkpoint import checkpoint

    model = Model(1024, 6).cuda()
    made = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        x = batch(rows, 1024).requires_grad_()
        for block in model.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        x.sum().backward()
        made.step()
        made.zero_grad()


def all_pairs_or_table(rows):
    """At small sizes the peak is a fixed table; at large sizes, the matrix of pairwise distances."""
    table = torch.empty(64 << 20, device="cuda")
    points = batch(rows, 64)
    near = (points @ points.T).softmax(-1)
    del near
    return table


def recurrent(length):
    """Small: weights and state; large: states of every moment."""
    model = nn.LSTMCell(1024, 1024).cuda()
    made = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        state = (torch.zeros(64, 1024, device="cuda"), torch.zeros(64, 1024, device="cuda"))
        for _ in range(length):
            state = model(torch.zeros(64, 1024, device="cuda"), state)
        state[0].sum().backward()
        made.step()
        made.zero_grad()


def cache_of_tokens(tokens):
    """Small: weights; large: keys and values of all tokens."""
    model = Model(1024, 3).cuda()
    with torch.no_grad():
        keys = [torch.empty(2, 16, tokens, 64, device="cuda") for _ in range(12)]
        model(batch(64, 1024))
    return keys


def two_towers(rows):
    """Small: two models' weights and state; large: similarities of all pairs."""
    left, right = Model(512, 3).cuda(), Model(512, 3).cuda()
    made = torch.optim.AdamW([*left.parameters(), *right.parameters()])
    for _ in range(2):
        F.cross_entropy(left(batch(rows)) @ right(batch(rows)).T, torch.arange(rows, device="cuda")).backward()
        made.step()
        made.zero_grad()


def down_and_up(side):
    """Small: weights; large: the first stage's images, which grow with the square."""
    down, up = nn.Conv2d(3, 64, 3, stride=2, padding=1).cuda(), nn.ConvTranspose2d(64, 3, 2, stride=2).cuda()
    wide = nn.Linear(4096, 4096).cuda()
    made = torch.optim.SGD([*down.parameters(), *up.parameters(), *wide.parameters()], momentum=0.9)
    for _ in range(2):
        images = torch.empty(4, 3, side, side, device="cuda")
        (F.mse_loss(up(F.relu(down(images))), images) + wide(torch.empty(8, 4096, device="cuda")).sum()).backward()
        made.step()
        made.zero_grad()


def table_of_words(words):
    """Small: activations of a fixed batch; large: a table of words with its gradient and state."""
    table, model = nn.Embedding(words, 512).cuda(), Model(512, 3).cuda()
    made = torch.optim.Adam([*table.parameters(), *model.parameters()])
    for _ in range(2):
        model(table(torch.zeros(8192, dtype=torch.long, device="cuda"))).sum().backward()
        made.step()
        made.zero_grad()


def layers_of_any_number(layers):
    """Grows with the number of layers; small: a fixed head; large: state of all layers."""
    model, head = Model(512, layers).cuda(), nn.Linear(512, 65536).cuda()
    made = torch.optim.AdamW([*model.parameters(), *head.parameters()])
    for _ in range(2):
        head(model(batch(512))).sum().backward()
        made.step()
        made.zero_grad()


# loss_or_layers and image_stages were forecast wrongly at first; they do not test what was changed because of them.
PROGRAMS = {
    adam_or_activations: (128, 512, 2048, 16384),
    sgd_or_activations: (128, 512, 2048, 16384),
    loading_or_inference: (256, 1024, 4096, 65536),
    attention_or_mlp: (512, 1024, 2048, 16384),
    loss_or_layers: (64, 256, 1024, 8192),
    evaluation_or_training: (256, 1024, 4096, 32768),
    preparation_or_training: (1024, 4096, 16384, 65536),
    image_stages: (8, 32, 128, 1024),
    recomputed: (128, 512, 2048, 16384),
    all_pairs_or_table: (1024, 2048, 4096, 16384),
    recurrent: (4, 8, 16, 96),
    cache_of_tokens: (256, 1024, 4096, 32768),
    two_towers: (256, 1024, 2048, 16384),
    down_and_up: (64, 128, 256, 1024),
    table_of_words: (1000, 4000, 16000, 256000),
    layers_of_any_number: (2, 4, 8, 48),
}


def main():
    from record import without_machine, written

    folder, names = sys.argv[1], sys.argv[2:]
    for program, sizes in PROGRAMS.items():
        for size in sizes if not names or program.__name__ in names else ():
            gc.collect()
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.memory._record_memory_history(None)
            torch.cuda.memory._record_memory_history(stacks="python", max_entries=100000)
            program(size)
            written(without_machine(torch.cuda.memory._snapshot()), os.path.join(folder, f"{program.__name__}.{size}.pickle.gz"))
            print(program.__name__, size, flush=True)


if __name__ == "__main__":
    main()
