"""Derives the levels of an operation's results from its operands: per element if the operation has a rule here, else that of the least
known operand. Numbers and host tensors are known."""
import sys

KNOWN, LIKELY, UNKNOWN = range(3)


def of(call):
    """Called before the operation. Returns one level, or for each result one or a tensor of them."""
    operation = call.operation
    worst = max((operand.worst for operand in read_operands(call)), default=KNOWN)
    if operation.random:
        return max(worst, LIKELY)
    if worst == KNOWN or operation.rule is None:
        return worst
    try:
        found = operation.rule(call)
    except Exception:
        return worst
    return found if isinstance(found, (int, list)) else [found] * 2


def read_operands(call):
    for name, tensor in call.tensors:
        if name not in call.unread and id(tensor) in call.operands:
            yield call.operands[id(tensor)]


def levels(call, value):
    """Returns the levels of an argument, in its shape."""
    torch = call.torch
    operand = call.operands.get(id(value))
    if operand is not None and operand.levels is not None:
        return operand.levels
    shape = value.shape if isinstance(value, torch.Tensor) else ()
    return torch._VF.full((), KNOWN if operand is None else operand.worst, dtype=torch.uint8, device="cpu").expand(shape)


def host(call, value):
    operand = call.operands.get(id(value))
    return operand.host if operand is not None else value


def highest(call, *several):
    found = several[0]
    for other in several[1:]:
        found = call.torch.maximum(found, other)
    return found


# --- rules ----------------------------------------------------------------------------------------------------------------


def pointwise(call):
    return highest(call, *(levels(call, tensor) for name, tensor in call.tensors if name not in call.unread))


def decided(call, first, second, decides):
    """Returns the levels if either operand can decide the result alone, as in true or unknown."""
    torch, both = call.torch, pointwise(call)
    for value in (first, second):
        own = torch.where(decides(torch.as_tensor(host(call, value))), levels(call, value), UNKNOWN)
        both = torch.minimum(both, own)
    return both.to(torch.uint8)


def either(call):
    """Logical or. A bitwise or of integers is treated as depending on both operands."""
    first, second = call.argument("self"), call.argument("other")
    if call.operation.base != "logical_or" and first.dtype != call.torch.bool:
        return pointwise(call)
    return decided(call, first, second, lambda values: values != 0)


def both(call):
    """Logical and, and the product of integers: zero times unknown is zero."""
    first, second = call.argument("self"), call.argument("other")
    if call.operation.base == "mul" and (first.is_floating_point() or first.is_complex()):
        return pointwise(call)
    return decided(call, first, second, lambda values: values == 0)


def where(call):
    torch, condition = call.torch, call.argument("condition")
    chosen = torch.where(host(call, condition), levels(call, call.argument("self")), levels(call, call.argument("other")))
    return highest(call, chosen, levels(call, condition))


def masked_fill(call):
    torch, mask = call.torch, call.argument("mask")
    return highest(call, torch.where(host(call, mask), levels(call, call.argument("value")), levels(call, call.argument("self"))), levels(call, mask))


def copy(call):
    return levels(call, call.argument("src"))


def reduced(call, found):
    """Returns the maximum along the operation's dimensions."""
    dim, keep = call.argument("dim"), bool(call.argument("keepdim", False))
    if dim is None or isinstance(dim, (list, tuple)) and not dim:
        return found.amax() if not keep else found.amax().view([1] * found.dim())
    return found.amax(dim, keep)


def reduction(call):
    return reduced(call, levels(call, call.argument("self")))


def deciding(call, decides):
    """all() and any(): one element may decide."""
    torch, looked = call.torch, call.argument("self")
    found = levels(call, looked)
    alone = torch.where(decides(host(call, looked)), found, UNKNOWN).to(torch.uint8)
    least = UNKNOWN - reduced(call, UNKNOWN - alone)
    return torch.minimum(reduced(call, found), least)


def conjunction(call):
    return deciding(call, lambda values: values == 0)


def disjunction(call):
    return deciding(call, lambda values: values != 0)


def along(call):
    """Keeps the shape; the elements along one dimension depend on each other."""
    found = levels(call, call.argument("self"))
    return found.amax(call.argument("dim", -1), True).expand(found.shape) if found.dim() else found


def running(call):
    found = levels(call, call.argument("self"))
    return found.cummax(call.argument("dim")).values if found.dim() else found


