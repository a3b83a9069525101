"""Returns what a running program itself knows about its memory, by address: parameters, gradients, optimizer state, saved tensors, caches, input.

`Truth` is recorded at moments of a run. `compare()` then reads the recording through the library (vram/roles.h) and returns how many bytes
have the role that the program gave them. Memory unknown to the program (scratch of libraries, transfers) may have any role for
such memory."""
import collections
import ctypes
import os
import pickle
import tempfile
import weakref

import torch

ROLES = ("unknown", "parameters", "gradients", "optimizer_state", "activations", "recomputed", "temporaries", "communication", "input",
         "workspaces", "kv_cache", "cast_weights")
# Memory that the program holds under no known name.
FREE = {"temporaries", "workspaces", "communication", "cast_weights"}


class _Saved:
    """A tensor that the graph saved, for as long as the graph holds it."""

    __slots__ = ("tensor", "role", "__weakref__")

    def __init__(self, tensor):
        self.tensor = tensor
        # A tensor saved during a backward pass is recomputed.
        self.role = "activations" if torch._C._current_graph_task_id() == -1 else "recomputed"


def storage_of(tensor):
    tensor = getattr(tensor, "_local_tensor", tensor)
    try:
        return tensor.untyped_storage().data_ptr() if tensor.is_cuda else 0
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from tensors_in(item)


class Truth:
    def __init__(self, stacks="python"):
        self.moments, self.saved, self.inputs, self.caches = [], weakref.WeakSet(), [], []
        self.net = self.optimizer = None
        torch.cuda.memory._record_memory_history(context="alloc", stacks=stacks, max_entries=1000000)

    def watch(self, net, optimizer=None):
        """Asks at the end of every module's forward pass and after each gradient is stored."""
        self.net, self.optimizer = net, optimizer
        for module in net.modules():
            module.register_forward_hook(lambda *_: self.ask("forward"))
        for parameter in net.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(lambda *_: self.ask("backward"))
        if optimizer is not None:
            optimizer.register_step_post_hook(lambda *_: self.ask("step"))

    def saving(self):
        def pack(tensor):
            held = _Saved(tensor)
            self.saved.add(held)
            return held

        return torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor)

    def _recomputed(self):
        frame = getattr(torch.utils.checkpoint, "_CheckpointFrame", None)
        import gc

        for object_ in gc.get_objects() if frame is not None else ():
            if type(object_) is frame:
                yield from tensors_in([dict(item) for item in object_.recomputed.values()])

    def ask(self, moment):
        """Keeps only the highest moments, which are recorded again when memory exceeds all earlier ones."""
        stats = torch.cuda.memory_stats()
        now = stats["allocated_bytes.all.current"]
        kept = [m for m in self.moments if m[0] == moment]
        if kept and now <= kept[-1][1]:
            return
        known = {}
        for role in ("recomputed", "activations"):
            self._add(known, role, [held.tensor for held in self.saved if held.role == role])
        self._add(known, "recomputed", self._recomputed() if moment == "backward" else ())
        self._add(known, "kv_cache", tensors_in([cache() for cache in self.caches]))
        self._add(known, "input", self.inputs)
        if self.optimizer is not None:
            self._add(known, "optimizer_state", tensors_in(dict(self.optimizer.state)))
        self._add(known, "gradients", [p.grad for p in self.net.parameters() if p.grad is not None])
        self._add(known, "parameters", [*self.net.parameters(), *self.net.buffers()])
        self._add_sharded(known)
        self.moments = [m for m in self.moments if m[0] != moment] + [(moment, now, stats["allocation.all.allocated"] + stats["allocation.all.freed"], known)]

    def _add_sharded(self, known):
        """With FSDP2 a running module's parameters are the gathered ones."""
        for module in self.net.modules():
            group = getattr(getattr(module, "_get_fsdp_state", lambda: None)(), "_fsdp_param_group", None)
            for parameter in group.fsdp_params if group is not None else ():
                self._add(known, "communication", parameter.all_gather_outputs)
                self._add(known, "parameters", [parameter._sharded_param_data])

    @staticmethod
    def _add(known, role, tensors):
        for tensor in tensors:
            address = storage_of(tensor)
            if address:
                known[address] = role

    def compare(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "recorded.pickle")
            torch.cuda.memory._dump_snapshot(path)
            with open(path, "rb") as file:
                events = pickle.load(file)["device_traces"][torch.cuda.current_device()]
            roles = roles_of(path, torch.cuda.current_device())
            if os.environ.get("ROLE_TRUTH_KEEP"):
                os.replace(path, os.environ["ROLE_TRUTH_KEEP"])
        assert len(roles) == len(events), (len(roles), len(events))
        return [self._compare_moment(moment, events, roles) for moment in self.moments]

    @staticmethod
    def _compare_moment(moment, events, roles):
        name, _, calls, known = moment
        live = {}
        for number, event in enumerate(events):
            if event["action"] not in ("alloc", "free_requested"):
                continue
            if calls == 0:
                break
            calls -= 1
            if event["action"] == "alloc":
                live[event["addr"]] = (number, event["size"])
            else:
                live.pop(event["addr"], None)
        bytes_of, wrong = collections.Counter(), collections.Counter()
        for address, (number, size) in live.items():
            said, true = ROLES[roles[number]], known.get(address)
            bytes_of[true or "other"] += size
            if not (said == true if true else said in FREE or said in ("activations", "gradients", "recomputed")):
                wrong[(true or "other", said)] += size
            elif true is None:
                bytes_of["other, as " + said] += size
        return name, bytes_of, wrong


