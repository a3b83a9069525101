"""Prepares a model and data for the scripts of LitGPT of October 2023: litgpt_folder.py SOURCE CHECKPOINT DATA LONGEST

CHECKPOINT is named after one of LitGPT's models. Its weights are zeros of one element each, seen in the model's shapes; its tokenizer knows a few words.
DATA gets the training and test examples, with random tokens, of which the longest has LONGEST. The scripts begin with it, and the logits of a step live
until the next forward pass has ended. So the others are short, as most of Alpaca's are."""
import dataclasses
import json
import pathlib
import sys

import torch

source, checkpoint, data, longest = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, source)
from lit_gpt import GPT, Config

EXAMPLES, TESTS, SHORTEST, OTHERS = 400, 150, 40, 300


def write_checkpoint():
    config = Config.from_name(checkpoint.name)
    with torch.device("meta"):
        shapes = {name: tuple(weight.shape) for name, weight in GPT(config).state_dict().items()}
    checkpoint.mkdir(parents=True, exist_ok=True)
    torch.save({name: torch.zeros(1, dtype=torch.bfloat16).expand(shape) for name, shape in shapes.items()}, checkpoint / "lit_model.pth")
    (checkpoint / "lit_config.json").write_text(json.dumps(dataclasses.asdict(config)))
    words = {f"word{number}": number for number in range(100)}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "word0"}
    (checkpoint / "tokenizer.json").write_text(json.dumps({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model}))
    (checkpoint / "tokenizer_config.json").write_text("{}")


def examples(count, most):
    lengths = [most, *torch.randint(SHORTEST, OTHERS, (count - 1,)).tolist()]
    return [{"input_ids": torch.randint(0, 100, (length,), dtype=torch.int32), "labels": torch.randint(0, 100, (length,), dtype=torch.int64)} for length in lengths]


torch.manual_seed(1)
write_checkpoint()
data.mkdir(parents=True, exist_ok=True)
torch.save(examples(EXAMPLES, longest), data / "train.pt")
torch.save(examples(TESTS, longest // 2), data / "test.pt")
