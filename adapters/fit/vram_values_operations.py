"""Selects the PyTorch operations to compute, with facts that their schemas do not contain."""
import re
import sys

import _vram_shared as shared

# Excluded: operations that only allocate or describe memory, that the driver itself performs, on tensor types whose elements are elsewhere,
# or that exist only on a device. pow() with a number on a device cannot be passed to Python.
LEFT = re.compile(r"_?empty|set_|resize|_local_scalar_dense|record_stream|is_|_?pin_memory|_?sparse|(_indices|_values|indices|values|crow_indices|col_indices)$|"
                  r".*(quant|mkldnn|miopen|nested|flash|efficient_attention|cudnn_attention|scaled_dot|cudnn_rnn|cudnn_init|thnn_fused|_to_copy|_coalesce|csr|coo|int4|int8|"
                  r"scaled_mm|scaled_grouped|grouped_mm|assert_async|_mixed_dtypes|_cslt|_convert_indices|_compute_linear|_transformer_encoder|_native_multi_head|_triton|"
                  r"_fused_sdp|_cufft|_storage|_symm|_use_)|pow\.Tensor_Tensor_out$")

# Operations with one kernel for all devices that calls no other operation.
ALL_DEVICES = {"aten::copy_", "aten::convolution_backward", "aten::ldexp.Tensor", "aten::ldexp_", "aten::ldexp.out"}

# Operations that libraries perform, which launch no kernels here. Their output must still be marked unknown.
BY_LIBRARY = re.compile(r"_?(add|ba?dd|add?b)?(mm|mv|bmm)(_dtype|_activation)?$|_?int_mm$|v?dot$|addr$|.*conv|_?cudnn|.*fft|_?linalg|.*cholesky|lu_|_lu|triangular_solve|geqrf|ormqr|orgqr|"
                        r".*householder|.*cudnn_attention|_?scaled_(grouped_)?mm")

# A result that the library does not write: the weights as passed in.
HANDED_ON = {"_cudnn_rnn": 4}

