"""Computes small operations on sparse tensors, whose indices and values are device tensors of their own.

The whole operation is repeated on the host. While the operation counts the elements of its result, as coalesce() does, the operations that
it calls on the device are not computed separately. The count comes from the host, so that the result has the same size as on a GPU."""
import ctypes
import re
import sys

KNOWN, LIKELY, UNKNOWN = range(3)
LAYOUTS = (("SparseCUDA", "SparseCPU"), ("SparseCsrCUDA", "SparseCsrCPU"))

# Excluded: operations that only describe or build a tensor, or change its size.
LEFT = re.compile(r"_?(dim[IV]|nnz|coalesced_|indices|values|crow_indices|col_indices|ccol_indices|row_indices)$|is_|dense_dim|sparse_dim|.*empty|.*resize|"
                  r"_sparse_coo_tensor_with|.*pin|.*\.out|.*_out$|unsqueeze|permute|select|normal_|copy_sparse")
COUNTING = {"_coalesce"}
NARROW = {"_coalesce"}  # the number of elements and their indices do not depend on the values


class Sparse:
    """One operation on one layout of sparse tensors."""

    def __init__(self, values, op, key):
        torch = values.torch
        self.values, self.torch, self.op = values, torch, op
        self.name, self.failures = op._schema.name.removeprefix("aten::"), 0
        self.operation = sys.modules["_vram_values_operations"].Operation(torch, op, None)
        self.keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
        self.call = torch.library.get_kernel(op, key).call_boxed

    def run(self, *args, **kwargs):
        values, found = self.values, None
        if any(isinstance(args[place], (int, float, complex)) for place in self.operation.tensors if place < len(args)):
            args = self.operation.with_tensors(args)
        if self.failures < sys.modules["_vram_values"].FAILURES and values.graphs.current is None and not getattr(values.local, "counted", False):
            found = values.without_harm(self, self.compute, args, kwargs)
        if found is None:
            return self.call(self.keys, *args, **kwargs)
        result, levels, read = found
        shields = self.shield(read)
        values.local.counted = self.name in COUNTING
        if values.local.counted:
            values.driver.answer((ctypes.c_int64 * 1)(result._nnz()), 1, levels[0])
        try:
            made = self.call(self.keys, *args, **kwargs)
        finally:
            values.local.counted = False
            values.driver.end(shields)
        values.without_harm(self, self.store, made, result, levels)
        return made

    def shield(self, read):
        """Protects the operands' memory from the kernels; the results are stored there at the end."""
        room = ctypes.c_uint64 * len(read)
        sizes = room(*(self.values.memory.extent(tensor) * tensor.element_size() for tensor in read))
        return self.values.driver.shield(room(*(tensor.data_ptr() for tensor in read)), sizes, len(read))

    def compute(self, args, kwargs):
        """Returns the result on the host, the levels of its indices and of its values, and the device tensors that were read; None if the
        operands are not small."""
        levels, read = [KNOWN, KNOWN], []
        every = sys.modules["_vram_values_call"].flat([*args, *kwargs.values()])
        device = next((item.device.index for item in every if isinstance(item, self.torch.Tensor) and item.is_cuda), None)
        if device is None or self.values.driver.begin(device, self.values.stream(device)) != 0:
            return None
        try:
            args = [self.on_host(value, levels, read) for value in args]
            kwargs = {name: self.on_host(value, levels, read) for name, value in kwargs.items()}
            return None if levels[0] == UNKNOWN else (self.op(*args, **kwargs), levels, read)
        except (TooLarge, NotImplementedError):
            return None

    def on_host(self, value, levels, read):
        torch = self.torch
        if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
            return [self.on_host(item, levels, read) for item in value]
        if not isinstance(value, torch.Tensor):
            return torch.device("cpu") if isinstance(value, torch.device) else value
        if not value.is_cuda:
            return value
        *places, numbers = parts(torch, value)
        read += [*places, numbers]
        places = [self.fetch(part, levels, 0) for part in places]
        numbers = self.fetch(numbers, levels, 1)
        if not places:
            return numbers
        if value.layout is torch.sparse_coo:
            size = (*value.shape[:value.sparse_dim()], *numbers.shape[1:])
            return torch.sparse_coo_tensor(*places, numbers, size, check_invariants=False)._coalesced_(value.is_coalesced())
        return torch.sparse_csr_tensor(*places, numbers, value.shape, check_invariants=False)

    def fetch(self, tensor, levels, kind):
        found = self.values.memory.fetch(tensor)
        if found is None and kind == 1 and self.name in NARROW:
            levels[1] = UNKNOWN
            return self.torch._VF.zeros(tensor.size(0), dtype=tensor.dtype, device="cpu")
        if found is None:
            raise TooLarge
        levels[kind] = max(levels[kind], found.worst)
        return found.host

    def store(self, made, result, levels):
        torch = self.torch
        if not isinstance(made, torch.Tensor) or made.layout is not result.layout:
            return
        worst = max(levels)
        parts_made, parts_found = parts(torch, made), parts(torch, result)
        for i, (part, found) in enumerate(zip(parts_made, parts_found)):
            level = worst if i == len(parts_made) - 1 else levels[0]
            if level == UNKNOWN:
                self.values.memory.put(part, None, level)
            elif part.shape == found.shape:  # else the device builds the result from dense parts, which are computed on their own
                self.values.memory.put(part, found, level)


class TooLarge(Exception):
    """Raised for an operand that is not small, or whose layout is not handled."""


def parts(torch, tensor):
    """Returns a tensor's indices and, last, its values."""
    if tensor.layout is torch.strided:
        return [tensor]
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout is torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    raise TooLarge


def install(values):
    """Replaces the operations that have a kernel for a sparse layout on the device and on the host. Needs PyTorch 2.9, whose replaced
    kernels can still be called."""
    torch = values.torch
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_all_op_names():
        for key, host in LAYOUTS:
            if name.startswith("aten::") and has(name, key) and has(name, host) and not LEFT.match(name[6:]):
                packet, _, overload = name[6:].partition(".")
                op = getattr(getattr(torch.ops.aten, packet), overload or "default")
                if not op.is_view:
                    place(values, op, key)


def place(values, op, key):
    run = Sparse(values, op, key).run

    def kernel(*args, **kwargs):
        try:
            return run(*args, **kwargs)
        except BaseException as error:
            args = kwargs = None  # drop them, because the frame stays with the error
            raise error.with_traceback(None)

    sys.modules["_vram_shared"].leave_to_python(values.torch, kernel.__code__)
    values.library("aten").impl(op, kernel, key, allow_override=True)
