"""Groups of which only some ranks run (`vram fit --fold`). VRAM_SIM_RANKS is "COUNT:RANK,...": the number of ranks that the program sees, and
those that run as processes. The stand-in for NCCL also reads it (simulator/standins/nccl/nccl_fold.c).

A group of some ranks gets a communicator of its own, whose unique id names the members that run. The store in which the ranks meet answers
for the others: if the member that should make a unique id does not run, the running member that first asks for the id makes it."""
import functools
import os
import sys
import tempfile
import time

RANKS = os.environ.get("VRAM_SIM_RANKS", "")
ID_BYTES = 128  # of NCCL's unique ids, with a NUL at the end
SCOUTS = os.environ.get("VRAM_FIT_SCOUTS") == "1"  # rank 0 notes which ranks are alike (vram_fit_kinds.py); mostly it runs alone
ENDING_SECONDS = 60  # until the command has ended this process
END = None  # ends the recording; set by watch()
# The variables for the rank, the number of ranks, and the same on a machine: torchrun, accelerate and DeepSpeed; Open MPI; MPICH; Slurm.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
)
WATCHING = ("TORCH_NCCL_ENABLE_MONITORING", "TORCH_NCCL_DUMP_ON_TIMEOUT")  # their threads would use the store while the program ends


def take_rank():
    """Sets this process's rank before the program reads it. A launcher starts only as many processes as run; each takes its rank from the
    list."""
    taken = [each for each in LAUNCHERS if take_rank_of(*each)]
    if not taken:
        return
    if "ROLE_RANK" in os.environ and "RANK" in os.environ:
        os.environ["ROLE_RANK"], os.environ["ROLE_WORLD_SIZE"] = os.environ["RANK"], os.environ["WORLD_SIZE"]
    for key in WATCHING:
        os.environ.setdefault(key, "0")
    share_kernels()


def take_rank_of(rank, world, local_rank, local_world):
    """Sets the variables of one launcher. Returns false if it did not start this process, or a parent process has set them."""
    count, _, running = RANKS.partition(":")
    running = [int(one) for one in running.split(",") if one]
    index = os.environ.get(rank)
    if index is None or not index.isdigit() or int(index) >= len(running) or local_rank not in os.environ or os.environ.get(world) != str(len(running)):
        return False
    os.environ[rank], os.environ[world] = str(running[int(index)]), count
    # Each process has its own device: that of the rank on its machine, else the one that the launcher gave it. The number per machine is what
    # the launcher was given.
    own = os.environ.get("VRAM_FIT_LOCAL_RANKS", "").split(",")
    if len(own) == len(running) and "CUDA_VISIBLE_DEVICES" not in os.environ:
        os.environ[local_rank] = own[int(index)]
    os.environ[local_world] = os.environ.get("VRAM_FIT_LOCAL_WORLD", count)
    return True


def own_rank():
    """Returns this process's rank as its launcher sets it, or None."""
    return next((os.environ[rank] for rank, *_ in LAUNCHERS if rank in os.environ), None)


def refuse_mpi(module):
    """Called when mpi4py is imported. MPI itself knows only the processes that run."""
    refuse("the program asks MPI for its rank, and MPI knows only the ranks that run. Set the ranks from the launcher's variables, or use --fold none")


def share_kernels():
    """Lets the ranks share the kernels that PyTorch's compiler makes. Each device has a folder of its own, but here all devices are alike, and
    the stages of a pipeline would compile the same kernels one after the other."""
    if "TRITON_CACHE_DIR" not in os.environ:
        folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or os.path.join(tempfile.gettempdir(), f"torchinductor_uid_{os.getuid()}")
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton", "0")


@functools.lru_cache
def running_ranks(world):
    """Returns the ranks of a group of `world` that run as processes."""
    count, _, running = RANKS.partition(":")
    return [int(rank) for rank in running.split(",")] if RANKS and int(count) == world else range(world)


