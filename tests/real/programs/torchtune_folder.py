"""Prepares a model of torchtune and texts: torchtune_folder.py BUILDER FOLDER TEXTS

The weights of torchtune's BUILDER (llama3_1_8b, for example) are zeros of one element each, seen in the model's shapes. The tokenizer has made-up words,
and each of TEXTS texts has many tokens."""
import base64
import itertools
import json
import pathlib
import sys

import torch
import torchtune.models.llama3_1

builder, folder, texts = getattr(torchtune.models.llama3_1, sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
WORDS = 128000

with torch.device("meta"):
    shapes = {name: tuple(weight.shape) for name, weight in builder().state_dict().items()}
folder.mkdir(parents=True)
torch.save({name: torch.zeros(1, dtype=torch.bfloat16).expand(shape) for name, shape in shapes.items()}, folder / "model.pt")
words = itertools.chain.from_iterable(itertools.product(range(256), repeat=length) for length in (1, 2, 3))
lines = [f"{base64.b64encode(bytes(word)).decode()} {rank}\n" for rank, word in enumerate(itertools.islice(words, WORDS))]
(folder / "tokenizer.model").write_text("".join(lines))
(folder / "data.json").write_text((json.dumps({"text": "so many words of no meaning " * 400}) + "\n") * texts)
