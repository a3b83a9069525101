"""vram as PyTorch's CUDA allocator.

    import vram_torch
    vram_torch.enable()              # before anything uses CUDA
    ...
    print(vram_torch.memory_summary())

Without PyTorch, `Allocator` is the same allocator through ctypes. The library is libvram_torch.so in this file's folder, or the one that
the environment variable VRAM_TORCH_LIBRARY names. Options: VRAM_ALLOC_CONF, then PyTorch's own variables. See docs/guides/torch.md.
"""
import collections
import contextlib
import ctypes
import functools
import json
import os
import pickle
import re
import sys
import tempfile

__all__ = [
    "Allocator", "Error", "OutOfMemory", "allocator", "annotate", "configure", "dump_snapshot", "empty_cache", "enable", "is_enabled", "last_oom",
    "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "record_memory_history", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "sleep", "sleepers", "snapshot", "tag_pool", "tagged", "tagged_devices", "tags_of", "untagged", "wake",
    "wake_untagged", "way",
]

OPTION_VARIABLES = ("VRAM_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")

# Values of enum vram_status used here.
OUT_OF_MEMORY, REJECTED = 4, 5


class Error(RuntimeError):
    """A refusal by the allocator, or by enable(); one line."""


class OptionError(Error, ValueError):
    """An invalid option string; the message gives the character."""


class OutOfMemory(Error, MemoryError):
    """The device has no room for a request. str() is the report."""


_ADDRESS, _TEXT, _SIZE = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t
_OUT = ctypes.POINTER(ctypes.c_uint64)


class _PoolId(ctypes.Structure):
    _fields_ = [("first", ctypes.c_uint64), ("second", ctypes.c_uint64)]


SLEEP_LEVELS = ("keep", "discard", "zero")  # enum vram_sleep_level

# A suspended pool: PyTorch's id, its level, whether requests wake it; bytes of its live blocks, of device memory it will need, and of
# pinned memory with its contents; its tag.
Sleeper = collections.namedtuple("Sleeper", "pool level wakes live_bytes away_bytes host_bytes tag")


def _tags(tags):
    return (ctypes.c_char_p * max(1, len(tags)))(*(None if tag is None else tag.encode() for tag in tags))


# Name without vram_torch_, result type, argument types.
_FUNCTIONS = (
    ("allocate", ctypes.c_int, (ctypes.c_uint64, ctypes.c_int, _ADDRESS, _OUT)),
    ("release", ctypes.c_int, (_ADDRESS,)),
    ("use_on", ctypes.c_int, (_ADDRESS, _ADDRESS)),
    ("empty_cache", ctypes.c_int, ()),
    ("set_fraction", ctypes.c_int, (ctypes.c_int, ctypes.c_double)),
    ("configure", ctypes.c_int, (_TEXT,)),
    ("check_options", ctypes.c_int, (_TEXT,)),
    ("follow", ctypes.c_int, (_TEXT,)),
    ("reset_peak_stats", ctypes.c_int, (ctypes.c_int,)),
    ("reset_accumulated_stats", ctypes.c_int, (ctypes.c_int,)),
    ("memory_info", ctypes.c_int, (ctypes.c_int, _OUT, _OUT)),
    ("device_count", ctypes.c_int, (ctypes.POINTER(ctypes.c_uint32),)),
    ("check", ctypes.c_int, ()),
    ("history", ctypes.c_int, (_TEXT,)),
    ("snapshot_save", ctypes.c_int, (_TEXT,)),
    ("annotate", ctypes.c_int, (_ADDRESS, _TEXT)),
    ("fraction", ctypes.c_int, (ctypes.c_int, ctypes.POINTER(ctypes.c_double))),
    ("add_oom_observer", ctypes.c_int, (ctypes.c_void_p,)),
    ("metadata", _SIZE, (_TEXT, _SIZE)),
    ("set_metadata", ctypes.c_int, (_TEXT,)),
    ("stats_json", _SIZE, (ctypes.c_int, _TEXT, _SIZE)),
    ("summary", _SIZE, (ctypes.c_int, ctypes.c_int, _TEXT, _SIZE)),
    ("configuration", _SIZE, (_TEXT, _SIZE)),
    ("oom_text", _SIZE, (_TEXT, _SIZE)),
    ("error", _SIZE, (_TEXT, _SIZE)),
    ("version", _TEXT, ()),
    ("tag_begin", ctypes.c_int, (ctypes.c_int, _TEXT)),
    ("tag_end", ctypes.c_int, (ctypes.c_int, _TEXT)),
    ("tag_pool", ctypes.c_int, (ctypes.c_int, _PoolId, _TEXT)),
    ("sleep", ctypes.c_int, (ctypes.c_int, ctypes.POINTER(_TEXT), ctypes.POINTER(ctypes.c_int), _SIZE, ctypes.c_int, _OUT)),
    ("wake", ctypes.c_int, (ctypes.c_int, ctypes.POINTER(_TEXT), _SIZE, _OUT)),
    ("wake_pool", ctypes.c_int, (ctypes.c_int, _PoolId, _OUT)),
    ("sleepers", _SIZE, (ctypes.c_int, _TEXT, _SIZE)),
    ("tag_bytes", ctypes.c_int, (ctypes.c_int, _TEXT, _OUT)),
    ("kept", ctypes.c_int, (_ADDRESS, ctypes.c_uint64, ctypes.c_void_p)),
    ("base_alloc", ctypes.c_void_p, (ctypes.c_void_p, ctypes.POINTER(_SIZE))),
    ("set_raise", None, (ctypes.c_void_p,)),
    ("expect_capture", None, (_ADDRESS,)),
    ("pool_count", ctypes.c_uint32, ()),
    ("launch_begin", ctypes.c_int, (ctypes.c_int, _PoolId, _ADDRESS)),
    ("launch_end", None, (ctypes.c_int, _PoolId)),
)


