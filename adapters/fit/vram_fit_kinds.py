"""Finds the ranks that are alike (`vram fit --fold auto`). Rank 0 runs alone first. It notes the groups that it makes, the groups whose
members send each other messages, and the ranks that the program's own code treats differently. These facts determine which ranks have to
run.

Ranks with the same place in every group with messages (the stages of a pipeline) are of one kind. The members of all other groups only take
part in collectives, which treat them alike."""
import collections
import functools
import math
import operator
import os
import sys

MOST_RUNNING = 16  # each is a process
MOST_TWICE = 8  # up to this many, a second rank of each kind also runs
MOST_SINGLED = 8
FEW = os.environ.get("VRAM_FIT_FEW") == "1"  # as few ranks as possible run: the command checks its best answer with all of them
LINE_CHARACTERS = 400  # at most, of a line in the file `kinds`
UNEVEN = os.environ.get("VRAM_FIT_ROUTE", "balanced") != "balanced"  # ranks get unequal numbers of tokens
HERE = os.path.dirname(os.path.abspath(__file__))


class Family:
    """The groups of one size and one distance between members, which together contain every rank once."""

    def __init__(self, size, stride):
        self.size, self.stride, self.name, self.talks = size, stride, "", False

    def place(self, rank):
        return rank // self.stride % self.size

    def member(self, rank, place):
        """Returns the member at `place` of the group of `rank`."""
        return rank + (place - self.place(rank)) * self.stride


def family_of(ranks):
    """Returns a group's family, or None if it has one member, its distances differ, or its first rank is not at place 0 of such a family."""
    strides = {after - before for before, after in zip(ranks, ranks[1:])}
    stride = strides.pop() if len(strides) == 1 else 0
    return Family(len(ranks), stride) if stride > 0 and ranks[0] // stride % len(ranks) == 0 else None


def short_name(description):
    """Returns a group's name from its description: `pp` from DeviceMesh's `mesh_pp`, `pipeline` from Megatron's PIPELINE_MODEL_PARALLEL_GROUP."""
    megatron = description.removesuffix("_PARALLEL_GROUP").removesuffix("_MODEL")
    return megatron.lower() if megatron != description else description.removeprefix("mesh_")