def refuse(reason):
    """Ends the program with one message, which the command prints. The command ends all ranks, so that no launcher reports them as failed."""
    folder = os.environ.get("VRAM_FIT")
    if folder:
        with open(os.path.join(folder, "refused"), "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(reason + "\n")
    if folder and END is not None:
        END()
        time.sleep(ENDING_SECONDS)
    sys.stderr.write(f"vram fit: {reason}\n")
    sys.stderr.flush()
    os._exit(77)


class Members:
    """The ranks of a communicator, in its order, and the places of those that run. A rank makes thousands of groups that it is not in."""

    def __init__(self, ranks, running):
        self.ranks, self.all_running = list(ranks), running

    @functools.cached_property
    def running(self):
        return [place for place, rank in enumerate(self.ranks) if rank in self.all_running]

    @functools.cached_property
    def is_known(self):
        """The stand-in has the list of running ranks in their order."""
        return len(self.running) == len(self.ranks) or self.ranks == list(range(int(RANKS.partition(":")[0])))

    def named(self, unique_id):
        """Returns the unique id with the places of the running members, which the stand-in for NCCL reads."""
        if self.is_known:
            return unique_id
        named = unique_id.partition(b"\0")[0] + b":" + ",".join(map(str, self.running)).encode()
        if len(named) >= ID_BYTES:
            refuse(f"{len(self.running)} of the ranks that run are in one process group, which is too many to fold. List fewer of them in --fold")
        return named.ljust(ID_BYTES, b"\0")


class Groups:
    """The process groups by name; their keys in the store begin with the name."""

    def __init__(self, make_id):
        self.by_name, self.make_id = {}, make_id
        self.folds_gloo = False
        self.current = None  # members of the group that is being made, or was made last

    def add(self, name, ranks, running):
        self.by_name[name] = list(ranks), running
        self.current = Members(ranks, running)

    def running_of(self, name, count):
        """Returns how many members of a group run, or how many ranks if `count` is not the group's size."""
        ranks, running = self.by_name.get(name, ((), ()))
        return len(Members(ranks, running).running) if len(ranks) == count else len(running_ranks(count))

    def asked(self, key):
        """Returns the members of the communicator whose unique id is stored under the key, and the place of the member that makes it; None for
        other keys. The key is the group's name, the device, then a number, `0:1` for a communicator of two members, or `UniqueNCCLID:0`. From
        PyTorch 2.15 on it ends in `nccl_storekey_0`, or `nccl_storekey_0_1` for an id of a part."""
        *_, name, device, call = [""] * 2 + key.split("//")
        call = call.rpartition("/nccl_storekey_")[2]
        if call.partition("_")[2]:  # an id for each part of a large group, from PyTorch 2.15 on
            call = "UniqueNCCLID:" + call.rpartition("_")[2]
        ranks, running = self.by_name.get(name.rpartition("/")[2], (None, None))
        part, _, number = call.rpartition(":")
        if ranks is None or not device.startswith("cuda") or not number.isdigit():
            return None
        if part.isdigit():
            return Members([ranks[int(part)], ranks[int(number)]], running), 0
        # Each part of a large group has an id, of which the first is used.
        return (Members(ranks, running), 0 if not part or number == "0" else -1) if part in ("", "UniqueNCCLID") else None

    def is_absent(self, key):
        """Returns whether the key is a unique id of a rank that does not run."""
        members, maker = self.asked(key) or (None, None)
        return members is not None and maker not in members.running

    def set(self, store, key, value):
        members, _ = self.asked(key) or (None, None)
        named = members.named(value) if members else value
        if named != value:  # the rank that makes an id may not read it back, as in PyTorch 2.6
            os.environ["VRAM_SIM_NCCL_RUNNING"] = bytes(named).rstrip(b"\0").decode().partition(":")[2]
        store.set(key, named)

    def get(self, store, key):
        if not self.is_absent(key):
            return store.get(key)
        return store.compare_set(key, "", self.asked(key)[0].named(self.make_id()))


def store_class(torch, groups):
    """Returns a class of stores that hold another one and answer for the ranks that do not run. PyTorch holds only the C++ part of a store, so
    the class keeps them."""

    class FoldedStore(torch.distributed.Store):
        made = []

        def __init__(self, store):
            super().__init__()
            self.store = store
            self.made.append(self)

        def set(self, key, value):
            groups.set(self.store, key, value)

        def get(self, key):
            return groups.get(self.store, key)

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def wait(self, keys, *timeout):
            self.store.wait([key for key in keys if not groups.is_absent(key)], *timeout)

        def clone(self):
            return FoldedStore(self.store.clone())

    for name in ("add", "append", "check", "compare_set", "delete_key", "has_extended_api", "multi_set", "num_keys", "set_timeout", "list_keys",
                 "queue_len", "queue_pop", "queue_push"):

        def call(self, *args, name=name, **kwargs):
            return getattr(self.store, name)(*args, **kwargs)

        setattr(FoldedStore, name, call)
    FoldedStore.get_num_keys = FoldedStore.num_keys
    FoldedStore.timeout = property(lambda self: self.store.timeout)
    return FoldedStore


def refuse_gloo(c10d, groups, backend):
    members = groups.current
    if groups.folds_gloo or len(members.running) == len(members.ranks) or c10d.is_initialized() and c10d.get_rank() not in members.ranks:
        return
    if "gloo" in c10d.BackendConfig(c10d.Backend(backend)).get_device_backend_map().values():
        refuse(f"the program creates a gloo group of {len(members.ranks)} ranks, of which {len(members.running)} run; with this version of PyTorch only"
               " groups of NCCL can be folded. Use the backend `nccl`, or list all members in --fold")


def own_groups(c10d, groups, folded_store, kinds):
    """Gives each group a communicator of its own, and notes its ranks. A communicator cannot be split if some ranks do not report to which
    part they belong."""
    make = c10d._new_process_group_helper

    @functools.wraps(make)
    def new_process_group_helper(group_size, group_rank, ranks, backend, store, group_name, *args, **kwargs):
        running = running_ranks(group_size if not ranks else c10d.get_world_size())
        groups.add(group_name, ranks or range(group_size), running)
        if kinds is not None and c10d.is_initialized() and c10d.get_rank() in ranks:
            kinds.add(list(ranks), kwargs.get("group_desc"))
        refuse_gloo(c10d, groups, backend)
        if not ranks:
            store = folded_store(store)
        return make(group_size, group_rank, ranks, backend, store, group_name, *args, **kwargs)

    c10d._new_process_group_helper = new_process_group_helper
    if hasattr(c10d, "_get_split_source"):
        c10d._get_split_source = lambda *args, **kwargs: None


def fold_gloo(c10d, groups):
    """Replaces gloo in groups of which only some ranks run."""
    import _vram_shared

    getattr(c10d.Backend, "_ensure_backend_registered", str)("gloo")
    plugins = getattr(c10d.Backend, "_plugins", {})
    groups.folds_gloo = "GLOO" in plugins
    if not groups.folds_gloo:  # an older PyTorch, whose gloo cannot be replaced
        return
    make = plugins["GLOO"].creator_fn

    def create(*args):
        running = groups.current.running
        if len(running) == len(groups.current.ranks):
            return make(*args)
        options = args[0]
        store, rank, size, timeout = args if len(args) == 4 else (options.store, options.group_rank, options.group_size, options.timeout)
        return _vram_shared.part("vram_fit_gloo").FoldedGloo(store, rank, size, timeout, running)

    plugins["GLOO"] = plugins["GLOO"]._replace(creator_fn=create)


def broadcast_objects(torch, c10d):
    """Lets the representative of a rank that does not run broadcast its own objects, whose sizes the others have to know."""
    broadcast = c10d.broadcast_object_list

    @functools.wraps(broadcast)
    def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
        ranks = list(c10d._world.pg_group_ranks[group or c10d._get_default_group()])
        root = ranks[group_src] if src is None and group_src is not None else src or 0
        running = [rank for rank in ranks if rank in running_ranks(c10d.get_world_size())]
        if root not in running and running:
            below = [rank for rank in running if ranks.index(rank) < ranks.index(root)]
            root = below[-1] if below else running[0]
        return broadcast(object_list, root, group, device)

    c10d.broadcast_object_list = torch.distributed.broadcast_object_list = broadcast_object_list


def refuse_objects(torch, c10d):
    """Refuses to receive objects from a rank that does not run: their sizes are not known."""
    receive = c10d.recv_object_list

    @functools.wraps(receive)
    def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, **kwargs):
        ranks = list(c10d._world.pg_group_ranks[group or c10d._get_default_group()])
        source = ranks[group_src] if group_src is not None else src
        if source is not None and source not in running_ranks(c10d.get_world_size()):
            refuse(f"rank {c10d.get_rank()} receives objects from rank {source}, which does not run. List it in --fold, together with all other stages of its pipeline")
        more = {} if group_src is None else {"group_src": group_src}
        return receive(object_list, src, group, device, **more, **kwargs)

    c10d.recv_object_list = torch.distributed.recv_object_list = recv_object_list


