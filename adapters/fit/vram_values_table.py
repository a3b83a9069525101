"""Assumed results of operations on unknown values. They are likely, and reads of them are listed.

Each row is a function of a call, a result's index and its tensor. It returns the result's values on the host, or None to leave it
unknown, so that reads return zero. `--value` and `--values` override everything, read by read."""
import math

MOST_BYTES = 65536  # of a result; programs read only small ones
MOST_REALS = 1024  # elements of a floating-point result; most larger ones are parts of a training step that no program reads
LARGE = 1000  # more elements indicate a vocabulary rather than a list of experts


def full(call, tensor, value):
    return call.torch._VF.full(tensor.shape, value, dtype=tensor.dtype, device="cpu")


def true(call, i, tensor):
    """A validity check passes: isfinite(x).all(), (mask == 1).all(), torch.equal()."""
    return full(call, tensor, True)


def false(call, i, tensor):
    """Nothing exceptional is found: isnan(x).any(), a stop token among the generated ones."""
    return full(call, tensor, False)


def one(call, i, tensor):
    """Sums, norms, means, losses and extremes are finite and can be divided by."""
    return full(call, tensor, 1) if tensor.is_floating_point() and tensor.numel() <= MOST_REALS else None


def size_of(call, default=-1):
    looked, dim = call.argument("self"), call.argument("dim", default)
    if looked is None or not looked.dim():
        return 1
    return looked.numel() if dim is None else looked.size(dim)


def first_of(size):
    """Returns a token inside the vocabulary and away from its ends, where stop tokens are, even if the vocabularies of several beams form
    one list. For a few experts, returns the first."""
    return size * 382 // 1000 if size > LARGE else 0


def place(call, i, tensor):
    """argmax() and sampled tokens."""
    return full(call, tensor, first_of(size_of(call, None)))


def extreme(call, i, tensor):
    """max() and min() along a dimension: a value and its index."""
    return one(call, i, tensor) if i == 0 else full(call, tensor, first_of(size_of(call)))


def places(call, i, tensor):
    """Samples, and indexes of the largest elements. They are distinct, so the values are consecutive from the first."""
    dim = call.argument("dim", -1)
    counted = 0 if call.operation.base in ("topk", "multinomial") and size_of(call) <= LARGE else first_of(size_of(call))
    return along(call, tensor, dim, min(counted, max(0, size_of(call) - (tensor.size(dim) if tensor.dim() else 1))))


def order(call, i, tensor):
    """sort() and argsort(): each index once."""
    return along(call, tensor, call.argument("dim", -1), 0)


def along(call, tensor, dim, first):
    if not tensor.dim():
        return full(call, tensor, first)
    shape = [1] * tensor.dim()
    shape[dim] = -1
    numbers = call.torch._VF.arange(first, first + tensor.size(dim), device="cpu").view(shape)
    return numbers.expand(tensor.shape).to(tensor.dtype)


def second(row):
    """For operations whose first result is values and whose second is indexes."""
    def both(call, i, tensor):
        return row(call, i, tensor) if i == 1 else None
    return both


def same(call, i, tensor):
    """x == x, one half of isfinite(x)."""
    return full(call, tensor, True) if call.argument("self") is call.argument("other") else None


def not_infinite(call, i, tensor):
    """x != inf, the other half."""
    other = call.argument("other")
    return full(call, tensor, True) if isinstance(other, float) and not math.isfinite(other) else None


# Keyed by the operation's name, without its overload and without the final `_` of in-place variants.
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
    """Returns whether the row takes precedence over results computed with zeros for unknown values. Returns False for rows that only replace
    computations that are too large, and for indexes in a short list, because computed indexes respect the known values."""
    base = call.operation.base
    if base in ("any", "eq", "ne"):
        return False
    return base not in ("topk", "sort", "argsort", "argmax", "argmin", "max", "min") or size_of(call, None if base.startswith("arg") else -1) > LARGE