class Kinds:
    def __init__(self, world):
        self.world, self.families = world, {}
        self.compared = {}  # by rank that differs: the place of the comparison, and the family whose places were compared, or None
        self.compares_last = False  # whether the program compares its rank with the last one
        self.asked = {}  # by place in the program and value: the first rank that has the value

    # --- what is seen ----------------------------------------------------------------------------------------------------
    def add(self, ranks, name=""):
        """Notes a group of this rank. Returns its family."""
        family = family_of(ranks)
        if family is not None:
            family = self.families.setdefault((family.size, family.stride), family)
            family.name = family.name or short_name(name or "")
        return family

    def talk(self, ranks):
        """Notes a message between two members of a group of this rank."""
        family = self.add(list(ranks))
        if family is not None:
            family.talks = True

    def single(self, rank, site, family=None):
        """Notes a rank that differs by a comparison at `site`: of its place in the family, or of its number. The first always runs."""
        is_number = family is None or family.size == self.world
        self.compares_last = self.compares_last or (is_number and rank == self.world - 1)
        if 0 < rank < self.world - 1:
            before = self.compared.get(rank)
            if before is None or (before[1] is not None and family is None):
                self.compared[rank] = site, family

    @property
    def singled(self):
        """The ranks that are kinds of their own, and where they are compared. A place in a group with messages is a kind already."""
        families = self.talking()
        whole = {family for family, places in zip(families, self.places(families)) if len(places) == family.size}
        return {rank: site for rank, (site, family) in self.compared.items() if family not in whole}

    def first_of(self, value_of, wanted, place):
        """Returns the first rank whose value is `wanted`, or None. `place` is that of the comparison."""
        key = place, wanted
        if key not in self.asked:
            self.asked[key] = next((rank for rank in range(self.world) if value_of(rank) == wanted), None)
        return self.asked[key]

    def scan(self):
        """Adds the ranks that the program compares RANK of the environment with."""
        import _vram_shared

        comparisons = _vram_shared.part("vram_fit_comparisons")
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if path and path.endswith(".py") and is_own(path):
                for rank, line in comparisons.of_file(path):
                    self.single(rank, f"{path}:{line}")

    # --- what follows ----------------------------------------------------------------------------------------------------
    def talking(self):
        """Returns the families with messages, outermost first."""
        return sorted((family for family in self.families.values() if family.talks), key=lambda family: -family.stride)

    @staticmethod
    def places(families):
        """Returns, for each family, the places that run: all of them, as far as the number of processes allows."""
        chosen = [list(range(family.size)) for family in families]
        while math.prod(map(len, chosen)) > MOST_RUNNING and max(map(len, chosen)) > 4:
            largest = max(range(len(chosen)), key=lambda i: len(chosen[i]))
            size = families[largest].size
            chosen[largest] = sorted({0, 1, size // 2, size - 1})
        return chosen

    @staticmethod
    def reached(rank, families, places):
        """Returns the ranks at those places in the groups of `rank`, and in their groups of the other families."""
        found = {rank}
        for family, chosen in zip(families, places):
            found = {family.member(one, place) for one in found for place in chosen}
        return found

    def running(self):
        """Returns the ranks that have to run. A member that sends messages runs together with the members that it sends to."""
        families = self.talking()
        places = self.places(families)
        most = self.world - 1
        ranks = self.reached(0, families, places) if families else {0, most} if FEW else {0, min(1, most), self.world // 2, most}
        for rank in list(self.singled)[:MOST_SINGLED]:
            ranks |= self.reached(rank, families, places)
        if FEW and not self.compares_last:
            return sorted(ranks)
        others = self.reached(most, families, places)
        return sorted(ranks | others if len(ranks | others) <= (MOST_RUNNING if self.compares_last else MOST_TWICE) else ranks)

    @staticmethod
    def kind_of(rank, families, singled):
        """Returns a rank's place in each of the families, and the rank itself if the program treats it differently."""
        return tuple(family.place(rank) for family in families), rank if rank in singled else None

    def name_of(self, kind, families):
        places, singled = kind
        parts = [f"{family.name or 'group'} {place + 1} of {family.size}" for family, place in zip(families, places)]
        if singled is not None:
            parts.append(f"compared at {os.path.basename(self.singled[singled])}")
        name = ", ".join(parts) or "other ranks"
        return "".join(letter if letter.isprintable() else "?" for letter in name)

    def lines(self):
        running, families, differ = self.running(), self.talking(), self.singled
        yield "run " + " ".join(map(str, running))
        if not families and not differ:
            return
        kinds = collections.defaultdict(list)
        for rank in running:
            kinds[self.kind_of(rank, families, differ)].append(rank)
        counts = collections.Counter(self.kind_of(rank, families, differ) for rank in range(self.world))
        for kind, ranks in kinds.items():
            yield f"kind {counts[kind]} {','.join(map(str, ranks))} {self.name_of(kind, families)}"

    def write(self, folder):
        self.scan()
        path = os.path.join(folder, "kinds")
        with open(path + ".new", "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(line[:LINE_CHARACTERS] + "\n" for line in self.lines())
        os.rename(path + ".new", path)


@functools.lru_cache
def has_packages(folder):
    """Returns whether packages are installed in a folder, such as one of `pip install --target`."""
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder or "."))
    except OSError:
        return False


@functools.lru_cache
def is_own(path):
    """Returns whether a file is part of the program, not of Python, a package or adapters/fit."""
    if path.startswith(HERE) or any(part in path for part in ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen")):
        return False
    return not any(path.startswith(os.path.join(folder, "")) and has_packages(folder) for folder in sys.path)


# --- comparisons of ranks ----------------------------------------------------------------------------------------------------------------
class Rank(int):
    """A number that depends on the rank. A comparison notes a rank for which its result would differ. `value_of` returns the number on
    another rank."""

    def __new__(cls, value, kinds, value_of, family=None):
        rank = super().__new__(cls, value)
        rank.kinds, rank.value_of, rank.family = kinds, value_of, family
        return rank

    __hash__ = int.__hash__

    def __reduce__(self):
        return int, (int(self),)

    def note(self, other):
        code = sys._getframe(2)
        if type(other) is int and not int.__eq__(self, other) and is_own(code.f_code.co_filename):
            site = f"{code.f_code.co_filename}:{code.f_lineno}"
            rank = self.kinds.first_of(self.value_of, other, (site, code.f_lasti))
            if rank is not None:
                self.kinds.single(rank, site, self.family)

    def __eq__(self, other):
        self.note(other)
        return int.__eq__(self, other)

    def __ne__(self, other):
        self.note(other)
        return int.__ne__(self, other)


def derive(name):
    compute, operation = getattr(int, name), getattr(operator, name)

    @functools.wraps(compute)
    def method(self, other):
        result = compute(self, other)
        return Rank(result, self.kinds, lambda rank: operation(self.value_of(rank), other), self.family) if type(other) is int else result

    return method


for each in ("__mod__", "__floordiv__", "__add__", "__sub__", "__mul__"):
    setattr(Rank, each, derive(each))


# --- PyTorch -----------------------------------------------------------------------------------------------------------------------------
def replace(name, old, new):
    """Replaces a function wherever PyTorch imported it."""
    for module in [module for key, module in sys.modules.items() if key.startswith("torch.distributed")]:
        if vars(module).get(name) is old:
            setattr(module, name, new)


def watch_ranks(c10d, kinds):
    ask, families = c10d.get_rank, {}

    @functools.wraps(ask)
    def get_rank(group=None):
        rank, group = ask(group), group or c10d._get_default_group()
        if group not in families:  # the list of a large group's ranks takes long to look at, and programs ask often
            families[group] = kinds.add(list(c10d._world.pg_group_ranks[group])) if rank >= 0 else None
        family = families[group]
        return rank if family is None else Rank(rank, kinds, family.place, family)

    replace("get_rank", ask, get_rank)


def watch_messages(c10d, kinds):
    for name in ("send", "recv", "isend", "irecv", "send_object_list", "recv_object_list"):
        call = getattr(c10d, name, None)
        if call is not None:
            replace(name, call, noting(call, c10d, kinds))


def noting(call, c10d, kinds):
    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        group = kwargs.get("group") or (args[2] if len(args) > 2 else None) or c10d._get_default_group()
        kinds.talk(c10d._world.pg_group_ranks[group])
        return call(*args, **kwargs)

    return wrapper


def watch_exchanges(c10d, kinds):
    """Lets each place in a group that exchanges tokens be a kind, because its experts get their own number of tokens."""
    functional = sys.modules.get("torch.distributed._functional_collectives")
    for module, name in ((c10d, "all_to_all"), (c10d, "all_to_all_single"), (functional, "all_to_all_single"), (functional, "all_to_all_single_autograd")):
        call = getattr(module, name, None)
        if call is not None:
            replace(name, call, noting_exchange(call, c10d, kinds))


def noting_exchange(call, c10d, kinds):
    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        groups = [value.get_group() if hasattr(value, "get_group") else value for value in (*args, *kwargs.values())]
        own = [group for group in groups if isinstance(group, c10d.ProcessGroup)] or [c10d._get_default_group()]
        kinds.talk(c10d._world.pg_group_ranks[own[0]])
        return call(*args, **kwargs)

    return wrapper


def watch(c10d, world):
    """Returns the kinds, which fill as the program runs."""
    kinds = Kinds(world)
    watch_ranks(c10d, kinds)
    watch_messages(c10d, kinds)
    if UNEVEN:
        watch_exchanges(c10d, kinds)
    return kinds
