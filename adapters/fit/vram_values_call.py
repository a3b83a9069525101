"""Handles one call of an operation with small operands: fetches them before the call and stores the results after it."""
import ctypes
import hashlib
import re
import sys

KNOWN, LIKELY, UNKNOWN = range(3)
MOST_SHIELDS = 8
MANY = 16  # operands or results
EVERYWHERE, EVERYWHERE_SIZE = (ctypes.c_uint64 * 1)(0), (ctypes.c_uint64 * 1)(2**64 - 1)
# A type as PyTorch's error names it, and the one to compute in instead.
WIDER = {"Half": ("float16", "float32"), "BFloat16": ("bfloat16", "float32"), "Bool": ("bool", "uint8"),
         **{name: (kind, "float64") for name, kind in (("Byte", "uint8"), ("Char", "int8"), ("Short", "int16"), ("Int", "int32"), ("Long", "int64"))}}
TINY = 1024  # elements; a tensor this small is computed with zeros even if it is unknown


def begin(values, operation, args, kwargs):
    """Returns a Call with work to do at the end; None if nothing is known."""
    call = Call(values, operation, args, kwargs)
    if call.device is None or values.driver.begin(call.device, values.stream(call.device)) != 0:
        return None
    if not call.routed and call.fetch():
        call.compute()
    return call if call.results is not None or operation.row is not None else None


def flat(value):
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (list, tuple)) else [value]


def widened(torch, value, narrow, wide):
    """Returns a value with its tensors of type `narrow` converted to `wide`."""
    if isinstance(value, (list, tuple)):
        return [widened(torch, item, narrow, wide) for item in value]
    return value.to(wide) if isinstance(value, torch.Tensor) and value.dtype == narrow else value