def library_path():
    """Returns the path of the shared library."""
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libvram_torch.so")
    return os.environ.get("VRAM_TORCH_LIBRARY") or default


class Allocator:
    """The process's one allocator. All objects of this class refer to it.

    Addresses and streams are integers. Failures raise Error; running out of memory raises OutOfMemory. Any thread may call any method.
    """

    def __init__(self, library=None):
        self.path = os.path.abspath(library or library_path())
        try:
            self._library = ctypes.CDLL(self.path)
        except OSError as error:
            raise Error(f"vram_torch: cannot load the library ({error}); set VRAM_TORCH_LIBRARY to its path") from None
        for name, result, arguments in _FUNCTIONS:
            function = getattr(self._library, "vram_torch_" + name)
            function.restype, function.argtypes = result, arguments

    def address_of(self, symbol):
        """Returns the address of a C function in the library, as an integer."""
        return ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value

    def _call(self, name, *arguments):
        status = getattr(self._library, "vram_torch_" + name)(*arguments)
        if status in (OUT_OF_MEMORY, REJECTED):
            raise OutOfMemory(self.last_error())
        if status != 0:
            raise Error(self.last_error())

    def _text(self, name, *arguments, needed=False):
        function = getattr(self._library, "vram_torch_" + name)
        room = 4096
        while True:
            buffer = ctypes.create_string_buffer(room)
            wanted = function(*arguments, buffer, room)
            if wanted < room:
                break
            room = wanted + 1
        if needed and wanted == 0:
            raise Error(self.last_error())
        return buffer.value.decode("utf-8")

    # Memory

    def malloc(self, size_bytes, device=0, stream=0):
        """Returns the address of `size_bytes` new bytes; 0 for 0 bytes."""
        if size_bytes < 0 or size_bytes >= 1 << 64:
            raise ValueError("size_bytes must be a non-negative integer")
        address = ctypes.c_uint64(0)
        self._call("allocate", size_bytes, device, stream, ctypes.byref(address))
        return address.value

    def free(self, address):
        """Frees a block; ignores address 0."""
        self._call("release", address)

    def record_stream(self, address, stream):
        """Marks the block as also used on `stream`: it is not reused before that stream has passed the moment of its free."""
        self._call("use_on", address, stream)

    def base_allocation(self, address):
        """Returns (first address, bytes) of the segment that contains `address`; (address, 0) if none does."""
        size = ctypes.c_size_t(0)
        base = self._library.vram_torch_base_alloc(address, ctypes.byref(size))
        return base or 0, size.value

    def empty_cache(self):
        """Releases all unused memory to the driver."""
        self._call("empty_cache")

    # Suspended memory

    def tag_begin(self, tag, device=0):
        """Routes this thread's requests on the device to the pool with this tag; "" is a pool that is never suspended."""
        self._call("tag_begin", device, tag.encode())

    def tag_end(self, tag, device=0):
        """Ends the newest tag_begin() with this tag."""
        self._call("tag_end", device, tag.encode())

    def tag_pool(self, pool_id, tag, device=0):
        """Gives one of PyTorch's pools (torch.cuda.MemPool.id) a tag. Its allocations from now on can be suspended."""
        self._call("tag_pool", device, _PoolId(*pool_id), tag.encode())

    def sleep(self, levels=None, on_request="fail", device=0):
        """Suspends pools of the device and returns the bytes released to the driver.

        levels: a dictionary from tags to "keep", "discard" or "zero", in which None stands for all other pools, or one of these words
        for all pools of the device. on_request: what a request to a suspended pool does: "fail" or "wake".
        """
        if on_request not in ("fail", "wake"):
            raise ValueError(f"invalid on_request {on_request!r}; expected fail or wake")
        tags = sorted(levels, key=lambda tag: tag is None) if isinstance(levels, dict) else []
        words = [levels[tag] for tag in tags] if tags else ["keep" if levels is None or isinstance(levels, dict) else levels]
        numbers = (ctypes.c_int * len(words))(*(SLEEP_LEVELS.index(word) for word in words))
        went = ctypes.c_uint64(0)
        self._call("sleep", device, _tags(tags), numbers, len(tags), int(on_request == "wake"), ctypes.byref(went))
        return went.value

    def wake(self, tags=None, device=0):
        """Resumes the pools with these tags, or all; returns the bytes allocated from the driver."""
        came = ctypes.c_uint64(0)
        self._call("wake", device, _tags(tags or ()), len(tags or ()), ctypes.byref(came))
        return came.value

    def wake_pool(self, pool_id, device=0):
        """Resumes one suspended pool, of which sleepers() gives the id; returns the bytes allocated from the driver."""
        came = ctypes.c_uint64(0)
        self._call("wake_pool", device, _PoolId(*pool_id), ctypes.byref(came))
        return came.value

    def sleepers(self, device=0):
        """Returns the suspended pools of the device as Sleeper objects, newest first."""
        lines = self._text("sleepers", device).splitlines()
        fields = [line.split("\t", 7) for line in lines]
        return [Sleeper((int(a), int(b)), SLEEP_LEVELS[int(level)], wakes == "1", int(live), int(away), int(host), tag)
                for a, b, level, wakes, live, away, host, tag in fields]

    def tag_bytes(self, tag, device=0):
        """Returns the device memory that the pool of a tag reserves now."""
        held = ctypes.c_uint64(0)
        self._call("tag_bytes", device, tag.encode(), ctypes.byref(held))
        return held.value

    def kept(self, address, size_bytes):
        """Returns the bytes at this address of a suspended pool, from the host's copy."""
        buffer = ctypes.create_string_buffer(max(1, size_bytes))
        self._call("kept", address, size_bytes, buffer)
        return buffer.raw[:size_bytes]

    # Settings

    def configure(self, conf):
        """Applies an option string in the form of PYTORCH_CUDA_ALLOC_CONF; some options affect only later segments."""
        self._call("configure", conf.encode())
        if _Enabled.torch is not None:
            _announce_launches(_Enabled.torch, self, conf)

    def launch_begin(self, device, pool, stream):
        """Call before a CUDA graph is launched that has memory of this pool (PyTorch's id), with the option lend_graph_pools."""
        self._call("launch_begin", device, _PoolId(*pool), stream)

    def launch_end(self, device, pool):
        """Call after the launch."""
        self._library.vram_torch_launch_end(device, _PoolId(*pool))

    def check_options(self, conf):
        """Raises OptionError, with the character, if the option string is invalid; changes nothing."""
        try:
            self._call("check_options", conf.encode())
        except Error as error:
            raise OptionError(str(error)) from None

    def configuration(self):
        """Returns the option string in force."""
        return self._text("configuration")

    def set_memory_fraction(self, fraction, device=0):
        """Limits the reserved memory to this share of the device's memory."""
        self._call("set_fraction", device, fraction)

    def memory_fraction(self, device=0):
        """Returns the share of the device's memory that may be reserved."""
        fraction = ctypes.c_double(0)
        self._call("fraction", device, ctypes.byref(fraction))
        return fraction.value

    # Queries

    def memory_stats(self, device=0):
        """Returns counters under PyTorch's flat names ("allocated_bytes.all.current"), sorted."""
        return json.loads(self._text("stats_json", device, needed=True), object_pairs_hook=collections.OrderedDict)

    def memory_stats_as_nested_dict(self, device=0):
        """Returns the counters as nested dictionaries."""
        nested = {}
        for key, value in self.memory_stats(device).items():
            *path, last = key.split(".")
            functools.reduce(lambda inner, name: inner.setdefault(name, {}), path, nested)[last] = value
        return nested

    def memory_summary(self, device=0, abbreviated=False):
        """Returns the table of torch.cuda.memory_summary()."""
        return self._text("summary", device, int(bool(abbreviated)), needed=True)

    def memory_allocated(self, device=0):
        return self.memory_stats(device)["allocated_bytes.all.current"]

    def max_memory_allocated(self, device=0):
        return self.memory_stats(device)["allocated_bytes.all.peak"]

    def memory_reserved(self, device=0):
        return self.memory_stats(device)["reserved_bytes.all.current"]

    def max_memory_reserved(self, device=0):
        return self.memory_stats(device)["reserved_bytes.all.peak"]

    def reset_peak_memory_stats(self, device=0):
        self._call("reset_peak_stats", device)

    def reset_accumulated_memory_stats(self, device=0):
        self._call("reset_accumulated_stats", device)

    def mem_get_info(self, device=0):
        """Returns the driver's (free, total) bytes of the device."""
        free, total = ctypes.c_uint64(0), ctypes.c_uint64(0)
        self._call("memory_info", device, ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def device_count(self):
        count = ctypes.c_uint32(0)
        self._call("device_count", ctypes.byref(count))
        return count.value

    # History

    def record_memory_history(self, enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False,
                              compile_context=False, global_record_annotations=False, skip_actions=None):
        """Starts the memory history, with the arguments of torch.cuda.memory._record_memory_history(); ignores `device`, as PyTorch does.

        `enabled` None stops it. `stacks` may also be "c".
        """
        del device
        if enabled is None or enabled is False:
            self._call("history", b"off")
            return
        words = [f"enabled={'all' if enabled is True else enabled}", f"context={context or 'none'}"]
        if context is not None:
            words.append(f"stacks={stacks}")
        if max_entries < sys.maxsize:
            words.append(f"max_entries={max(1, max_entries)}")
        if skip_actions:
            words.append("skip_actions=" + "+".join(skip_actions))
        words += ["clear_history"] * bool(clear_history) + ["compile_context"] * bool(compile_context)
        words += ["own_annotations_only"] * (not global_record_annotations)
        if any("," in word for word in words):
            raise Error("vram: arguments of record_memory_history() must not contain a comma")
        self._call("history", ",".join(words).encode())

    def dump_snapshot(self, filename="dump_snapshot.pickle"):
        """Writes state and history as torch.cuda.memory._dump_snapshot() does; ".json" and ".vram" give other formats."""
        self._call("snapshot_save", os.fsencode(filename).replace(b"%", b"%%"))

    def snapshot(self):
        """Returns state and history as the dictionary of torch.cuda.memory._snapshot()."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "snapshot.pickle")
            self.dump_snapshot(path)
            with open(path, "rb") as file:
                return pickle.load(file)

    def annotate_memory(self, address, text):
        """Names a live block; snapshots show the name as its user_metadata."""
        self._call("annotate", address, text.encode())

    def set_memory_metadata(self, text):
        """Sets the user_metadata of the calling thread's events from now on."""
        self._call("set_metadata", text.encode())

    def memory_metadata(self):
        """Returns the calling thread's last set_memory_metadata()."""
        return self._text("metadata")

    # Failures

    def add_oom_observer(self, function):
        """Adds a ctypes function (const struct vram_oom *, void *) to call when a request fails; the caller keeps it alive."""
        self._call("add_oom_observer", ctypes.cast(function, ctypes.c_void_p))

    def last_oom(self):
        """Returns the report of the newest request of any thread that ran out of memory; None if there is none."""
        return self._text("oom_text") or None

    def last_error(self):
        """Returns one line about the calling thread's newest failure; "" if there is none."""
        return self._text("error")

    def check(self):
        """Verifies the allocator's state; raises Error with the first violation."""
        self._call("check")

    def version(self):
        return self._library.vram_torch_version().decode()


# --- PyTorch ------------------------------------------------------------------------------------------------------------------------


class _Enabled:
    """The result of enable(). PyTorch keeps only addresses, so these objects must live as long as the process."""

    allocator = None
    pluggable = None
    torch = None
    way = ""


def _usable_torch():
    """Returns the module torch, or raises Error with one line that says why vram cannot be used with it."""
    try:
        import torch
    except ImportError as error:
        raise Error(f"vram_torch: cannot import torch ({error})") from None
    if not hasattr(getattr(torch.cuda, "memory", None), "CUDAPluggableAllocator"):
        raise Error("vram_torch: this PyTorch lacks CUDAPluggableAllocator; it needs PyTorch 2.0 or newer")
    if getattr(torch.version, "cuda", None) is None:
        raise Error("vram_torch: this PyTorch is built without CUDA")
    if torch.cuda.is_initialized():
        raise Error("vram_torch: CUDA is already initialised; call enable() before anything uses it")
    if "VRAM_SIM" in os.environ and not _under_vram_sim():
        raise Error("vram_torch: VRAM_SIM is set, but PyTorch's driver is not simulated; run the program with `vram sim`")
    return torch


def _under_vram_sim():
    """Returns whether `vram sim` started this process, so that PyTorch loads a simulated driver."""
    return "VRAM_SIM_FRONT" in os.environ or any("/simcuda" in path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":"))


