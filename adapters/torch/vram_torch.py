"""vram as PyTorch's CUDA allocator.

    import vram_torch
    vram_torch.enable()        # before anything uses CUDA
    ...
    print(vram_torch.memory_summary())

Without PyTorch, `Allocator` is the same allocator through ctypes. The library is libvram_torch.so beside this file, or what the
environment variable VRAM_TORCH_LIBRARY names. Options: VRAM_ALLOC_CONF, then PyTorch's own variables. docs/guides/torch.md has the rest.
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
    "reset_peak_memory_stats", "sleep", "sleepers", "snapshot", "tag_pool", "tagged", "tagged_devices", "tags_of", "untagged", "wake", "way",
]

OPTION_VARIABLES = ("VRAM_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")

# enum vram_status, as far as it is told apart here.
OUT_OF_MEMORY, REJECTED = 4, 5


class Error(RuntimeError):
    """What the allocator, or switching it on, refused; one line."""


class OptionError(Error, ValueError):
    """An option string that is wrong; the character is named."""


class OutOfMemory(Error, MemoryError):
    """The device has no room for a request. str() is the report."""


_ADDRESS, _TEXT, _SIZE = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t
_OUT = ctypes.POINTER(ctypes.c_uint64)


class _PoolId(ctypes.Structure):
    _fields_ = [("first", ctypes.c_uint64), ("second", ctypes.c_uint64)]


SLEEP_LEVELS = ("keep", "discard", "zero")  # enum vram_sleep_level

# A pool that sleeps: PyTorch's id of it, its level, whether requests wake it; bytes of its live blocks, of device memory that it will need and of
# pinned memory that keeps it; its tag.
Sleeper = collections.namedtuple("Sleeper", "pool level wakes live_bytes away_bytes host_bytes tag")


def _tags(tags):
    return (ctypes.c_char_p * max(1, len(tags)))(*(tag.encode() for tag in tags))


# Name without vram_torch_, result, arguments.
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
    ("sleepers", _SIZE, (ctypes.c_int, _TEXT, _SIZE)),
    ("tag_bytes", ctypes.c_int, (ctypes.c_int, _TEXT, _OUT)),
    ("kept", ctypes.c_int, (_ADDRESS, ctypes.c_uint64, ctypes.c_void_p)),
    ("base_alloc", ctypes.c_void_p, (ctypes.c_void_p, ctypes.POINTER(_SIZE))),
    ("set_raise", None, (ctypes.c_void_p,)),
    ("expect_capture", None, (_ADDRESS,)),
    ("pool_count", ctypes.c_uint32, ()),
)


def library_path():
    """Where the shared library is looked for."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libvram_torch.so")
    return os.environ.get("VRAM_TORCH_LIBRARY") or beside