# Counts that an operation reads from a kernel's output. The operations inside such an operation are not computed.
COUNTED = {
    "nonzero": lambda torch, results: [results[0].size(0)],
    "masked_select": lambda torch, results: [results[0].numel()],
    "equal": lambda torch, results: [results[0]],
    "torchvision::nms": lambda torch, results: [results[0].size(0)],
    **dict.fromkeys(("_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "_unique"), lambda torch, results: [results[0].size(0)]),
}

# Arguments that are fully written and not read, although their names do not say so.
OVERWRITTEN = {"_cummax_helper": {"values", "indices"}, "_cummin_helper": {"values", "indices"}}
OVERWRITTEN |= dict.fromkeys(("rrelu_with_noise", "rrelu_with_noise_"), {"noise"})
# The saved values of an attention's forward pass are computed again instead.
KEPT = {"out", "logsumexp", "philox_seed", "philox_offset", "cum_seq_q", "cum_seq_k"}
OVERWRITTEN |= dict.fromkeys((f"_scaled_dot_product_{kind}_attention_backward" for kind in ("flash", "efficient", "cudnn")), KEPT)
# Arguments that a training step writes, although not all schemas say so.
UPDATED = {"rrelu_with_noise": {"noise"},
           **dict.fromkeys(("native_batch_norm", "cudnn_batch_norm", "batch_norm_update_stats", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"),
                           {"running_mean", "running_var"})}
# Operations that fully overwrite their first argument.
OVERWRITE = {"_foreach_copy_", "_foreach_zero_", "copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_"}


# Operations of other libraries to exclude: those that communicate with ranks, and those for tests.
OTHERS_LEFT = re.compile(r"_?(c10d|symm_mem|inductor|quanti|prim|debugprims|rngprims|profiler|dist)")


def names(torch):
    """Yields operations with a CUDA kernel, or with one for all devices that calls no other operation; of other libraries, only those that
    also have a host kernel."""
    known = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_all_op_names():
        if name in ALL_DEVICES or name.startswith("aten::") and known(name, "CUDA") and (name[6:] in ON_HOST or not LEFT.match(name[6:])):
            yield name
        elif not name.startswith("aten::") and known(name, "CUDA") and known(name, "CPU") and not OTHERS_LEFT.match(name):
            yield name


def convolution(torch):
    def on_host(self, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32, *, out=None):
        return torch.ops.aten.convolution.default(self, weight, None, stride, padding, dilation, False, [0] * len(padding), groups)
    return on_host


def transposed_convolution(torch):
    def on_host(self, weight, padding, output_padding, stride, dilation, groups, benchmark, deterministic, allow_tf32, *, out=None):
        return torch.ops.aten.convolution.default(self, weight, None, stride, padding, dilation, True, output_padding, groups)
    return on_host


def depthwise_convolution(torch):
    def on_host(self, weight, size, bias, stride, padding, dilation, *, out=None):
        return torch.ops.aten.convolution.default(self, weight, bias, stride, padding, dilation, False, [0] * len(padding), self.size(1))
    return on_host


def batch_normalisation_backward(torch):
    def on_host(self, gradient, weight, running_mean, running_var, mean, deviation, epsilon, reserve):
        return torch.ops.aten.native_batch_norm_backward.default(gradient, self, weight, running_mean, running_var, mean, deviation, True, epsilon, [True] * 3)
    return on_host


def batch_normalisation(torch):
    def on_host(self, weight, bias, running_mean, running_var, training, momentum, epsilon, *, out=None):
        made = torch.ops.aten.native_batch_norm.default(self, weight, bias, running_mean, running_var, training, momentum, epsilon)
        return (*made, torch._VF.empty(0, dtype=torch.uint8, device="cpu"))
    return on_host


def sampled_grid(torch):
    def on_host(self, grid):
        return torch.ops.aten.grid_sampler_2d.default(self, grid, 0, 0, True)
    return on_host


def recurrent(torch):
    """cuDNN's recurrent layers. Values needed only by the backward pass stay unknown."""
    def on_host(self, weight, stride, buffer, hidden, cell, mode, hidden_size, projected, layers, batch_first, dropout, train, both_ways, sizes, state):
        if dropout and train:
            raise NotHere("dropout between layers")
        function = (torch._VF.rnn_relu, torch._VF.rnn_tanh, torch._VF.lstm, torch._VF.gru)[mode]
        first = (hidden, cell) if cell is not None else hidden
        biases = stride > 3  # 3 for an LSTM with projections without biases
        if sizes:
            return function(self, torch.tensor(sizes, device="cpu"), first, weight, biases, layers, 0.0, False, both_ways)
        return function(self, first, weight, biases, layers, 0.0, False, both_ways, batch_first)
    return on_host


def lstm_cell(torch):
    def on_host(first, second, cell, first_bias=None, second_bias=None):
        gates = sum(part for part in (second, first_bias, second_bias) if part is not None) + first
        entrance, forget, made, leave = gates.chunk(4, 1)
        cell = forget.sigmoid() * cell + entrance.sigmoid() * made.tanh()
        return leave.sigmoid() * cell.tanh(), cell
    return on_host


def gru_cell(torch):
    def on_host(first, second, hidden, first_bias=None, second_bias=None):
        first, second = (part if bias is None else part + bias for part, bias in ((first, first_bias), (second, second_bias)))
        (reset, update, new), (own_reset, own_update, own_new) = first.chunk(3, 1), second.chunk(3, 1)
        made = (new + (reset + own_reset).sigmoid() * own_new).tanh()
        return made + (update + own_update).sigmoid() * (hidden - made),
    return on_host


class NotHere(Exception):
    """Raised if this call of the operation is not computed; others may be."""


def attend(torch, query, key, value, bias, dropout, causal, scale):
    """Computes the values only. The logarithms and the generator's state, for the backward pass, stay unknown."""
    if dropout:
        raise NotHere("attention with dropout")
    wide = [item.float() if item.dtype in (torch.bfloat16, torch.float16) else item for item in (query, key, value)]
    wide[1:] = [item.repeat_interleave(wide[0].size(1) // item.size(1), 1) if item.size(1) != wide[0].size(1) else item for item in wide[1:]]
    bias = bias if bias is None or bias.dtype == torch.bool else bias.to(wide[0].dtype)
    return torch.ops.aten._scaled_dot_product_attention_math.default(*wide, bias, 0.0, causal, scale=scale)[0].to(query.dtype)


def flash_attention(torch):
    def on_host(query, key, value, dropout=0.0, causal=False, mask=False, *, scale=None):
        return attend(torch, query, key, value, None, dropout, causal, scale)
    return on_host


def biased_attention(torch):
    def on_host(query, key, value, bias, logarithms, dropout=0.0, causal=False, mask=False, *, scale=None):
        return attend(torch, query, key, value, bias, dropout, causal, scale)
    return on_host


def attend_backward(torch, gradient, query, key, value, bias, dropout, causal, scale):
    """Computes the gradients of query, key, value and of the scores, which are those of a bias."""
    if dropout:
        raise NotHere("attention with dropout")
    groups = query.size(1) // key.size(1)
    wide = [item.float() if item.dtype in (torch.bfloat16, torch.float16) else item for item in (gradient, query, key, value)]
    gradient, scaled, keys, values = wide[0], wide[1] * (scale or query.size(-1) ** -0.5), *(item.repeat_interleave(groups, 1) for item in wide[2:])
    scores = scaled @ keys.transpose(-1, -2)
    if causal:
        scores = scores.masked_fill(torch._VF.ones(scores.shape[-2:], dtype=torch.bool, device="cpu").triu(1), float("-inf"))
    if bias is not None:
        scores = scores.masked_fill(~bias, float("-inf")) if bias.dtype == torch.bool else scores + bias.to(scores.dtype)
    shares = scores.softmax(-1)
    shared = gradient @ values.transpose(-1, -2)
    of_scores = shares * (shared - (shared * shares).sum(-1, keepdim=True))
    made = of_scores @ keys * (scale or query.size(-1) ** -0.5), of_scores.transpose(-1, -2) @ scaled, shares.transpose(-1, -2) @ gradient
    made = [made[0], *(item.unflatten(1, (-1, groups)).sum(2) for item in made[1:])]
    return [item.to(query.dtype) for item in made], of_scores


def flash_attention_backward(torch):
    def on_host(gradient, query, key, value, out, logarithms, starts_q, starts_k, most_q, most_k, dropout, causal, seed, offset, *, scale=None):
        return attend_backward(torch, gradient, query, key, value, None, dropout, causal, scale)[0]
    return on_host


def biased_attention_backward(torch):
    def on_host(gradient, query, key, value, bias, out, logarithms, seed, offset, dropout, wanted, causal=False, *, scale=None):
        made, of_scores = attend_backward(torch, gradient, query, key, value, bias, dropout, causal, scale)
        return [*made, of_scores.to(query.dtype) if bias is not None and wanted[3] else torch._VF.empty(0, device="cpu")]
    return on_host


def cudnn_attention_backward(torch):
    def on_host(gradient, query, key, value, out, logarithms, seed, offset, bias, starts_q, starts_k, most_q, most_k, dropout, causal, *, scale=None):
        return attend_backward(torch, gradient, query, key, value, bias, dropout, causal, scale)[0]
    return on_host


def scaled_product(torch):
    """The product of 8-bit matrices, with one scale each, or one per row of the first and column of the second."""
    def on_host(first, second, scale, second_scale, bias=None, result_scale=None, out_dtype=None, fast=False, *, out=None):
        if scale.numel() not in (1, first.size(0)) or second_scale.numel() not in (1, second.size(1)):
            raise NotHere("scales per block")
        made = (first.float() * scale.float().reshape(-1, 1)) @ (second.float() * second_scale.float().reshape(1, -1))
        return (made if bias is None else made + bias.float()).to(out_dtype or first.dtype)
    return on_host


# Host functions for operations that exist only on a device.
ON_HOST = {"cudnn_convolution": convolution, "cudnn_convolution_transpose": transposed_convolution, "cudnn_batch_norm": batch_normalisation,
           "cudnn_batch_norm_backward": batch_normalisation_backward, "_conv_depthwise2d": depthwise_convolution, "conv_depthwise3d": depthwise_convolution,
           "cudnn_grid_sampler": sampled_grid, "_cudnn_rnn": recurrent, "_thnn_fused_lstm_cell": lstm_cell, "_thnn_fused_gru_cell": gru_cell,
           "_scaled_dot_product_flash_attention": flash_attention,
           "_scaled_dot_product_flash_attention_backward": flash_attention_backward, "_scaled_dot_product_efficient_attention_backward": biased_attention_backward,
           "_scaled_dot_product_cudnn_attention_backward": cudnn_attention_backward, "_scaled_mm": scaled_product,
           "_scaled_dot_product_efficient_attention": biased_attention, "_scaled_dot_product_cudnn_attention": biased_attention}
ON_HOST |= shared.part("vram_values_layers").ON_HOST


NUMBERS, MOST_NUMBERS = {}, 10000  # tensors for numbers; no operation writes them


class Operation:
    def __init__(self, torch, op, call):
        schema = op._schema
        self.call, self.name = call, schema.name.removeprefix("aten::")
        self.base = self.name if self.name.startswith("__") else self.name.rstrip("_")
        self.pointwise = torch.Tag.pointwise in op.tags
        self.arguments = [argument.name for argument in schema.arguments]
        self.places = {name: i for i, name in enumerate(self.arguments)}
        self.written = {argument.name for argument in schema.arguments if argument.alias_info is not None and argument.alias_info.is_write}
        self.updated = UPDATED.get(self.base, set())
        self.unread = {argument.name for argument in schema.arguments if argument.is_out} | ({"self"} if self.name in OVERWRITE else OVERWRITTEN.get(self.name, set()))
        generator = next((argument for argument in schema.arguments if argument.name == "generator"), None)
        self.generator = None if generator is None else len(self.arguments) if generator.kwarg_only else self.places["generator"]
        self.random = generator is not None or torch.Tag.nondeterministic_seeded in op.tags
        on_host = ON_HOST.get(self.name) or ON_HOST.get(f"{self.name}.{schema.overload_name}")
        self.random = self.random and on_host is None
        self.listed = self.name.startswith(("_foreach", "_fused", "_amp_foreach"))
        self.scaled = "beta" in self.places or any(argument.name == "beta" for argument in schema.arguments)  # addmm() and similar ones
        self.host = op if on_host is None else on_host(torch)
        self.counted = COUNTED.get(self.base)
        self.by_library, self.handed_on = BY_LIBRARY.match(self.base) is not None, HANDED_ON.get(self.base)
        self.rule = sys.modules["_vram_values_levels"].rule_of(self)
        self.row = sys.modules["_vram_values_table"].ROWS.get(self.base)
        self.failures = 0
        # Positions of tensors, if the operation has two or more.
        self.tensors = [i for i, argument in enumerate(schema.arguments) if str(argument.type) == "Tensor" and not argument.kwarg_only]
        self.tensors = self.tensors if len(self.tensors) > 1 else []
        self.torch = torch

    def updates(self, args, kwargs):
        """Returns the arguments that this call writes although the schema may not say so."""
        given = {**dict(zip(self.arguments, args)), **kwargs}
        return [given.get(name) for name in self.updated] if given.get("training", True) else []

    def with_tensors(self, args):
        """Replaces numbers by tensors: for a tensor argument PyTorch passes a number to Python but does not accept one back. A tensor of
        the result's type is equivalent."""
        torch, args, other = self.torch, list(args), None
        for i in self.tensors:
            tensor = args[i] if i < len(args) else None
            if isinstance(tensor, torch.Tensor) and self.arguments[i] not in ("condition", "mask") and (other is None or tensor.dim() > other.dim()):
                other = tensor
        for i in self.tensors:
            if i < len(args) and isinstance(args[i], (int, float, complex)):
                args[i] = self.number(args[i], other)
        return tuple(args)

    def number(self, value, other):
        torch = self.torch
        key = type(value), value, None if other is None else (other.dtype, other.dim() == 0)
        found = NUMBERS.get(key)
        if found is None:
            kind = torch.result_type(value if other is None else other, value)
            found = torch._VF.scalar_tensor(value, dtype=kind, device="cpu")
            if len(NUMBERS) < MOST_NUMBERS and value == value:
                NUMBERS[key] = found
        return found