SETTINGS = ("_cuda_cudaCachingAllocator_set_allocator_settings", "_accelerator_setAllocatorSettings")  # the newest last


def _check_options(torch, made, conf):
    """Checks the options. If PyTorch refuses them too, it reports that in its own words."""
    given = [os.environ[variable] for variable in OPTION_VARIABLES if variable in os.environ] if conf is None else [conf]
    try:
        for text in given[:1]:
            made.check_options(text)
    except OptionError:
        functions = [getattr(getattr(torch, "_C", None), name, None) for name in SETTINGS]
        for function in [function for function in functions if function is not None][-1:] if conf is None else []:
            function(given[0])
        raise


def _redirect_settings(torch, made):
    """Makes changes of PyTorch's settings at run time also apply to this allocator."""
    module = getattr(torch, "_C", None)
    for name in SETTINGS:
        before = getattr(module, name, None)
        if before is None:
            continue

        def set_settings(text, before=before):
            made.check_options(text)
            before(text)
            made.configure(text)
            if hasattr(made._library, "vram_native_configure_pinned"):
                made._library.vram_native_configure_pinned(text.encode())

        setattr(module, name, functools.wraps(before)(set_settings))


def _announce_launches(torch, made, conf):
    import vram_torch_graphs

    vram_torch_graphs.announce_launches(torch, made, conf)