def roles_of(path, device):
    """Returns, by event, the number of the role that the library gives to its allocation."""
    return read_roles(path, device)[0]


def read_roles(path, device):
    """Returns the roles by event, and (name, role, bytes) of the modules at the peak."""

    class Module(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("role", ctypes.c_int), ("bytes", ctypes.c_uint64), ("count", ctypes.c_uint64)]

    class Roles(ctypes.Structure):
        _fields_ = [("device", ctypes.c_uint32), ("peak_event", ctypes.c_int64), ("sums", ctypes.c_uint64 * 2 * len(ROLES) * 3),
                    ("stacked_bytes", ctypes.c_uint64), ("stacked_unknown_bytes", ctypes.c_uint64), ("modules", ctypes.POINTER(Module)),
                    ("module_count", ctypes.c_size_t), ("of_event", ctypes.POINTER(ctypes.c_uint8)), ("event_count", ctypes.c_size_t)]

    class Options(ctypes.Structure):
        _fields_ = [("device", ctypes.c_int64), ("rules", ctypes.c_char_p), ("top", ctypes.c_uint), ("active", ctypes.c_bool)]

    vram = ctypes.CDLL(os.path.join(os.environ["VRAM_BUILD"], "libvram-recordings.so"))
    vram.vram_role_word.restype = ctypes.c_char_p
    assert tuple(vram.vram_role_word(ctypes.c_size_t(i)).decode() for i in range(len(ROLES))) == ROLES
    assert vram.vram_role_word(ctypes.c_size_t(len(ROLES))) is None  # the structures below have a sum for each role
    recording, roles = ctypes.c_void_p(), ctypes.POINTER(Roles)()
    status = vram.vram_recording_read_file(os.fsencode(path), ctypes.byref(recording), None)
    assert status == 0, status
    status = vram.vram_roles_create(recording, ctypes.byref(Options(device=device, top=1000)), ctypes.byref(roles), None)
    assert status == 0, status
    modules = [(m.name.decode(), ROLES[m.role], m.bytes) for m in roles.contents.modules[: roles.contents.module_count]]
    return bytes(roles.contents.of_event[: roles.contents.event_count]), modules
