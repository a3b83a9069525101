"""Which of PyTorch's operations are computed, and what is to be known of them beyond their schema."""
import re
import sys

# Not: what only makes memory, or says something of it; what the driver does itself; types of tensors whose elements lie elsewhere; what only
# a device has.
LEFT = re.compile(r"_?empty|set_|resize|_local_scalar_dense|record_stream|is_|_?pin_memory|_?sparse|.*(quant|mkldnn|miopen|nested|flash|efficient_attention|"
                  r"cudnn_attention|scaled_dot|cudnn_rnn|cudnn_init|thnn_fused|_to_copy|_coalesce|_values|_indices|csr|coo|int4|int8|scaled_mm|scaled_grouped|grouped_mm|"
                  r"assert_async|_mixed_dtypes|_cslt|_convert_indices|_compute_linear|_transformer_encoder|_native_multi_head|_triton|_fused_sdp|_cufft|_storage|_symm|_use_)")

# The operation calls others on its way and reads what they made: those are computed, each for itself.
NESTS = {"bincount", "repeat_interleave", "index", "_index_put_impl", "index_put", "_unsafe_index", "histc", "segment_reduce", "ctc_loss", "_ctc_loss", "masked_scatter"}

# What a call reads on its way that a kernel has counted.
COUNTED = {
    "nonzero": lambda torch, results: [results[0].size(0)],
    "masked_select": lambda torch, results: [results[0].numel()],
    "equal": lambda torch, results: [results[0]],
    **dict.fromkeys(("_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "_unique"), lambda torch, results: [results[0].size(0)]),
}

# All of the first argument is written, nothing of it is read.
OVERWRITE = {"copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_"}


def names(torch):
    """Those that have a kernel for CUDA, or one for all devices that calls no other operation."""
    known = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_all_op_names():
        if name == "aten::copy_" or name.startswith("aten::") and known(name, "CUDA") and not LEFT.match(name[6:]):
            yield name


def convolution(torch):
    def on_host(self, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32, *, out=None):
        return torch.ops.aten.convolution.default(self, weight, None, stride, padding, dilation, False, [0] * len(padding), groups)
    return on_host


def transposed_convolution(torch):
    def on_host(self, weight, padding, output_padding, stride, dilation, groups, benchmark, deterministic, allow_tf32, *, out=None):
        return torch.ops.aten.convolution.default(self, weight, None, stride, padding, dilation, True, output_padding, groups)
    return on_host


# Of operations that only a device has, the one that does the same.
ON_HOST = {"cudnn_convolution": convolution, "cudnn_convolution_transpose": transposed_convolution}


class Operation:
    def __init__(self, torch, op, kernel):
        schema = op._schema
        self.call, self.name = kernel.call_boxed, schema.name.removeprefix("aten::")
        self.base = self.name if self.name.startswith("__") else self.name.rstrip("_")
        self.pointwise = torch.Tag.pointwise in op.tags
        self.arguments = [argument.name for argument in schema.arguments]
        self.places = {name: i for i, name in enumerate(self.arguments)}
        self.written = {argument.name for argument in schema.arguments if argument.alias_info is not None and argument.alias_info.is_write}
        self.unread = {argument.name for argument in schema.arguments if argument.is_out} | ({"self"} if self.name in OVERWRITE else set())
        generator = next((argument for argument in schema.arguments if argument.name == "generator"), None)
        self.generator = None if generator is None else len(self.arguments) if generator.kwarg_only else self.places["generator"]
        self.random = generator is not None or torch.Tag.nondeterministic_seeded in op.tags
        self.host = ON_HOST[self.name](torch) if self.name in ON_HOST else op
        self.nests = self.base in NESTS
        self.counted = COUNTED.get(self.base)
        self.rule = sys.modules["_vram_values_levels"].rule_of(self)
        self.row = sys.modules["_vram_values_table"].ROWS.get(self.base)
        self.failures = 0
        # Places of tensors, of operations of two or more.
        self.tensors = [i for i, argument in enumerate(schema.arguments) if str(argument.type) == "Tensor" and not argument.kwarg_only]
        self.tensors = self.tensors if len(self.tensors) > 1 else []
        self.torch = torch

    def with_tensors(self, args):
        """A number in the place of a tensor: PyTorch gives functions in Python the number, and takes none back. A tensor of the type that the
        number would have had in the result does the same."""
        torch, args = self.torch, list(args)
        types = [args[i] for i in self.tensors if i < len(args) and isinstance(args[i], torch.Tensor) and self.arguments[i] not in ("condition", "mask")]
        for i in self.tensors:
            if i < len(args) and isinstance(args[i], (int, float, complex)):
                kind = torch.result_type(max(types, key=torch.Tensor.dim) if types else args[i], args[i])
                args[i] = torch.scalar_tensor(args[i], dtype=kind, device="cpu")
        return tuple(args)