class Allocator:
    """The one allocator of this process. Objects of this class are handles of it: all of them mean the same.

    Addresses and streams are integers. What fails raises Error, for lack of memory OutOfMemory. Any thread may call any method.
    """

    def __init__(self, library=None):
        self.path = os.path.abspath(library or library_path())
        try:
            self._library = ctypes.CDLL(self.path)
        except OSError as error:
            raise Error(f"vram_torch: the library cannot be loaded ({error}); VRAM_TORCH_LIBRARY says where it is") from None
        for name, result, arguments in _FUNCTIONS:
            function = getattr(self._library, "vram_torch_" + name)
            function.restype, function.argtypes = result, arguments

    def address_of(self, symbol):
        """The address of a C function of the library, as an integer."""
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
        """The address of `size_bytes` new bytes, 0 for 0 bytes."""
        if size_bytes < 0 or size_bytes >= 1 << 64:
            raise ValueError("size_bytes is not a size")
        address = ctypes.c_uint64(0)
        self._call("allocate", size_bytes, device, stream, ctypes.byref(address))
        return address.value

    def free(self, address):
        """Takes a block back; address 0 is ignored."""
        self._call("release", address)

    def record_stream(self, address, stream):
        """The block is also used on `stream`: it is not given out again before that stream has passed the moment of its free."""
        self._call("use_on", address, stream)

    def base_allocation(self, address):
        """(first address, bytes) of the segment that holds `address`; (address, 0) if none does."""
        size = ctypes.c_size_t(0)
        base = self._library.vram_torch_base_alloc(address, ctypes.byref(size))
        return base or 0, size.value

    def empty_cache(self):
        """Gives all memory that nobody uses back to the driver."""
        self._call("empty_cache")

    # Memory that sleeps

    def tag_begin(self, tag, device=0):
        """From now on requests of this thread on the device go to the pool with this tag; "": to one that does not sleep."""
        self._call("tag_begin", device, tag.encode())

    def tag_end(self, tag, device=0):
        """Ends the newest tag_begin() with this tag."""
        self._call("tag_end", device, tag.encode())

    def tag_pool(self, pool_id, tag, device=0):
        """Gives a pool of PyTorch's (torch.cuda.MemPool.id) a tag; what it gets from now on can sleep."""
        self._call("tag_pool", device, _PoolId(*pool_id), tag.encode())

    def sleep(self, levels=None, on_request="fail", device=0):
        """Puts pools of the device to sleep and returns the bytes that went back to the driver.

        levels: a dictionary of tags with "keep", "discard" or "zero", or one of these words for all pools of the device.
        on_request: what a request to a pool that sleeps does: "fail" or "wake".
        """
        if on_request not in ("fail", "wake"):
            raise ValueError(f"on_request is fail or wake, not {on_request!r}")
        tags = list(levels) if isinstance(levels, dict) else []
        words = [levels[tag] for tag in tags] if tags else ["keep" if levels is None or isinstance(levels, dict) else levels]
        numbers = (ctypes.c_int * len(words))(*(SLEEP_LEVELS.index(word) for word in words))
        went = ctypes.c_uint64(0)
        self._call("sleep", device, _tags(tags), numbers, len(tags), int(on_request == "wake"), ctypes.byref(went))
        return went.value

    def wake(self, tags=None, device=0):
        """Wakes the pools with these tags, or all; returns the bytes that came from the driver."""
        came = ctypes.c_uint64(0)
        self._call("wake", device, _tags(tags or ()), len(tags or ()), ctypes.byref(came))
        return came.value

    def sleepers(self, device=0):
        """The pools of the device that sleep, as Sleeper objects, the newest first."""
        lines = self._text("sleepers", device).splitlines()
        fields = [line.split("\t", 7) for line in lines]
        return [Sleeper((int(a), int(b)), SLEEP_LEVELS[int(level)], wakes == "1", int(live), int(away), int(host), tag)
                for a, b, level, wakes, live, away, host, tag in fields]

    def tag_bytes(self, tag, device=0):
        """What the pool of a tag holds of the device's memory now."""
        held = ctypes.c_uint64(0)
        self._call("tag_bytes", device, tag.encode(), ctypes.byref(held))
        return held.value

    def kept(self, address, size_bytes):
        """The bytes at this address of a pool that sleeps, out of the host's memory that keeps them."""
        buffer = ctypes.create_string_buffer(max(1, size_bytes))
        self._call("kept", address, size_bytes, buffer)
        return buffer.raw[:size_bytes]

    # Settings

    def configure(self, conf):
        """Reads an option string, as PYTORCH_CUDA_ALLOC_CONF; some options apply to later segments only."""
        self._call("configure", conf.encode())

    def check_options(self, conf):
        """Raises OptionError with the character if the option string is wrong; changes nothing."""
        try:
            self._call("check_options", conf.encode())
        except Error as error:
            raise OptionError(str(error)) from None

    def configuration(self):
        """The option string in force."""
        return self._text("configuration")

    def set_memory_fraction(self, fraction, device=0):
        """Limits what is held on the device to this share of its memory."""
        self._call("set_fraction", device, fraction)

    def memory_fraction(self, device=0):
        """The share of the device's memory that may be held."""
        fraction = ctypes.c_double(0)
        self._call("fraction", device, ctypes.byref(fraction))
        return fraction.value

    # Questions

    def memory_stats(self, device=0):
        """Counters under PyTorch's flat names ("allocated_bytes.all.current"), sorted."""
        return json.loads(self._text("stats_json", device, needed=True), object_pairs_hook=collections.OrderedDict)

    def memory_stats_as_nested_dict(self, device=0):
        """The same as dictionaries in dictionaries."""
        nested = {}
        for key, value in self.memory_stats(device).items():
            *path, last = key.split(".")
            functools.reduce(lambda inner, name: inner.setdefault(name, {}), path, nested)[last] = value
        return nested

    def memory_summary(self, device=0, abbreviated=False):
        """The table of torch.cuda.memory_summary()."""
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
        """(free, total) bytes of the device, by the driver."""
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
        """The memory history, with the arguments of torch.cuda.memory._record_memory_history(); `device` is ignored as there.

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
            raise Error("vram: a comma in an argument of record_memory_history()")
        self._call("history", ",".join(words).encode())

    def dump_snapshot(self, filename="dump_snapshot.pickle"):
        """Writes state and history as torch.cuda.memory._dump_snapshot() does; ".json" and ".vram" give other formats."""
        self._call("snapshot_save", os.fsencode(filename).replace(b"%", b"%%"))

    def snapshot(self):
        """State and history as the dictionary of torch.cuda.memory._snapshot()."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "snapshot.pickle")
            self.dump_snapshot(path)
            with open(path, "rb") as file:
                return pickle.load(file)

    def annotate_memory(self, address, text):
        """Writes a name onto a live block; snapshots show it as its user_metadata."""
        self._call("annotate", address, text.encode())

    def set_memory_metadata(self, text):
        """What stands in the events of the calling thread from now on, as user_metadata."""
        self._call("set_metadata", text.encode())

    def memory_metadata(self):
        """What set_memory_metadata() said in the calling thread."""
        return self._text("metadata")

    # Failures

    def add_oom_observer(self, function):
        """A ctypes function (const struct vram_oom *, void *) that is called when a request fails; the caller keeps it alive."""
        self._call("add_oom_observer", ctypes.cast(function, ctypes.c_void_p))

    def last_oom(self):
        """The report of the newest request that failed for lack of memory, of any thread; None if there was none."""
        return self._text("oom_text") or None

    def last_error(self):
        """One line about the calling thread's newest failure; "" if there was none."""
        return self._text("error")

    def check(self):
        """Verifies the allocator's own state; Error with the first thing that does not hold."""
        self._call("check")

    def version(self):
        return self._library.vram_torch_version().decode()