def ordered(call):
    """sort() and topk(): each result depends on all elements along the dimension."""
    found = levels(call, call.argument("self"))
    return found.amax(call.argument("dim", -1), True) if found.dim() else found


def concatenation(call):
    return call.torch.cat([levels(call, tensor) for tensor in call.argument("tensors")], call.argument("dim", 0))


def moved(call):
    """Moves the levels as the operation moves the elements: runs it on the levels of `self`."""
    arguments = [levels(call, value) if value is call.argument("self") else call.to_host(value) for value in call.args]
    return call.operation.host(*arguments, **{name: call.to_host(value) for name, value in call.kwargs.items() if name != "out"})


def selected(call):
    """Moves elements by an index that may itself be unknown."""
    index, found = call.argument("index"), levels(call, call.argument("self"))
    dim, own = call.argument("dim"), levels(call, index)
    if call.operation.base == "gather":
        return highest(call, found.gather(dim, host(call, index)), own)
    shape = [1] * found.dim()
    shape[dim] = -1
    return highest(call, found.index_select(dim, host(call, index)), own.reshape(shape))


def indexed(call):
    indices = [index for index in call.argument("indices") if index is not None]
    if any(call.operands[id(index)].worst != KNOWN for index in indices if id(index) in call.operands):
        return max(operand.worst for operand in read_operands(call))
    return call.operation.host(levels(call, call.argument("self")), [host(call, index) for index in call.argument("indices")])


def placed(call):
    """Writes some elements of a tensor; the other elements keep their levels: out[order] = values."""
    base, own, where = call.operation.base, levels(call, call.argument("self")).clone(), call.argument("indices", call.argument("index"))
    where = [host(call, index) for index in where] if isinstance(where, (list, tuple)) else host(call, where)
    unsure = any(call.operands[id(index)].worst != KNOWN for name, index in call.tensors if name in ("index", "indices") and id(index) in call.operands)
    if unsure or call.argument("accumulate") or call.argument("reduce") is not None:
        return max(operand.worst for operand in read_operands(call))
    source = next((call.argument(name) for name in ("values", "src", "source") if call.argument(name) is not None), None)
    source = KNOWN if source is None else levels(call, source)
    if base in ("index_put", "_index_put_impl"):
        return call.torch.ops.aten.index_put(own, where, source)
    return getattr(call.torch, base)(own, call.argument("dim"), where, source)


def product(call):
    """Matrix product: a row of one and a column of the other."""
    first = call.argument("self")
    second = call.argument("mat2")
    return highest(call, levels(call, first).amax(-1, True), levels(call, second).amax(-2, True))


def each(call):
    """Operations on lists: each position separately."""
    lists = [value for name, value in call.named() if isinstance(value, (list, tuple)) and name not in call.unread and any(isinstance(item, call.torch.Tensor) for item in value)]
    single = [levels(call, value) for name, value in call.named() if isinstance(value, call.torch.Tensor)]
    found = [highest(call, *(levels(call, item) for item in items), *single) for items in zip(*lists)]
    return [item.amax() for item in found] if call.operation.base in ("_foreach_norm", "_foreach_max") else found


RULES = {
    "logical_or": either, "bitwise_or": either, "__or__": either, "logical_and": both, "bitwise_and": both, "__and__": both, "mul": both,
    "where": where, "masked_fill": masked_fill, "copy": copy,
    "all": conjunction, "any": disjunction,
    "_softmax": along, "_log_softmax": along, "sort": ordered, "topk": ordered, "argsort": ordered, "cumsum": running, "cumprod": running,
    "cat": concatenation, "index_select": selected, "gather": selected, "index": indexed, **dict.fromkeys(("index_put", "_index_put_impl", "scatter", "index_copy", "index_fill"), placed),
    "mm": product, "bmm": product,
    **dict.fromkeys(("sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "var", "std", "logsumexp", "linalg_vector_norm", "norm"), reduction),
    **dict.fromkeys(("flip", "roll", "clone", "tril", "triu", "masked_select", "take", "constant_pad_nd", "repeat", "unfold_copy"), moved),
}


def rule_of(operation):
    if operation.base.startswith("_foreach_"):
        return each
    return RULES.get(operation.base) or (pointwise if operation.pointwise else None)