def _enable_native(torch, wanted, conf):
    """Returns (Allocator in PyTorch's own place, how), or (None, why) if only the pluggable interface remains."""
    import vram_torch_native

    try:
        path, how, release = vram_torch_native.library_for(torch)
        made = _loaded(path)
        _check_options(torch, made, conf)
        _follow(made, release.rules())
        vram_torch_native.install(made._library, release)
    except vram_torch_native.Unavailable as error:
        if wanted == "native":
            raise Error(f"vram_torch: no library for this PyTorch: {error}") from None
        return None, f"pluggable: no library for this PyTorch: {error}"
    return made, f"native: {how}: {path}"


def _loaded(path):
    import vram_torch_native

    try:
        return Allocator(path)
    except (Error, AttributeError) as error:
        raise vram_torch_native.Unavailable(str(error)) from None


def _follow(made, version):
    made._call("follow", version.encode())


def _enable_pluggable(torch, library, conf, redirect):
    import vram_torch_pluggable as interface

    made = Allocator(library)
    _check_options(torch, made, conf)
    release = re.match(r"\d+\.\d+", str(getattr(torch, "__version__", "")))
    if release:
        with contextlib.suppress(Error):  # for a version newer than our rules, use the newest rules
            _follow(made, release[0])
    pluggable = torch.cuda.memory.CUDAPluggableAllocator(made.path, "vram_torch_malloc", "vram_torch_free")
    pools = interface.set_hooks(pluggable, made)
    try:
        torch.cuda.memory.change_current_allocator(pluggable)
    except RuntimeError as error:
        raise Error(f"vram_torch: PyTorch keeps its own allocator ({str(error).splitlines()[0]})") from None
    _Enabled.pluggable = pluggable
    interface.set_raise(torch, made)
    if pools:
        interface.offer_graphs(torch, made)
    else:
        interface.refuse_graphs(torch, Error)
    interface.refuse(torch, Error)
    if redirect:
        interface.redirect(torch, made, sys.modules[__name__])
    return made