# --- PyTorch ------------------------------------------------------------------------------------------------------------------------


class _Enabled:
    """What enable() made. PyTorch keeps addresses only: these objects must live as long as the process."""

    allocator = None
    pluggable = None
    torch = None
    way = ""


def _usable_torch():
    """The module torch, or an Error that says in one line why this cannot work."""
    try:
        import torch
    except ImportError as error:
        raise Error(f"vram_torch: torch cannot be imported ({error})") from None
    if not hasattr(getattr(torch.cuda, "memory", None), "CUDAPluggableAllocator"):
        raise Error("vram_torch: this PyTorch has no CUDAPluggableAllocator; 2.0 or newer is needed")
    if getattr(torch.version, "cuda", None) is None:
        raise Error("vram_torch: this PyTorch is built without CUDA")
    if torch.cuda.is_initialized():
        raise Error("vram_torch: CUDA is initialised already; enable() must come before anything uses it")
    if "VRAM_SIM" in os.environ and not _under_vram_sim():
        raise Error("vram_torch: VRAM_SIM is set, but PyTorch's driver is not simulated; run the program by `vram sim`")
    return torch


def _under_vram_sim():
    """Whether `vram sim` started this process: the driver that PyTorch loads is a simulated one then."""
    return "VRAM_SIM_FRONT" in os.environ or any("/simcuda" in path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":"))


SETTINGS = ("_cuda_cudaCachingAllocator_set_allocator_settings", "_accelerator_setAllocatorSettings")  # the newest last


def _check_options(torch, made, conf):
    """What PyTorch refuses, too, it refuses in its own words."""
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
    """What changes PyTorch's settings at run time changes this allocator's, too."""
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


