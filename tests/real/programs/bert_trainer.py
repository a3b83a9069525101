"""The program of transformers' page about training on one GPU (2022): bert_trainer.py FOLDER ARGUMENTS OPTIMIZER

FOLDER gets the configuration of bert-large-uncased; ARGUMENTS are those of TrainingArguments, as JSON; OPTIMIZER is "" or "8-bit Adam"."""
import functools
import json
import os
import sys

import numpy
import torch
from datasets import Dataset
from transformers import AutoConfig, AutoModelForSequenceClassification, BertConfig, Trainer, TrainingArguments, logging

folder, arguments, optimizer = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
LENGTH, COUNT = 512, 512
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "architectures": ["BertForMaskedLM"]}


def examples():
    data = Dataset.from_dict({"input_ids": numpy.random.randint(100, 30000, (COUNT, LENGTH)), "labels": numpy.random.randint(0, 1, COUNT)})
    data.set_format("pt")
    return data


def adam_of_8_bits(model, arguments):
    """Returns bitsandbytes' optimizer with the page's groups of parameters: no decay for biases and normalisation."""
    os.environ.pop("BNB_CUDA_VERSION", None)  # it does not work for cards before compute capability 7.5
    torch.version.cuda = "12.2"  # the newest CUDA of which bitsandbytes 0.41 has a library
    sys.modules["triton"] = None  # bitsandbytes uses a part that newer ones lack, but does without Triton
    import bitsandbytes

    plain = [parameter for name, parameter in model.named_parameters() if "bias" in name or "LayerNorm" in name]
    kept = {id(parameter) for parameter in plain}
    groups = [{"params": [parameter for parameter in model.parameters() if id(parameter) not in kept], "weight_decay": arguments.weight_decay},
              {"params": plain, "weight_decay": 0.0}]
    return bitsandbytes.optim.Adam8bit(groups, lr=arguments.learning_rate, betas=(arguments.adam_beta1, arguments.adam_beta2), eps=arguments.adam_epsilon)


logging.set_verbosity_error()
BertConfig(**LARGE).save_pretrained(folder)
model = AutoModelForSequenceClassification.from_config(AutoConfig.from_pretrained(folder)).to("cuda")
model.zero_grad = functools.partial(model.zero_grad, set_to_none=False)  # the default of PyTorch before 2.0
chosen = TrainingArguments(output_dir=folder, num_train_epochs=1, log_level="error", report_to="none", save_strategy="no", **arguments)
optimizers = (adam_of_8_bits(model, chosen), None) if optimizer else (None, None)
trainer = Trainer(model=model, args=chosen, train_dataset=examples(), optimizers=optimizers)
print(trainer.train())
