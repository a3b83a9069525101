"""Host functions for norms, losses and products of layers whose operations exist only on a device.

Each takes the operation's arguments and returns its results. Sums run in double precision, where the device's kernels add in another order."""


def in_shape(channels, values):
    """Returns one number per channel in a shape that fits `values`, whose second dimension is the channels."""
    return channels.double().view(1, -1, *[1] * (values.dim() - 2))


def but_channels(values):
    return [0, *range(2, values.dim())]


def rms_norm_backward(torch):
    def on_host(gradient, values, shape, deviation, weight, wanted):
        dims = list(range(values.dim() - len(shape), values.dim()))
        deviation = deviation.double().reshape(*values.shape[:dims[0]], *[1] * len(shape))
        normed, gradient = values.double() * deviation, gradient.double()
        scaled = gradient if weight is None else gradient * weight.double()
        of_values = deviation * (scaled - normed * (scaled * normed).mean(dims, True))
        of_weight = None if weight is None else (gradient * normed).reshape(-1, *shape).sum(0).to(weight.dtype)
        return of_values.to(values.dtype), of_weight
    return on_host


def batch_norm_stats(torch):
    def on_host(values, epsilon):
        variance, mean = torch.var_mean(values.double(), but_channels(values), correction=0)
        return mean.float(), (variance + epsilon).rsqrt().float()
    return on_host


def batch_norm_elements(torch):
    def on_host(values, weight, bias, mean, deviation, epsilon, *, out=None):
        made = (values.double() - in_shape(mean, values)) * in_shape(deviation, values)
        made = made if weight is None else made * in_shape(weight, values)
        return (made if bias is None else made + in_shape(bias, values)).to(values.dtype)
    return on_host


def batch_norm_gather(torch):
    """Combines the means and deviations of all ranks, and updates the running ones in place."""
    def on_host(values, means, deviations, running_mean, running_var, momentum, epsilon, counts):
        counts = torch.as_tensor(counts, dtype=torch.double, device="cpu").expand(means.size(0)).view(-1, 1)
        total, means = counts.sum(), means.double()
        mean = (means * counts).sum(0) / total
        variance = ((deviations.double() ** -2 - epsilon + (means - mean) ** 2) * counts).sum(0) / total
        for running, own in ((running_mean, mean), (running_var, variance * total / (total - 1))):
            if running is not None:
                running.copy_(running * (1 - momentum) + own * momentum)
        return mean.to(deviations.dtype), (variance + epsilon).rsqrt().to(deviations.dtype)
    return on_host


def batch_norm_backward_sums(torch):
    def on_host(gradient, values, mean, deviation, weight, *wanted):
        gradient, dims = gradient.double(), but_channels(values)
        plain = gradient.sum(dims).to(mean.dtype)
        centred = (gradient * (values.double() - in_shape(mean, values))).sum(dims)
        kind = mean.dtype if weight is None else weight.dtype
        return plain, centred.to(mean.dtype), (centred * deviation).to(kind), plain.to(kind)
    return on_host


def batch_norm_backward_elements(torch):
    def on_host(gradient, values, mean, deviation, weight, plain, centred, count):
        total, wide = count.sum(), in_shape(deviation, values)
        made = gradient.double() - in_shape(plain, values) / total
        made = (made - (values.double() - in_shape(mean, values)) * wide ** 2 * in_shape(centred, values) / total) * wide
        return (made if weight is None else made * in_shape(weight, values)).to(values.dtype)
    return on_host


def ctc_loss(torch):
    """Returns the losses and, as cuDNN does, their gradients for the logarithms at once."""
    def on_host(logarithms, targets, lengths, target_lengths, blank, deterministic, zero_infinity):
        given = (targets, lengths, target_lengths)
        loss, alpha = torch.ops.aten._ctc_loss(logarithms, *given, blank, zero_infinity)
        return loss, torch.ops.aten._ctc_loss_backward(torch.ones_like(loss), logarithms, *given, loss, alpha, blank, zero_infinity)
    return on_host


def wide_product(torch):
    """Products of small types with a result of a larger one."""
    def on_host(first, second, out_dtype, *, out=None):
        return first.to(out_dtype) @ second.to(out_dtype)
    return on_host


def wide_product_added(torch):
    def on_host(added, first, second, out_dtype, *, beta=1, alpha=1, out=None):
        made = alpha * (first.to(out_dtype) @ second.to(out_dtype))
        return made if beta == 0 else made + beta * added.to(out_dtype)
    return on_host


def sampled_grid_backward(torch):
    def on_host(values, grid, gradient):
        return torch.ops.aten.grid_sampler_2d_backward(gradient, values, grid, 0, 0, True, [True, True])
    return on_host


# Keyed by the operation's name, or by name and overload if only that overload differs.
ON_HOST = {"_fused_rms_norm_backward": rms_norm_backward, "batch_norm_stats": batch_norm_stats, "batch_norm_elemt": batch_norm_elements,
           "batch_norm_gather_stats": batch_norm_gather, "batch_norm_gather_stats_with_counts": batch_norm_gather,
           "batch_norm_backward_reduce": batch_norm_backward_sums, "batch_norm_backward_elemt": batch_norm_backward_elements,
           "_cudnn_ctc_loss": ctc_loss, "cudnn_grid_sampler_backward": sampled_grid_backward,
           **dict.fromkeys(("mm.dtype", "bmm.dtype", "mm.dtype_out", "bmm.dtype_out"), wide_product),
           **dict.fromkeys(("addmm.dtype", "baddbmm.dtype", "addmm.dtype_out", "baddbmm.dtype_out"), wide_product_added)}
