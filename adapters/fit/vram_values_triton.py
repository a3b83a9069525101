"""Computes Triton kernels with a small grid on the host, including those of torch.compile(). vram_values_interpreter.py runs them before
the launch, and their output is stored after it. Kernels that access too much memory, or that Triton's interpreter cannot run, are not
computed."""
import functools
import threading
import weakref

import _vram_shared as shared

MOST_PROGRAMS = 256  # in a grid
# Limits of operations of Triton's language, about 20 us each: per launch, per kernel in all launches, and for all kernels.
MOST_DONE, MOST_OF_ONE, MOST_OF_ALL = 100000, 300000, 3000000
FAILURES = 4
UNKNOWN = 2
TOO_LARGE = (-1,)  # used instead of a grid
MODULES = {"triton.runtime.jit": "watch_functions", "triton.runtime.autotuner": "watch_tuner", "triton.compiler.code_generator": "watch_compiler",
           "torch._inductor.runtime.triton_heuristics": "watch_compiled"}


class Kernel:
    """The results of earlier computations of a kernel."""

    __slots__ = ("done", "failures", "grids", "function", "read", "reads")

    def __init__(self):
        self.failures, self.done, self.function = 0, 0, None
        self.grids = {}  # of a torch.compile() kernel, by its numbers
        self.read, self.reads = set(), None  # names of arguments that it has read; whether it reads any


