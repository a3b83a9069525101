"""Runs a Triton kernel on the host with Triton's own interpreter, on the known device memory (vram_values_pages.py).

The interpreter's loads and stores use the pages, with device addresses. Each of its values (TensorHandle) also has a level per element,
from the values it was computed from. A value without levels was created by the interpreter itself and counts as the worst level the
program of the grid has loaded. The interpreter patches Triton's language; the patches are in force only while it runs."""
import functools
import inspect
import re
import sys
import threading
import types

import numpy

KNOWN, LIKELY, UNKNOWN = range(3)
LOCK = threading.RLock()
MIXED = ("dot", "dot_scaled", "gather", "histogram", "atomic_cas", "atomic_rmw", "cat", "join", "split", "descriptor_gather")  # operations whose result elements each depend on many elements
MOVED = ("trans", "expand_dims", "broadcast", "reshape", "join", "cat")  # applied to levels as to values
ARITHMETIC = ("fadd", "fmul", "fdiv", "frem", "fsub", "fneg", "fcmp", "fma", "minimumf", "minnumf", "maximumf", "maxnumf", "precise_", "approx_", "clampf", "exp", "log", "sin", "cos",
              "sqrt", "rsqrt", "erf", "floor", "ceil", "dot")  # prefixes of names
CASTS = ("_to_fp", "fp_to_si", "fp_to_ui", "fp_ext", "fp_trunc")  # suffixes of names
ACCESSES = ("load", "masked_load", "store", "masked_store")


# Machine instructions used in kernels, including approximate ones.
INSTRUCTIONS = {"rcp": numpy.reciprocal, "ex2": numpy.exp2, "lg2": numpy.log2, "tanh": numpy.tanh, "sqrt": numpy.sqrt, "rsqrt": lambda x: 1 / numpy.sqrt(x), "sin": numpy.sin,
                "cos": numpy.cos, "abs": numpy.abs, "neg": numpy.negative, "add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "div": numpy.divide,
                "fma": lambda x, y, z: (x.astype(float) * y + z).astype(x.dtype)}
INSTRUCTION = re.compile(r"\s*(\w+)[\w.]*\s+\$0((?:,\s*\$\d)+)\s*;?\s*")


class NotHere(Exception):
    """Raised if this kernel cannot be computed."""


def as_method(function):
    return lambda operation, *args: function(operation, *args)