def enable(library=None, conf=None, redirect=True, way=None):
    """Makes vram PyTorch's CUDA allocator for the rest of the process, and returns its Allocator. Calling it again changes nothing.

    way: "native" replaces PyTorch's own class of allocators, with everything PyTorch can ask of it, by a library compiled once for this
    PyTorch; "pluggable" uses PyTorch's interface for other allocators. None: VRAM_TORCH_WAY, else native if possible. way() returns the
    choice and its reason. library: path of libvram_torch.so, for the pluggable interface. conf: option string, as VRAM_ALLOC_CONF.
    redirect: make torch.cuda.memory_stats() and related functions, which the pluggable interface refuses, answer from here. Raises
    Error, changing nothing, if there is no PyTorch with CUDA, if CUDA was already used, if a library cannot be loaded, or if the option
    string is invalid.
    """
    if _Enabled.way:
        return _Enabled.allocator
    torch = _usable_torch()
    wanted = way or os.environ.get("VRAM_TORCH_WAY") or ("pluggable" if library else None)
    if wanted not in (None, "native", "pluggable"):
        raise Error(f"vram_torch: unknown way {wanted}; expected native or pluggable")
    made, how = (None, "pluggable: as requested") if wanted == "pluggable" else _enable_native(torch, wanted, conf)
    if made is None:
        made = _enable_pluggable(torch, library, conf, redirect)
    _Enabled.allocator, _Enabled.torch, _Enabled.way = made, torch, how
    if conf is not None:
        os.environ["VRAM_ALLOC_CONF"] = conf  # read when PyTorch first asks for memory; the process may fork before that
    _redirect_settings(torch, made)
    _announce_launches(torch, made, next((os.environ[name] for name in OPTION_VARIABLES if name in os.environ), None))
    return made