def _enable_native(torch, wanted, conf):
    """(Allocator in PyTorch's own place, how); (None, why) where only the pluggable interface is left."""
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
        with contextlib.suppress(Error):  # one that is newer than the rules: the newest of them
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

    way: "native" takes the place of PyTorch's own class of allocators, with everything that PyTorch can ask of it, by a library that is
    compiled for this PyTorch once; "pluggable" is the interface that PyTorch has for other allocators. None: VRAM_TORCH_WAY, else native
    where it can be had. way() says which it became, and why. library: path of libvram_torch.so, for the pluggable interface. conf: option
    string, as VRAM_ALLOC_CONF. redirect: torch.cuda.memory_stats() and its relatives, which the pluggable interface refuses, answer from
    here. Raises Error, and has changed nothing then, if there is no PyTorch with CUDA, if CUDA was used already, if a library cannot be
    loaded, or if the option string is wrong.
    """
    if _Enabled.way:
        return _Enabled.allocator
    torch = _usable_torch()
    wanted = way or os.environ.get("VRAM_TORCH_WAY") or ("pluggable" if library else None)
    if wanted not in (None, "native", "pluggable"):
        raise Error(f"vram_torch: no such way: {wanted} (native, pluggable)")
    made, how = (None, "pluggable: as asked for") if wanted == "pluggable" else _enable_native(torch, wanted, conf)
    if made is None:
        made = _enable_pluggable(torch, library, conf, redirect)
    _Enabled.allocator, _Enabled.torch, _Enabled.way = made, torch, how
    if conf is not None:
        os.environ["VRAM_ALLOC_CONF"] = conf  # read when PyTorch asks for memory first: until then the process may fork
    _redirect_settings(torch, made)
    return made


def way():
    """How enable() did it: "native: ..." or "pluggable: ..." with where the library came from, or why there is none; "" before."""
    return _Enabled.way


def annotate(model=None, optimizer=None):
    """Names for recordings: `vram report --by role` and `--by module` take them before anything that they would conclude themselves.

    Of a model (torch.nn.Module) the parameters and buffers now, gradients as they are put down, and in whose forward() an allocation is made; of
    an optimizer its state, when it has made it. Switch the history on first. Returns an Annotation, whose remove() ends it. Any allocator.
    """
    import vram_torch_annotate

    return vram_torch_annotate.annotate(model, optimizer)


def is_enabled():
    return bool(_Enabled.way)


def allocator():
    """The Allocator of this process, made by enable() or here."""
    if _Enabled.allocator is None:
        _Enabled.allocator = Allocator()
    return _Enabled.allocator


def _index(device):
    """A device's number from what PyTorch takes for one: None, 1, "cuda:1", torch.device("cuda:1")."""
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
    """A function with the arguments of torch.cuda's of the same name, answered by the Allocator's method."""
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
    """Gives all memory that nobody uses back to the driver."""
    allocator().empty_cache()


def configure(conf):
    """Reads an option string for the running allocator."""
    allocator().configure(conf)


def last_oom():
    """The report of the newest request that failed for lack of memory, of any thread; None if there was none."""
    return allocator().last_oom()


def record_memory_history(*arguments, **named):
    """torch.cuda.memory._record_memory_history() of this allocator."""
    allocator().record_memory_history(*arguments, **named)


def snapshot():
    """State and history as the dictionary of torch.cuda.memory._snapshot()."""
    return allocator().snapshot()


def dump_snapshot(filename="dump_snapshot.pickle"):
    """Writes state and history as torch.cuda.memory._dump_snapshot() does; ".json" and ".vram" give other formats."""
    allocator().dump_snapshot(filename)


# --- as torch.cuda.memory has them, in whose places they stand where PyTorch refuses its own ----------------------------------------------------


def _snapshot_of(device=None, augment_with_fx_traces=False):
    del device, augment_with_fx_traces
    return snapshot()


def _dump_snapshot_to(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    del augment_with_fx_traces
    dump_snapshot(filename)


def memory_snapshot(mempool_id=None, include_traces=True):
    """The segments of torch.cuda.memory_snapshot(), of one pool or of all."""
    del include_traces
    segments = snapshot()["segments"]
    if mempool_id is None or tuple(mempool_id) == (0, 0):
        return segments
    return [segment for segment in segments if tuple(segment["segment_pool_id"]) == tuple(mempool_id)]


def set_memory_metadata(metadata):
    """torch.cuda.memory._set_memory_metadata() of this allocator."""
    allocator().set_memory_metadata(metadata if isinstance(metadata, str) else json.dumps(metadata))


def memory_metadata():
    return allocator().memory_metadata()


def annotate_tensor(tensor, metadata):
    """torch.cuda.memory._annotate_tensor() of this allocator."""
    allocator().annotate_memory(tensor.untyped_storage().data_ptr(), metadata if isinstance(metadata, str) else json.dumps(metadata))


# --- memory that sleeps ---------------------------------------------------------------------------------------------------------------------------


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
sleepers = _of_sleep("sleepers")