class Interpreter:
    """The interpreter for one version of Triton; created once."""

    def __init__(self, torch):
        import triton
        import triton.compiler.code_generator  # copies parts of the language, so it has to be loaded before they are patched
        import triton.language as language
        from triton.runtime import interpreter, jit
        self.torch, self.language, self.interpreter, self.jit = torch, language, interpreter, jit
        self.builder = interpreter.interpreter_builder
        self.functions, self.changes = {}, None
        self.pages, self.worst, self.control = None, KNOWN, KNOWN
        self.done = self.most = 0  # operations of the language in this launch

    # --- patches ------------------------------------------------------------------------------------------------------------

    def changeable(self):
        core = self.language.core
        yield from (module for name, module in sorted(sys.modules.items()) if name.startswith("triton.language") and inspect.ismodule(module))
        yield from (value for value in vars(core).values() if inspect.isclass(value) and value.__module__ == core.__name__)

    def find_changes(self):
        """Collects the interpreter's patches by applying them once and undoing them, and adds ours."""
        core = self.language.core
        places = list({id(place): place for place in self.changeable()}.values())
        before = [dict(vars(place)) for place in places]
        self.interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": self.language, "core": core}))
        found = [(place, name, value, old.get(name, self)) for place, old in zip(places, before) for name, value in dict(vars(place)).items() if old.get(name, self) is not value]
        for place, name, _, old in found:
            delattr(place, name) if old is self else setattr(place, name, old)
        found += [change for change in self.library() if change[:2] not in [(place, name) for place, name, _, _ in found]]
        tensor, jit = core.tensor, self.jit.JITFunction
        found += [(tensor, name, self.deciding(value), getattr(tensor, name, None)) for place, name, value, _ in list(found) if place is tensor and name in ("__bool__", "__index__")]
        own = self
        found.append((jit, "__call__", lambda function, *args, **kwargs: own.rewritten(function.fn)(*args, **kwargs), jit.__call__))
        # Some are methods of tensors: x.sum(0).
        found.append((jit, "__get__", lambda function, instance, kind=None: function if instance is None else functools.partial(function, instance), self))
        reductions, scans = self.interpreter.ReduceOps, self.interpreter.ScanOps
        for kind, name, new in ((reductions, "apply_impl", self.reducing(reductions.apply_impl)), (scans, "apply_impl", self.reducing(scans.apply_impl)),
                                (reductions, "generic_reduce", self.halving), (scans, "generic_scan", self.doubling)):
            found.append((kind, name, as_method(new), vars(kind)[name]))
        found += [(self.builder, name, value, self) for name, value in self.own_methods()]
        found.append((self.interpreter, "_convert_float", self.rounding(self.interpreter._convert_float), self.interpreter._convert_float))
        return found

    def library(self):
        """Yields the functions of libdevice for each of its modules. One of the modules only declares them."""
        modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("triton.language.extra.") and name.endswith(".libdevice")]
        own = next((module for module in modules if ".cuda." in module.__name__), None)
        for name, value in dict(vars(own)).items() if own is not None else ():
            if self.language.core.is_builtin(value):
                yield from ((module, name, self.builtin(value), vars(module)[name]) for module in modules if name in vars(module))

    def rounding(self, method):
        """Converts floating-point types with rounding to nearest, as a GPU does. The interpreter's own conversion truncates."""
        torch, language = self.torch, self.language
        kinds = {language.float16: torch.float16, language.bfloat16: torch.bfloat16, language.float32: torch.float32, language.float64: torch.float64,
                 language.float8e5: torch.float8_e5m2, language.float8e4nv: torch.float8_e4m3fn}
        integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

        def converted(data, kind, wanted, mode):
            if kind not in kinds or wanted not in kinds or "RTZ" in str(mode):
                return method(data, kind, wanted, mode)
            bits = torch.from_numpy(numpy.array(data).view(f"i{data.itemsize}" if data.itemsize > 1 else "u1"))
            made = bits.view(kinds[kind]).to(kinds[wanted]).contiguous()
            width = made.element_size()
            return made.view(integers[width]).numpy().view(f"u{width}").reshape(data.shape)

        return converted

    def builtin(self, function):
        keyword = "_semantic" if hasattr(self.interpreter, "interpreter_semantic") else "_builder"
        given = getattr(self.interpreter, "interpreter_semantic", self.builder)
        return lambda *args, **kwargs: function(*args, **{**kwargs, keyword: given})

    def __enter__(self):
        for place, name, new, _ in self.changes:
            setattr(place, name, new)

    def __exit__(self, *error):
        for place, name, _, old in reversed(self.changes):
            delattr(place, name) if old is self else setattr(place, name, old)

    def rewritten(self, function):
        """Returns the function rewritten for the interpreter, with its own globals, so that its module does not change."""
        found = self.functions.get(function)
        if found is None:
            rewriter = self.interpreter.FunctionRewriter(function)

            def compiled(tree):
                names, made = {**vars(self.interpreter), **function.__globals__}, {}
                exec(compile(tree, function.__code__.co_filename, "exec"), names, made)
                return made[function.__name__]

            rewriter._compile_and_exec = compiled
            found = self.functions[function] = rewriter.rewrite_ast()
        return found

    # --- levels -----------------------------------------------------------------------------------------------------------

    def levels(self, handle):
        return getattr(handle, "vram_levels", self.worst)

    def joined(self, handles, shape=None):
        """Returns the levels per element if the shapes allow it, else one level."""
        found = [self.levels(handle) for handle in handles]
        if all(isinstance(level, int) for level in found):
            return max(found, default=KNOWN)
        if shape is not None:
            try:
                arrays = [level if isinstance(level, int) else level.reshape(handle.data.shape) for level, handle in zip(found, handles)]
                together = arrays[0]
                for array in arrays[1:]:
                    together = numpy.maximum(together, array)
                return numpy.broadcast_to(together, shape)
            except ValueError:
                pass
        return max(level if isinstance(level, int) else int(level.max(initial=KNOWN)) for level in found)

    def own_methods(self):
        """Yields the builder's methods, which create all values, extended by levels."""
        for name in dir(self.builder):
            if name.startswith(("create_", "get_")) and callable(getattr(self.builder, name)):
                own = getattr(self, name, None)
                yield name, own if own is not None else self.carrying(name.removeprefix("create_"), getattr(self.builder, name))

    def carrying(self, name, method):
        handle = self.interpreter.TensorHandle

        widened = self.widened(method, name.endswith(CASTS)) if name.startswith(ARITHMETIC) or name.endswith(CASTS) else method

        def carried(*args, **kwargs):
            self.done += 1
            if self.done > self.most:
                raise NotHere("the kernel runs too many steps")
            made = widened(*args, **kwargs)
            if name in ACCESSES:
                return made
            handles = [value for arg in (*args, *kwargs.values()) for value in (arg if isinstance(arg, (list, tuple)) else (arg,)) if isinstance(value, handle)]
            for one in made if isinstance(made, (list, tuple)) else (made,):
                if isinstance(one, handle):
                    one.vram_levels = self.of_result(name, method, one, handles, args, kwargs)
            return made

        return carried

    def widened(self, method, is_cast):
        """Computes in float32 for bfloat16 and 8-bit floating-point types, which the interpreter stores as integers."""
        own, handle, wide = self, self.interpreter.TensorHandle, self.language.float32

        def is_narrow(kind):
            return kind.is_bf16() or kind.is_fp8()

        def convert(one, kind):
            return handle(own.interpreter._convert_float(one.data, one.dtype.scalar, kind, None).view(own.interpreter._get_np_dtype(kind)), kind)

        def done(*args, **kwargs):
            if is_cast:
                source, kind = args[0], args[1].scalar
                source = convert(source, wide) if is_narrow(source.dtype.scalar) and not kind == wide else source
                return convert(method(source, wide, *args[2:]), kind) if is_narrow(kind) and source.dtype.scalar != wide else method(source, *args[1:], **kwargs)
            last = [one for one in args if isinstance(one, handle)][-1].dtype.scalar
            made = method(*(convert(one, wide) if isinstance(one, handle) and is_narrow(one.dtype.scalar) else one for one in args), **kwargs)
            return convert(made, last) if is_narrow(last) and made.data.dtype.kind == "f" else made

        return done

    def of_result(self, name, method, made, handles, args, kwargs):
        shape = numpy.shape(made.data)
        if all(isinstance(self.levels(handle), int) for handle in handles):
            return self.joined(handles)
        if name in MOVED:
            kind = self.language.uint8
            return method(*(self.interpreter.TensorHandle(numpy.broadcast_to(numpy.uint8(self.levels(arg)), numpy.shape(arg.data)), kind) if arg in handles else arg
                            for arg in args), **kwargs).data if not any(arg is None for arg in args) else self.joined(handles)
        if name == "select":
            condition, first, second = handles
            chosen = numpy.where(condition.data, self.levels(first), self.levels(second))
            return numpy.broadcast_to(numpy.maximum(chosen, self.levels(condition)), shape).astype(numpy.uint8)
        return self.joined(handles, None if name in MIXED else shape)

    def reducing(self, method):
        """Wraps reductions and scans, along an axis or over all elements."""
        own = self

        def reduced(operation, inputs):
            if any(one.dtype.scalar.is_bf16() or one.dtype.scalar.is_fp8() for one in inputs):
                raise NotHere("reductions of 16-bit floating-point numbers")
            results = method(operation, inputs)
            found = own.joined([one.handle for one in inputs], inputs[0].handle.data.shape)
            if not isinstance(found, int):
                scan = not hasattr(operation, "keep_dims")
                axis = operation.axis
                found = numpy.broadcast_to(found.max(axis, keepdims=True), found.shape) if scan else found.max(axis, keepdims=operation.keep_dims)
            for one in results if isinstance(results, (list, tuple)) else (results,):
                one.handle.vram_levels = found if isinstance(found, int) or numpy.shape(found) == one.handle.data.shape else int(numpy.max(found))
            return results

        return reduced

    def combined(self, operation, first, second, inputs):
        """Applies the function of a reduction or scan to arrays."""
        made = [operation.to_tensor(data, one.dtype) for several in (first, second) for data, one in zip(several, inputs)]
        results = self.rewritten(operation.combine_fn.fn)(*made)
        return [one.handle.data for one in (results if isinstance(results, (list, tuple)) else (results,))]

    def halving(self, operation, inputs):
        """Reduces by combining neighbours, faster than the interpreter's element by element."""
        shape = inputs[0].handle.data.shape
        inputs, axis = operation.unravel(inputs, operation.axis)
        data = [one.handle.data for one in inputs]
        while data[0].shape[axis] > 1:
            pairs = data[0].shape[axis] // 2 * 2
            first, second, last = ([numpy.take(one, places, axis) for one in data] for places in (range(0, pairs, 2), range(1, pairs, 2), range(pairs, data[0].shape[axis])))
            data = [numpy.concatenate([one, rest], axis) for one, rest in zip(self.combined(operation, first, second, inputs), last)]
        if operation.axis is None:
            data = [one.reshape([1] * len(shape)) if operation.keep_dims else one.item() for one in data]
        elif not operation.keep_dims:
            data = [numpy.squeeze(one, axis) for one in data]
        return [operation.to_tensor(one, own.dtype) for one, own in zip(data, inputs)]

    def doubling(self, operation, inputs):
        """Scans with distances 1, 2, 4, ..."""
        data, axis, distance = [one.handle.data for one in inputs], operation.axis, 1
        while distance < data[0].shape[axis]:
            before = self.combined(operation, [numpy.roll(one, distance, axis) for one in data], data, inputs)  # blocks must keep their size
            kept = range(distance), range(distance, data[0].shape[axis])
            data = [numpy.concatenate([numpy.take(old, kept[0], axis), numpy.take(new, kept[1], axis)], axis) for old, new in zip(data, before)]
            distance *= 2
        return [operation.to_tensor(one, own.dtype) for one, own in zip(data, inputs)]

    def deciding(self, method):
        """Wraps the conversion of a value on which control flow depends."""
        def decided(tensor):
            levels = self.levels(tensor.handle)
            self.control = max(self.control, levels if isinstance(levels, int) else int(levels.max(initial=KNOWN)))
            if self.control == UNKNOWN:
                raise NotHere("an unknown value decides a branch")
            return method(tensor)
        return decided

    # --- memory -----------------------------------------------------------------------------------------------------------

    def create_masked_load(self, ptrs, mask, other, *rest, **more):
        kind = self.interpreter._get_np_dtype(ptrs.get_element_ty())
        shape, wanted = ptrs.data.shape, numpy.broadcast_to(mask.data, ptrs.data.shape).astype(bool)
        data = numpy.zeros(shape, kind) if other is None else numpy.broadcast_to(other.data, shape).astype(kind)
        levels = numpy.broadcast_to(numpy.uint8(KNOWN if other is None else self.levels(other)), shape).copy()
        rows, found = self.pages.load(ptrs.data[wanted].astype(numpy.uint64), kind.itemsize)
        data[wanted] = numpy.ascontiguousarray(rows).view(kind).reshape(-1)
        levels[wanted] = found
        levels = numpy.maximum(levels, self.joined([ptrs, mask], shape))
        self.worst = max(self.worst, int(levels.max(initial=KNOWN)))
        made = self.interpreter.TensorHandle(data, ptrs.get_element_ty())
        made.vram_levels = levels if levels.any() else KNOWN
        return made

    def create_masked_store(self, ptrs, value, mask, *rest, **more):
        kind, shape = self.interpreter._get_np_dtype(ptrs.get_element_ty()), ptrs.data.shape
        wanted, addresses = numpy.broadcast_to(mask.data, shape).astype(bool), ptrs.data.astype(numpy.uint64)
        if numpy.max(self.levels(ptrs), initial=KNOWN) == UNKNOWN:
            if not self.pages.lose(addresses):
                raise NotHere("the address of a store is unknown")
            return
        data = numpy.ascontiguousarray(numpy.broadcast_to(value.data, shape).astype(kind)[wanted])
        asked = numpy.broadcast_to(numpy.uint8(self.levels(mask)), shape)
        levels = numpy.maximum(numpy.broadcast_to(self.joined([ptrs, value, mask], shape), shape), self.control).astype(numpy.uint8)
        self.pages.store(addresses[wanted], data.view(numpy.uint8).reshape(-1, kind.itemsize), levels[wanted])
        if asked.any():
            self.pages.doubt(addresses[~wanted & (asked > 0)], kind.itemsize, asked[~wanted & (asked > 0)])

    def create_load(self, ptr, *rest, **more):
        return self.create_masked_load(ptr, self.all_of(ptr), None)

    def create_store(self, ptr, value, *rest, **more):
        return self.create_masked_store(ptr, value, self.all_of(ptr))

    def all_of(self, ptr):
        mask = self.interpreter.TensorHandle(numpy.ones_like(ptr.data, dtype=bool), self.language.int1)
        mask.vram_levels = KNOWN
        return mask

    def create_atomic_rmw(self, operation, ptr, value, mask, *rest):
        """Performs the accesses in order. If several access one address, only the first is sure to see the old value."""
        name = self.builder.ir_rmw_op_to_interpreter_rmw_op[operation].name
        function = {"ADD": numpy.add, "FADD": numpy.add, "AND": numpy.bitwise_and, "OR": numpy.bitwise_or, "XOR": numpy.bitwise_xor, "MAX": numpy.maximum, "MIN": numpy.minimum,
                    "UMAX": numpy.maximum, "UMIN": numpy.minimum, "XCHG": lambda old, new: new}[name]
        shape, kind = ptr.data.shape, value.data.dtype
        found, wanted, levels = numpy.zeros(shape, kind), numpy.broadcast_to(mask.data, shape), KNOWN
        for place in numpy.ndindex(shape):
            if wanted[place]:
                one = numpy.array([ptr.data[place]], numpy.uint64)
                row, level = self.pages.load(one, kind.itemsize)
                found[place] = row.view(kind)[0, 0]
                levels = max(levels, int(level[0]), self.control, self.joined([ptr, value, mask]))
                new = function(found[place], numpy.broadcast_to(value.data, shape)[place]).astype(kind)
                self.pages.store(one, new.reshape(1, 1).view(numpy.uint8), numpy.array([levels], numpy.uint8))
        self.worst = max(self.worst, levels)
        made = self.interpreter.TensorHandle(found, value.dtype.scalar)
        made.vram_levels = max(levels, LIKELY)
        return made

    def create_atomic_cas(self, *rest):
        raise NotHere("programs of a grid that wait for each other")

    def create_extern_elementwise(self, library, path, symbol, handles, kind, pure):
        """Calls PyTorch's function of the same name for a function of libdevice."""
        name = symbol.removeprefix("__nv_").removeprefix("fast_")
        names = {"rint": "round", "nearbyint": "round", "fabs": "abs", "isinfd": "isinf", "isnand": "isnan", "isfinited": "isfinite", "finitef": "isfinite",
                 "isinff": "isinf", "isnanf": "isnan", "fmin": "fmin", "cbrt": None}
        base = name if name in names or hasattr(self.torch, name) else name.removesuffix("f")
        function = getattr(self.torch, names.get(base, base) or "", None)
        if function is None:
            raise NotHere(f"libdevice's {symbol}")
        data = function(*(self.torch.from_numpy(numpy.array(handle.data)) for handle in handles)).numpy()
        wanted = self.interpreter._get_np_dtype(kind.scalar if hasattr(kind, "scalar") else kind)
        made = self.interpreter.TensorHandle(data.astype(wanted), kind.scalar if hasattr(kind, "scalar") else kind)
        made.vram_levels = self.joined(handles, data.shape)
        return made

    def create_inline_asm(self, text, constraints, handles, kinds, pure, pack):
        """Computes one floating-point instruction with operands in order."""
        found = INSTRUCTION.fullmatch(text)
        function = INSTRUCTIONS.get(found[1]) if found else None
        ordered = found is not None and re.findall(r"\d", found[2]) == [str(i + 1) for i in range(len(handles))]
        if function is None or not ordered or len(kinds) != 1 or pack != 1 or any(handle.data.dtype.kind != "f" for handle in handles):
            raise NotHere("machine code")
        made = self.interpreter.TensorHandle(function(*(handle.data for handle in handles)), kinds[0].scalar)
        made.vram_levels = self.joined(handles, made.data.shape)
        return types.SimpleNamespace(get_result=lambda number: made)

    # --- running ----------------------------------------------------------------------------------------------------------

    def arguments(self, function, given):
        """Converts arguments for the interpreter: addresses and numbers become values, constants stay."""
        kinds = inspect.get_annotations(function)
        made = {}
        for name, value in given.items():
            made[name] = value if "constexpr" in str(kinds.get(name, "")) else self.interpreter._implicit_cvt(value)
            handle = getattr(made[name], "handle", None)
            for one in (handle, getattr(handle, "base", None), *getattr(handle, "shape", ()), *getattr(handle, "strides", ())):
                if isinstance(one, self.interpreter.TensorHandle):
                    one.vram_levels = KNOWN
        return made

    def run(self, function, given, grid, pages, most):
        """Runs all programs of a grid, one after another, with at most `most` operations of the language. Returns the number of operations.
        Raises any error."""
        with LOCK:
            if self.changes is None:
                self.changes = self.find_changes()
            self.pages, self.done, self.most = pages, 0, most
            with self, numpy.errstate(all="ignore"):
                code, self.worst, self.control = self.rewritten(function), KNOWN, KNOWN
                arguments = self.arguments(code, given)
                self.builder.set_grid_dim(*grid)
                for place in numpy.ndindex(*grid):
                    self.worst = self.control = KNOWN
                    self.builder.set_grid_idx(*place)
                    code(**arguments)
                    if place == (0, 0, 0) and self.done * grid[0] * grid[1] * grid[2] > most:
                        raise NotHere("the kernel has too many programs")
            self.pages = None
            return self.done