def way():
    """Returns the way that enable() chose: "native: ..." or "pluggable: ..." with the library's origin, or why there is none; "" before
    enable()."""
    return _Enabled.way


def annotate(model=None, optimizer=None):
    """Names memory for recordings: `vram report --by role` and `--by module` prefer these names over their own conclusions.

    For a model (torch.nn.Module): its present parameters and buffers, gradients when they are stored, and the module whose forward()
    makes an allocation. For an optimizer: its state once created. Start the history first. Returns an Annotation, whose remove() ends
    it. Works with any allocator.
    """
    import vram_torch_annotate

    return vram_torch_annotate.annotate(model, optimizer)


def is_enabled():
    return bool(_Enabled.way)


def allocator():
    """Returns the Allocator of this process, creating it if enable() did not."""
    if _Enabled.allocator is None:
        _Enabled.allocator = Allocator()
    return _Enabled.allocator


def _index(device):
    """Returns a device's number from PyTorch's forms: None, 1, "cuda:1", torch.device("cuda:1")."""
    if isinstance(device, str):
        kind, _, number = device.partition(":")
        if kind != "cuda" or (number and not number.isdigit()):
            raise ValueError(f"not a CUDA device: {device!r}")
        device = int(number) if number else None
    index = getattr(device, "index", None) if not isinstance(device, int) else device
    if index is None:
        index = _Enabled.torch.cuda.current_device() if _Enabled.torch is not None else 0
    return index


