"""Checks values of PyTorch's own operator database under `vram sim`: torch_values.py {row}. Each operation's small samples, on the device and on the host,
must agree within the tolerance of torch.testing. A line of values_known.tsv names an operation that does not agree, and the reason. Any other disagreement
is an error, and so are fewer than 400 operations or 95 % of the samples."""
import collections
import pathlib
import sys
import time
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

KNOWN = pathlib.Path(__file__).with_name("values_known.tsv")
LIMIT, SAMPLES, SECONDS = 65536, 8, 6
LEAST_OPERATIONS, LEAST_SHARE = 400, 0.95
DECOMPOSED = ("linalg.", "svd", "pca", "pinverse")  # their factors are exact to fewer digits


def read_known():
    lines = [line.split("\t") for line in KNOWN.read_text().splitlines() if line and not line.startswith("#")]
    return {name: why for name, why in lines}


def on(device, value):
    def move(item):
        if isinstance(item, torch.Tensor):
            return item.to(device)
        return torch.device(device) if isinstance(item, torch.device) or item == "cpu" else item
    return tree_map(move, value)


def is_small(values):
    return all(not isinstance(item, torch.Tensor) or item.numel() * item.element_size() <= LIMIT for item in tree_leaves(values))


def dense(tensor):
    return (tensor if tensor.layout is torch.strided else tensor.to_dense()).cpu()


def differ(name, made, expected):
    """Returns the difference, or None."""
    made, expected = tree_leaves(made), tree_leaves(expected)
    if len(made) != len(expected):
        return f"{len(made)} results for {len(expected)}"
    tolerance = {"rtol": 2e-3, "atol": 2e-3} if name.startswith(DECOMPOSED) else {"rtol": None, "atol": None}
    for one, other in zip(made, expected):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(dense(one), dense(other), equal_nan=True, check_stride=False, **tolerance)
        elif one != other:
            return f"{one} for {other}"
    return None


def samples_of(operation):
    kinds = operation.supported_dtypes("cpu")
    kind = torch.float32 if torch.float32 in kinds else sorted(kinds, key=str)[0]
    begun = time.monotonic()
    for number, sample in enumerate(operation.sample_inputs("cpu", kind, requires_grad=False)):
        if number >= SAMPLES or time.monotonic() - begun > SECONDS:
            return
        yield (sample.input, *sample.args), sample.kwargs


def outcomes(operation, name):
    """Yields, for each small sample that the host supports, the difference or None."""
    for args, kwargs in samples_of(operation):
        try:
            expected = operation(*on("cpu", args), **on("cpu", kwargs))
        except Exception:
            continue
        if not is_small((args, kwargs, expected)):
            continue
        try:
            yield differ(name, operation(*on("cuda", args), **on("cuda", kwargs)), expected)
        except Exception as error:
            yield f"{type(error).__name__}: {error}".replace("\n", " ")[:150]


def main():
    warnings.simplefilter("ignore")
    known, good, wrong, right = read_known(), 0, collections.defaultdict(list), set()
    for operation in op_db:
        name = operation.name + ("." + operation.variant_test_name if operation.variant_test_name else "")
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        try:
            found = list(outcomes(operation, name))
        except Exception as error:
            print(f"no samples of {name}: {error!r}"[:200])
            continue
        good += found.count(None)
        wrong[name] += [what for what in found if what is not None]
        right |= {name} if found and not wrong[name] else set()
    total = good + sum(map(len, wrong.values()))
    share = good / total if total else 0.0
    counted = sum(len(what) for name, what in wrong.items() if name not in known)
    print(f"{len(right)} operations whose samples all agree; {good} of {total} samples, {100 * share:.1f} %; {counted} wrong in operations that are not listed")
    for name, what in wrong.items():
        if what:
            print(f"{'listed' if name in known else 'WRONG'}  {len(what)} {name}: {what[0]}")
    enough = len(sys.argv) > 2 or len(right) >= LEAST_OPERATIONS and share >= LEAST_SHARE
    if enough and counted == 0:
        print("ok")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