def refuse_symmetric(memory, groups):
    """Refuses symmetric memory of a group of which only some ranks run: PyTorch would wait for the addresses of all. `memory` is PyTorch's module."""

    def refused(function, place):
        @functools.wraps(function)
        def call(*args, **kwargs):
            group = args[place] if len(args) > place else kwargs.get("group_name", kwargs.get("group"))
            group = memory.c10d._resolve_process_group(group) if isinstance(group, str) else group
            running = groups.running_of(group.group_name, group.size())
            if running < group.size():
                refuse(f"the program uses symmetric memory (asynchronous tensor parallelism, for example) in a group of {group.size()} ranks, of which {running} run."
                       " List all members in --fold, or use --fold none")
            return function(*args, **kwargs)

        return call

    for name, place in (("enable_symm_mem_for_group", 0), ("get_symm_mem_workspace", 0), ("rendezvous", 1)):
        if hasattr(memory, name):
            setattr(memory, name, refused(getattr(memory, name), place))


def replace_monitored_barrier(torch, c10d):
    """A monitored barrier reports the ranks that do not come. In a group of which only some ranks run it becomes a barrier of these."""
    wait = c10d.monitored_barrier

    @functools.wraps(wait)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        members, running = group or c10d._get_default_group(), running_ranks(c10d.get_world_size())
        if all(rank in running for rank in c10d._world.pg_group_ranks[members]):
            return wait(group, timeout, wait_all_ranks)
        return members._get_backend(torch.device("cpu")).barrier().wait()  # c10d.barrier() allocates on the device

    c10d.monitored_barrier = torch.distributed.monitored_barrier = monitored_barrier


