"""Runs programs of HugePandaCoder/octree-nca-groupeq from a configuration only: the model as train_peso.py configures it, with fresh weights, and a slide of zeros
instead of the data set's. The recorded code is the repository's own notebook or script.

usage: octree_nca.py SOURCES FILE [--cells N...] [--steps N] [--size N N] [--kernel] [--history] [--before]
--cells: cells of a notebook, in this order; --kernel: runs levels with the repository's own CUDA kernel (`use_forward_cuda`); --history: records the last cell,
as the notebook's cells around it do; --before: runs it once before."""
import argparse
import copy
import json
import pathlib
import re
import sys

import numpy
import torch

KINDS_OF_COPY = 3  # the recordings have each parameter three times: in the model, its moving average, and the best model


def made_model(configs, steps):
    from src.models.Model_OctreeNCA_2d_patching2 import OctreeNCA2DPatch2

    config = {**configs.models.peso.peso_model_config, **configs.trainers.nca.nca_trainer_config, **configs.datasets.peso.peso_dataset_config,
              **configs.default.default_config}
    config["model.output_channels"], config["model.normalization"] = 1, "none"
    config["model.octree.res_and_steps"] = [[[320 >> level] * 2, steps if level < 4 else 20] for level in range(5)]
    return OctreeNCA2DPatch2(config).eval()


def cells_of(path):
    """Returns the code cells of a notebook, or a script as one cell."""
    text = path.read_text()
    if path.suffix == ".py":
        return [text]
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def without_data(text):
    """Removes the code that loads the experiment and reads the slide; both are made here."""
    text = re.sub(r"\A.*?(?=^def remove_names)", "", text, flags=re.S | re.M) if "def remove_names" in text else text
    return re.sub(r"^subject = .*?^slide = \(slide - mean\) / std$", "", text, flags=re.S | re.M)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].splitlines()[0])
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("file")
    parser.add_argument("--cells", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--size", type=int, nargs=2, default=[320, 320])
    for flag in ("--kernel", "--history", "--before"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(options.sources))
    import configs
    import einops
    import math
    import time

    import torch.nn.functional

    torch.set_grad_enabled(False)
    model = made_model(configs, options.steps)
    kept = [copy.deepcopy(model) for _ in range(KINDS_OF_COPY - 1)]
    for level in model.backbone_ncas:
        level.use_forward_cuda = options.kernel
    names = {"torch": torch, "einops": einops, "math": math, "time": time, "np": numpy, "F": torch.nn.functional, "model": model, "kept": kept,
             "slide": numpy.zeros((*options.size, 3), numpy.float32)}
    try:
        import nca_cuda

        names["nca_cuda"] = nca_cuda
    except ImportError:
        pass  # the early versions do not have it
    texts = cells_of(options.sources / options.file)
    cells = [compile(without_data(texts[number]), options.file, "exec") for number in options.cells]
    for cell in cells[:-1]:
        exec(cell, names)
    if options.before:
        exec(cells[-1], names)
    if options.history:
        torch.cuda.memory._record_memory_history()
    exec(cells[-1], names)
    if options.history:
        torch.cuda.memory._dump_snapshot("my_snapshot.pickle")


if __name__ == "__main__":
    main()