class Triton:
    def __init__(self, values):
        self.values, self.torch, self.driver, self.interpreter = values, values.torch, values.driver, None
        self.limit = values.memory.alike[0].numel()  # bytes that a kernel may access
        self.done = 0
        self.kernels, self.local = weakref.WeakKeyDictionary(), threading.local()
        self.language = threading.RLock()  # held while Triton's language is patched, and while a kernel is compiled

    # --- one launch -------------------------------------------------------------------------------------------------------

    def launch(self, key, function_of, grid_of, given_of, call, numbers=None):
        """Calls the launch. given_of() returns the kernel's arguments by name, grid_of() its grid, which depends on the numbers if there
        are any."""
        kernel = self.kernels.get(key)
        if kernel is None:
            kernel = self.kernels[key] = Kernel()
        if self.values.stopped or kernel.failures >= FAILURES or kernel.done >= MOST_OF_ONE or self.done >= MOST_OF_ALL or getattr(self.local, "idle", False) or getattr(self.values.local, "idle", False):
            return call()
        if numbers is not None:
            grid = kernel.grids.get(numbers) or self.find_grid(kernel, grid_of, numbers)
            if grid == TOO_LARGE:
                return call()
            grid_of = functools.partial(tuple, grid)
        if self.values.graphs.current is not None and self.torch._C._cuda_isCurrentStreamCapturing():
            return self.values.graphs.capture(call, lambda made: self.note(kernel, function_of, grid_of, given_of))
        if self.values.rehearsals:
            return call()
        pages = self.compute(kernel, function_of, grid_of, given_of)
        if pages is None:
            return call()
        shields = self.driver.shield(*self.values.graphs.everywhere, 1)
        try:
            made = call()
        finally:
            self.driver.end(shields)
        pages.commit()
        return made

    @staticmethod
    def find_grid(kernel, grid_of, numbers):
        try:
            grid = tuple(int(size) for size in (*grid_of(), 1, 1)[:3])
        except Exception:
            return TOO_LARGE  # such as a kernel that is not compiled yet
        kernel.grids[numbers] = grid if grid[0] * grid[1] * grid[2] <= MOST_PROGRAMS else TOO_LARGE
        return kernel.grids[numbers]

    def note(self, kernel, function_of, grid_of, given_of):
        """Returns what to do at each launch of a graph that captures the kernel."""
        grid, given = grid_of(), self.values.graphs.without_memory(given_of())
        tensors = [value for value in given.values() if isinstance(value, self.torch.Tensor)]

        def again():
            computed = not self.values.stopped and kernel.failures < FAILURES and kernel.done < MOST_OF_ONE
            pages = self.compute(kernel, function_of, lambda: grid, lambda: given) if computed else None
            if pages is not None:
                pages.commit()
            for tensor in tensors if pages is None else ():
                self.driver.passed(tensor.data_ptr(), 2**64 - 1)

        return again

    def compute(self, kernel, function_of, grid_of, given_of):
        """Returns the memory as the kernel leaves it; None if it is not computed."""
        torch, device = self.torch, self.torch._C._cuda_getDevice()
        try:
            if self.driver.begin(device, self.values.stream(device)) != 0:
                return None
            given = given_of()
            grid = (*grid_of(), 1, 1)[:3]
            programs = int(grid[0]) * int(grid[1]) * int(grid[2])
            tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
            if not 0 < programs <= MOST_PROGRAMS or not all(tensor.is_cuda for tensor in tensors.values()) or not self.is_known(kernel, tensors):
                return None
            kernel.function = kernel.function or function_of()
            return self.interpret(kernel, given, [int(size) for size in grid], tensors)
        except Exception:
            kernel.failures += 1
            return None

    def interpret(self, kernel, given, grid, tensors):
        storages = [tensor.untyped_storage() for tensor in tensors.values()]
        places = [(storage.data_ptr(), storage.nbytes()) for storage in storages]
        pages = shared.part("vram_values_pages").Pages(self.driver, self.limit, places)
        with self.language, self.torch._C.DisableTorchFunction():
            if self.interpreter is None:
                self.interpreter = shared.part("vram_values_interpreter").Interpreter(self.torch)
            done = self.interpreter.run(kernel.function, given, grid, pages, MOST_DONE)
        kernel.done, self.done = kernel.done + done, self.done + done
        size = shared.part("vram_values_pages").PAGE
        for name, tensor in tensors.items():
            first = tensor.data_ptr() // size
            if any(first <= page <= (tensor.data_ptr() + tensor.untyped_storage().nbytes()) // size for page in pages.read):
                kernel.read.add(name)
        kernel.reads = bool(pages.read) or bool(kernel.reads)
        return pages

    def is_known(self, kernel, tensors):
        """Returns whether some of its input is known. Its first computation shows what it reads."""
        if kernel.reads is None or not kernel.reads:
            return True
        return any(self.begins_known(tensor) for name, tensor in tensors.items() if name in kernel.read)

    def begins_known(self, tensor):
        found = self.values.memory.fetch(tensor) if tensor.numel() else None
        if found is not None:
            return found.worst != UNKNOWN or found.levels is not None
        room = self.values.memory.room(512)
        size = min(512, tensor.numel() * tensor.element_size())
        other = self.torch._VF.empty(512, dtype=self.torch.uint8, device="cpu")
        return self.driver.look(tensor.data_ptr(), size, 1, other.data_ptr(), room.data_ptr()) not in (1 << UNKNOWN, -1)

    # --- hooks into launches ------------------------------------------------------------------------------------------------

    def watch_functions(self, module):
        """Watches functions under @triton.jit."""
        run = module.JITFunction.run

        @functools.wraps(run)
        def watched(function, *args, grid, warmup, **kwargs):
            if warmup:
                return run(function, *args, grid=grid, warmup=warmup, **kwargs)

            def given():
                parameters = function.signature.parameters
                bound = function.signature.bind(*args, **{name: value for name, value in kwargs.items() if name in parameters})
                bound.apply_defaults()
                return dict(bound.arguments)

            def call():
                return run(function, *args, grid=grid, warmup=warmup, **kwargs)

            return self.launch(function, lambda: function.fn, lambda: grid(given()) if callable(grid) else grid, given, call)

        module.JITFunction.run = watched

    def watch_compiler(self, module):
        """Lets no thread compile while another interprets a kernel, because that patches Triton's language for all threads."""
        build = module.ast_to_ttir

        @functools.wraps(build)
        def ast_to_ttir(*args, **kwargs):
            with self.language:
                return build(*args, **kwargs)

        module.ast_to_ttir = ast_to_ttir

    def watch_tuner(self, module):
        """Skips launches that only measure a kernel's time."""
        module.Autotuner._bench = self.idly(module.Autotuner._bench)

    def watch_compiled(self, module):
        """Watches the kernels that torch.compile() generates, and those they call."""
        tuner = module.CachingAutotuner
        run = tuner.run
        for name in ("bench", "benchmark_all_configs"):
            setattr(tuner, name, self.idly(getattr(tuner, name)))

        @functools.wraps(run)
        def watched(compiled, *args, **kwargs):
            def given():
                return compiled_arguments(compiled, args, kwargs)

            def grid():
                if "grid" in kwargs:
                    return kwargs["grid"]({**given()}) if callable(kwargs["grid"]) else kwargs["grid"]
                return compiled._interpret_args_grid(args, configuration(compiled))[1]

            def function():
                return compiled.fn.fn or compiled._reload_kernel().fn.fn

            numbers = tuple(arg for arg in args if type(arg) is int)
            return self.launch(compiled, function, grid, given, lambda: run(compiled, *args, **kwargs), numbers)

        tuner.run = watched

    def idly(self, method):
        @functools.wraps(method)
        def timed(*args, **kwargs):
            before, self.local.idle = getattr(self.local, "idle", False), True
            try:
                return method(*args, **kwargs)
            finally:
                self.local.idle = before
        return timed


def configuration(compiled):
    """Returns the first configuration of a torch.compile() kernel; all give the same results."""
    made = compiled.launchers or compiled.compile_results
    return made[0].config if made else compiled.configs[0]


def compiled_arguments(compiled, args, kwargs):
    """Returns the arguments of a torch.compile() kernel by name: those of the call, and those fixed by its first configuration and its
    compilation."""
    blocks = configuration(compiled).kwargs
    fixed = {**compiled.triton_meta.get("constants", {}), **blocks}
    names = compiled.fn.arg_names
    fixed = {names[key] if isinstance(key, int) else key[0] if isinstance(key, tuple) else key: value for key, value in fixed.items()}
    constant = {names[i] for i in compiled.fn.constexprs}
    free = [name for name in names if name not in constant and name not in blocks]
    given = {**{name: value for name, value in fixed.items() if name in names}, **dict(zip(free, args))}
    return {**given, **{name: value for name, value in kwargs.items() if name in names}}


def begin(values):
    """Watches modules that are loaded now, and the others when they are imported."""
    triton = Triton(values)
    for name, method in MODULES.items():
        shared.when_imported(name, getattr(triton, method))
