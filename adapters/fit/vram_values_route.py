"""Which experts a router chooses (`vram fit --route`). A mixture of experts calls topk() or argmax() over the scores of its experts, for each
token. The scores are values of kernels, so the choice is made here by the shares of the experts; the counts, sorts and exchanges that follow
from it are computed like other integers.

VRAM_FIT_ROUTE is `balanced`, `worst`, or `EXPERT:SHARE,...`."""
import os

ROUTE = os.environ.get("VRAM_FIT_ROUTE", "")
MOST_EXPERTS = 1024  # more elements indicate a vocabulary
MOST_CHOICES = 1 << 22
SEEN = {}  # by number of experts and of choices per token: the number of calls


def shares(experts, chosen):
    """Returns the share of each expert; None if the route has an expert that does not exist."""
    if ROUTE == "balanced":
        return [1.0] * experts
    if ROUTE == "worst":  # the first experts, which the first rank has
        return [1.0] * chosen + [0.0] * (experts - chosen)
    given = dict(part.split(":") for part in ROUTE.split(","))
    if max(map(int, given)) >= experts:
        return None
    return [float(given.get(str(expert), 0)) for expert in range(experts)]


def counts(shares, tokens, chosen):
    """Returns how many tokens choose each expert. A token chooses an expert once, so what exceeds the number of tokens goes to the others, by
    their shares, and to experts without a share at last."""
    left, found, open_experts = tokens * chosen, [0] * len(shares), [i for i, share in enumerate(shares) if share > 0]
    while left and open_experts:
        total, rest = sum(shares[i] for i in open_experts), left
        exact = {i: rest * shares[i] / total for i in open_experts}
        given = {i: min(tokens - found[i], int(exact[i])) for i in open_experts}
        if not any(given.values()):  # fewer are left than there are experts: one each, the largest remainders first
            for i in sorted(open_experts, key=lambda i: -exact[i])[:left]:
                given[i] = 1
        for i in open_experts:
            found[i] += given[i]
            left -= given[i]
        open_experts = [i for i in open_experts if found[i] < tokens]
    for i in range(len(shares)):
        more = min(left, tokens - found[i])
        found[i] += more
        left -= more
    return found


def chosen_experts(torch, share, tokens, chosen):
    """Returns a tensor of `tokens` rows with different experts. The experts are laid out one after the other, over the rows again and again;
    none occurs more often than there are rows, so none occurs twice in a row."""
    number = torch._VF.tensor if hasattr(torch._VF, "tensor") else torch.tensor
    laid = torch._VF.repeat_interleave(number(counts(share, tokens, chosen), device="cpu"))
    return laid.view(chosen, tokens).t()


def is_routed(call):
    """Returns whether the call chooses among experts: largest elements along the last dimension, which is short, for several rows."""
    scores = call.argument("self") if ROUTE and call.operation.base in ("topk", "argmax") else None
    if scores is None or not scores.is_cuda or scores.dim() < 2 or not scores.is_floating_point() or not 2 <= scores.size(-1) <= MOST_EXPERTS:
        return False
    chosen = call.argument("k", 1)
    is_last = call.argument("dim", -1 if call.operation.base == "topk" else None) in (-1, scores.dim() - 1)
    tokens = scores.numel() // scores.size(-1)
    return (is_last and call.argument("largest", True) and 0 < chosen < scores.size(-1) and tokens * chosen <= MOST_CHOICES and tokens > 1
            and shares(scores.size(-1), chosen) is not None)


def row(call, i, tensor):
    """Returns the experts as the result's values; None for the scores of topk(), which stay unknown."""
    if i != (1 if call.operation.base == "topk" else 0):
        return None
    experts, chosen = call.argument("self").size(-1), call.argument("k", 1)
    SEEN[experts, chosen] = SEEN.get((experts, chosen), 0) + 1
    found = chosen_experts(call.torch, shares(experts, chosen), tensor.numel() // chosen, chosen)
    return found.reshape(tensor.shape).to(tensor.dtype)


def lines():
    """Returns lines for the process's facts (vram_fit.py)."""
    return [f"routed {calls} {experts} {chosen}" for (experts, chosen), calls in sorted(SEEN.items())]