def replace_split(torch, c10d):
    """Replaces split_group() by a new group of the same ranks."""
    split = getattr(c10d, "split_group", None)
    if split is None:
        return

    @functools.wraps(split)
    def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, **kwargs):
        parent = parent_pg or c10d._get_default_group()
        by_place = {place: rank for rank, place in c10d._world.pg_group_ranks[parent].items()}
        for places in split_ranks:
            ranks = [by_place[place] for place in places]
            if c10d.get_rank() in ranks:
                return c10d._new_group_with_tag(ranks, timeout, kwargs.get("backend"), pg_options, use_local_synchronization=True, group_desc=group_desc)
        return c10d.GroupMember.NON_GROUP_MEMBER

    c10d.split_group = split_group
    for name in ("torch.distributed", "torch.distributed.device_mesh"):
        if getattr(sys.modules.get(name), "split_group", None) is split:
            sys.modules[name].split_group = split_group


def count_barrier(c10d, groups):
    """Lets barriers of the store wait only for the ranks that run."""
    wait = getattr(c10d, "_store_based_barrier", None)
    if wait is None:
        return

    @functools.wraps(wait)
    def _store_based_barrier(rank, store, group_name, rendezvous_count, *args, **kwargs):
        return wait(rank, store, group_name, groups.running_of(group_name, rendezvous_count), *args, **kwargs)

    c10d._store_based_barrier = _store_based_barrier


def watch(torch, recorder):
    """Called when PyTorch is imported, if some ranks do not run."""
    import _vram_shared
    import torch.distributed.distributed_c10d as c10d

    global END
    END = recorder.refuse
    if SCOUTS and own_rank() == "0":
        recorder.kinds = _vram_shared.part("vram_fit_kinds").watch(c10d, int(RANKS.partition(":")[0]))
    groups = Groups(torch.cuda.nccl.unique_id)
    own_groups(c10d, groups, store_class(torch, groups), recorder.kinds)
    count_barrier(c10d, groups)
    fold_gloo(c10d, groups)
    broadcast_objects(torch, c10d)
    refuse_objects(torch, c10d)
    _vram_shared.when_imported("torch.distributed._symmetric_memory", functools.partial(refuse_symmetric, groups=groups))
    replace_monitored_barrier(torch, c10d)
    replace_split(torch, c10d)