class Call:
    def __init__(self, values, operation, args, kwargs):
        self.values, self.torch, self.operation = values, values.torch, operation
        self.args, self.kwargs = args, kwargs
        self.operands = {}  # by id of the tensor
        self.results, self.levels = None, None
        self.number = 0  # in a captured graph, whose operations all see the same generator state
        self.unread = operation.unread | {"self"} if operation.scaled and self.argument("beta", 1) == 0 else operation.unread
        self.tensors = list(self.find_tensors())
        self.written = operation.written
        if operation.updated:
            self.written = self.written | operation.updated if self.argument("training", True) else self.written - operation.updated
        self.device = self.find_device()
        self.routed = operation.row is not None and sys.modules["_vram_values_route"].is_routed(self)

    def named(self):
        yield from zip(self.operation.arguments, self.args)
        yield from self.kwargs.items()

    def argument(self, name, default=None):
        """Returns an argument by its name in the schema."""
        place = self.operation.places.get(name, len(self.args))
        return self.args[place] if place < len(self.args) else self.kwargs.get(name, default)

    def find_tensors(self):
        kind = self.torch.Tensor
        for name, value in self.named():
            if isinstance(value, kind):
                yield name, value
            elif isinstance(value, (list, tuple)):
                yield from ((name, item) for item in value if isinstance(item, kind))

    def find_device(self):
        """Returns the device's number; None for the host."""
        device = next((tensor.device for _, tensor in self.tensors if tensor.is_cuda), self.kwargs.get("device"))
        if device is None or self.torch.device(device).type != "cuda":
            return None
        index = self.torch.device(device).index
        return self.torch._C._cuda_getDevice() if index is None else index

    # --- before the call -------------------------------------------------------------------------------------------------

    def fetch(self):
        """Fetches the operands. Returns whether all are small and the computation is worthwhile."""
        read = unknown = idle = 0
        for name, tensor in self.tensors:
            if not tensor.is_cuda and name in self.written:
                return False
            if not tensor.is_cuda or id(tensor) in self.operands:
                continue
            found = self.values.memory.fetch(tensor)
            if found is None:
                return False
            self.operands[id(tensor)] = found
            if name not in self.unread:
                read += 1
                if found.worst == UNKNOWN and found.levels is None:
                    unknown += 1
                    idle += tensor.numel() > TINY and not bool(found.host.any())
                if read == unknown == MANY:
                    return False  # such as gradients' norms: the others will not be better known
        return read == 0 or idle < read

    def to_host(self, value):
        if isinstance(value, self.torch.Tensor):
            return self.operands[id(value)].host if value.is_cuda else value
        if isinstance(value, self.torch.device):
            return self.torch.device("cpu")
        if isinstance(value, (list, tuple)) and any(isinstance(item, self.torch.Tensor) for item in value):
            return [self.to_host(item) for item in value]
        return None if isinstance(value, self.torch.Generator) else value

    def compute(self):
        operation = self.operation
        args = [self.to_host(value) for value in self.args]
        kwargs = {name: self.to_host(value) for name, value in self.kwargs.items() if name != "pin_memory"}
        levels = sys.modules["_vram_values_levels"].of(self)
        try:
            results = flat(self.on_host(args, kwargs))
        except sys.modules["_vram_values_operations"].NotHere:
            return
        except Exception:
            operation.failures += 1
            return
        self.results, self.levels = results, levels
        if operation.counted is not None:
            self.answer([int(number) for number in operation.counted(self.torch, self.results)])

    def on_host(self, args, kwargs):
        """Runs the operation on the host: in a wider type if the host has no kernel for the one that it is called with."""
        function = self.draw if self.operation.random else lambda args, kwargs: self.operation.host(*args, **kwargs)
        try:
            return function(args, kwargs)
        except RuntimeError as error:
            missing = re.search(r"not implemented for '(\w+)'", str(error))
            if missing is None or missing[1] not in WIDER or self.written:
                raise
            narrow, wide = (getattr(self.torch, name) for name in WIDER[missing[1]])
        return function(widened(self.torch, args, narrow, wide), {name: widened(self.torch, value, narrow, wide) for name, value in kwargs.items()})

    def draw(self, args, kwargs):
        """Draws random numbers from a seed derived from the device generator's state, so that equal seeds give equal numbers."""
        torch, operation = self.torch, self.operation
        given = next((value for _, value in self.named() if isinstance(value, torch.Generator)), None)
        state = (given or torch.cuda.default_generators[self.device]).get_state()
        seed = int.from_bytes(hashlib.blake2b(state.numpy().tobytes() + self.number.to_bytes(4, "little"), digest_size=7).digest(), "little")
        if operation.generator is not None:
            if operation.generator < len(args):
                args[operation.generator] = self.values.generator.manual_seed(seed)
                return operation.host(*args, **kwargs)
            return operation.host(*args, **{**kwargs, "generator": self.values.generator.manual_seed(seed)})
        kept = torch.default_generator.get_state()
        try:
            torch.default_generator.manual_seed(seed)
            return operation.host(*args, **kwargs)
        finally:
            torch.default_generator.set_state(kept)

    def answer(self, numbers):
        """Sets the counts that the operation reads during its call, which a kernel would have computed."""
        worst = max((operand.worst for operand in self.operands.values()), default=KNOWN)
        self.values.driver.answer((ctypes.c_int64 * len(numbers))(*numbers), len(numbers), worst)

    def shield(self):
        """Protects the operands' memory from the kernels; the results are stored there at the end. Returns the number of shields."""
        if self.operation.listed:  # its kernels' arguments also contain addresses of earlier calls
            return self.values.driver.shield(EVERYWHERE, EVERYWHERE_SIZE, 1)
        extent = self.values.memory.extent
        tensors = [tensor for _, tensor in self.tensors if tensor.is_cuda and tensor.layout is self.torch.strided][:MOST_SHIELDS]
        room = ctypes.c_uint64 * len(tensors)
        # Do not touch storages: PyTorch accumulates gradients in place only if Python has never referred to them.
        addresses, sizes = room(*(tensor.data_ptr() for tensor in tensors)), room(*(extent(tensor) * tensor.element_size() for tensor in tensors))
        return self.values.driver.shield(addresses, sizes, len(tensors))

    # --- after the call --------------------------------------------------------------------------------------------------

    def level(self, i):
        """Returns the level of result `i`."""
        return self.levels[i] if isinstance(self.levels, list) and i < len(self.levels) else self.levels if not isinstance(self.levels, list) else UNKNOWN

    def finish(self, out):
        torch, made = self.torch, flat(out)
        if self.results is None:
            self.put_supposed(made)
            return
        written = [tensor for name, tensor in self.tensors if name in self.written]
        for i, tensor in enumerate(written):
            self.put(tensor, self.operands[id(tensor)].host, self.level(i), i)
        own = {id(tensor) for tensor in written} | set(self.operands)  # tensors that are returned unchanged
        for i, tensor in enumerate(made):
            if isinstance(tensor, torch.Tensor) and tensor.is_cuda and id(tensor) not in own:
                self.put(tensor, self.results[i] if i < len(self.results) else None, self.level(i), i)

    def put(self, tensor, host, levels, i):
        if not isinstance(host, self.torch.Tensor) or host.shape != tensor.shape or not isinstance(levels, int) and levels.dim() > tensor.dim():
            host, levels = None, UNKNOWN
        row = self.operation.row
        if row is not None and (not isinstance(levels, int) or levels == UNKNOWN) and self.may_suppose(tensor):
            host, levels = self.suppose(row(self, i, tensor), tensor, host, levels)
        self.values.memory.put(tensor, host, levels)

    def suppose(self, supposed, tensor, host, levels):
        """Returns the table's values if the result is unknown, or if they take precedence over computed ones; they are likely then."""
        torch = self.torch
        if supposed is None:
            return host, levels
        if host is not None and not sys.modules["_vram_values_table"].is_for_what_is_computed(self):
            return host, LIKELY if isinstance(levels, int) else levels.clamp(max=LIKELY)
        if host is None or isinstance(levels, int):
            return supposed, LIKELY
        gaps = levels.expand(tensor.size()) == UNKNOWN
        return torch.where(gaps, supposed, host), torch.where(gaps, LIKELY, levels).to(torch.uint8)

    def may_suppose(self, tensor):
        return tensor.numel() * tensor.element_size() <= sys.modules["_vram_values_table"].MOST_BYTES and tensor.layout is self.torch.strided

    def put_supposed(self, made):
        if len(made) > MANY:
            return
        for i, tensor in enumerate(made):
            if isinstance(tensor, self.torch.Tensor) and tensor.is_cuda and tensor.numel() and (self.routed or self.may_suppose(tensor)):
                supposed = (sys.modules["_vram_values_route"].row if self.routed else self.operation.row)(self, i, tensor)
                if supposed is not None:
                    self.values.memory.put(tensor, supposed, LIKELY)
