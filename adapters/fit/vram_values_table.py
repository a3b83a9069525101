"""What is taken for granted where an operation looks at what is unknown: its results are likely then, and reads of them are listed.

Each row is a function of a call, the number of a result and the result's tensor; it gives the result's values on the host, or None: it stays
unknown, and reads give zero. `--value` and `--values` override all of it, read by read."""
import math

MOST_BYTES = 65536  # of a result: what a program looks at is small
MOST_REALS = 1024  # elements of a result of real numbers: most are parts of a training step, which no program looks at
LARGE = 1000  # elements of a vocabulary rather than of a list of experts


def full(call, tensor, value):
    return call.torch.full(tensor.shape, value, dtype=tensor.dtype, device="cpu")


def true(call, i, tensor):
    """A check of what ought to hold passes: isfinite(x).all(), (mask == 1).all(), torch.equal()."""
    return full(call, tensor, True)


def false(call, i, tensor):
    """Nothing exceptional is found: isnan(x).any(), a stop token among those that were made."""
    return full(call, tensor, False)


def one(call, i, tensor):
    """Sums, norms, means, losses and extremes of real numbers are finite, and a division by them is possible."""
    return full(call, tensor, 1) if tensor.is_floating_point() and tensor.numel() <= MOST_REALS else None


def size_of(call, default=-1):
    looked, dim = call.argument("self"), call.argument("dim", default)
    if looked is None or not looked.dim():
        return 1
    return looked.numel() if dim is None else looked.size(dim)


def first_of(size):
    """A token that is inside the vocabulary, and not one of those at its ends, where stop tokens are; nor is it so where the vocabularies of several
    beams make one list. Of a few experts the first one."""
    return size * 382 // 1000 if size > LARGE else 0


def place(call, i, tensor):
    """argmax() and a sampled token."""
    return full(call, tensor, first_of(size_of(call, None)))


def extreme(call, i, tensor):
    """max() and min() along a dimension: a value, and its place."""
    return one(call, i, tensor) if i == 0 else full(call, tensor, first_of(size_of(call)))


def places(call, i, tensor):
    """Samples and the places of the largest elements, which differ: counted up from the first one."""
    dim = call.argument("dim", -1)
    counted = 0 if call.operation.base in ("topk", "multinomial") and size_of(call) <= LARGE else first_of(size_of(call))
    return along(call, tensor, dim, min(counted, max(0, size_of(call) - (tensor.size(dim) if tensor.dim() else 1))))


def order(call, i, tensor):
    """sort() and argsort() give every place once."""
    return along(call, tensor, call.argument("dim", -1), 0)


def along(call, tensor, dim, first):
    if not tensor.dim():
        return full(call, tensor, first)
    shape = [1] * tensor.dim()
    shape[dim] = -1
    numbers = call.torch.arange(first, first + tensor.size(dim), device="cpu").view(shape)
    return numbers.expand(tensor.shape).to(tensor.dtype)


def second(row):
    """For operations whose second result is a list of places, the first one values."""
    def both(call, i, tensor):
        return row(call, i, tensor) if i == 1 else None
    return both


def same(call, i, tensor):
    """x == x, a half of isfinite(x)."""
    return full(call, tensor, True) if call.argument("self") is call.argument("other") else None


def not_infinite(call, i, tensor):
    """x != inf, the other half."""
    other = call.argument("other")
    return full(call, tensor, True) if isinstance(other, float) and not math.isfinite(other) else None


# By the name of the operation without its overload; `_` at the end of those in place is left out.
ROWS = {
    "all": true, "any": false,
    "eq": same, "ne": not_infinite,
    "sum": one, "mean": one, "norm": one, "linalg_vector_norm": one, "_foreach_norm": one, "prod": one, "var": one, "std": one, "logsumexp": one,
    "nll_loss_forward": one, "nll_loss2d_forward": one, "mse_loss": one, "smooth_l1_loss": one, "huber_loss": one, "binary_cross_entropy": one,
    "amax": one, "amin": one, "aminmax": one, "max": extreme, "min": extreme, "median": extreme,
    "argmax": place, "argmin": place, "multinomial": places,
    "topk": second(places), "sort": second(order), "argsort": order,
}


def is_for_what_is_computed(call):
    """Whether the row goes before what was computed with zeros in the place of what is unknown. Not where it only stands in for a computation that was too large,
    and not of the places in a short list: computed ones respect what is known of it."""
    base = call.operation.base
    if base in ("any", "eq", "ne"):
        return False
    return base not in ("topk", "sort", "argsort", "argmax", "argmin", "max", "min") or size_of(call, None if base.startswith("arg") else -1) > LARGE