def _of_device(name):
    """Returns a function with the arguments of torch.cuda's function of the same name that calls the Allocator's method."""
    method = getattr(Allocator, name)

    def function(device=None, *arguments, **named):
        return method(allocator(), _index(device), *arguments, **named)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = method.__doc__
    return function


memory_stats = _of_device("memory_stats")
memory_stats_as_nested_dict = _of_device("memory_stats_as_nested_dict")
memory_summary = _of_device("memory_summary")
memory_allocated = _of_device("memory_allocated")
max_memory_allocated = _of_device("max_memory_allocated")
memory_reserved = _of_device("memory_reserved")
max_memory_reserved = _of_device("max_memory_reserved")
reset_peak_memory_stats = _of_device("reset_peak_memory_stats")
reset_accumulated_memory_stats = _of_device("reset_accumulated_memory_stats")
mem_get_info = _of_device("mem_get_info")
memory_fraction = _of_device("memory_fraction")


def empty_cache():
    """Releases all unused memory to the driver."""
    allocator().empty_cache()


def configure(conf):
    """Applies an option string to the running allocator."""
    allocator().configure(conf)


def last_oom():
    """Returns the report of the newest request of any thread that ran out of memory; None if there is none."""
    return allocator().last_oom()


def record_memory_history(*arguments, **named):
    """Does the same as torch.cuda.memory._record_memory_history(), for this allocator."""
    allocator().record_memory_history(*arguments, **named)


def snapshot():
    """Returns state and history as the dictionary of torch.cuda.memory._snapshot()."""
    return allocator().snapshot()


def dump_snapshot(filename="dump_snapshot.pickle"):
    """Writes state and history as torch.cuda.memory._dump_snapshot() does; ".json" and ".vram" give other formats."""
    allocator().dump_snapshot(filename)


# --- replacements for functions of torch.cuda.memory that PyTorch refuses
# -----------------------------------------------------------------------


def _snapshot_of(device=None, augment_with_fx_traces=False):
    del device, augment_with_fx_traces
    return snapshot()


def _dump_snapshot_to(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    del augment_with_fx_traces
    dump_snapshot(filename)


def memory_snapshot(mempool_id=None, include_traces=True):
    """Returns the segments of torch.cuda.memory_snapshot(), of one pool or all."""
    del include_traces
    segments = snapshot()["segments"]
    if mempool_id is None or tuple(mempool_id) == (0, 0):
        return segments
    return [segment for segment in segments if tuple(segment["segment_pool_id"]) == tuple(mempool_id)]


def set_memory_metadata(metadata):
    """torch.cuda.memory._set_memory_metadata() for this allocator."""
    allocator().set_memory_metadata(metadata if isinstance(metadata, str) else json.dumps(metadata))


def memory_metadata():
    return allocator().memory_metadata()


def annotate_tensor(tensor, metadata):
    """torch.cuda.memory._annotate_tensor() for this allocator."""
    allocator().annotate_memory(tensor.untyped_storage().data_ptr(), metadata if isinstance(metadata, str) else json.dumps(metadata))


# --- suspended memory
# -----------------------------------------------------------------------------------------------------------------------------


def _of_sleep(name):
    def function(*arguments, **named):
        import vram_torch_sleep

        return getattr(vram_torch_sleep, name)(*arguments, **named)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"vram_torch_sleep.{name}()."
    return function


tagged = _of_sleep("tagged")
untagged = _of_sleep("untagged")
tag_pool = _of_sleep("tag_pool")
tags_of = _of_sleep("tags_of")
tagged_devices = _of_sleep("tagged_devices")
sleep = _of_sleep("sleep")
wake = _of_sleep("wake")
wake_untagged = _of_sleep("wake_untagged")
sleepers = _of_sleep("sleepers")
