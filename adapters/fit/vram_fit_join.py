"""Notes which processes are ranks, and which of them join their job by torch.distributed.init_process_group(). The command finds a rank that
ended before it joined, for which the others wait (cli/fit_joining.c).

PID.rank is "RANK WORLD NOTED_BY MICROSECONDS" for the main process of a rank. PID.joins is "WORLD PROCESS": that rank, or a process without a rank, has
called the function. PID.spawns is the number of processes that torch.multiprocessing.spawn() starts. A rank's children have its number too, so MAIN names its main process to them: "PID:RANK:WORLD"."""
import functools
import os
import sys
import time

FOLDER = os.environ.get("VRAM_FIT", "")
MAIN = "VRAM_FIT_RANK_PROCESS"


def own_place():
    """Returns the names and values of this process's rank and number of ranks, as its launcher set them; None without them."""
    import _vram_shared

    for rank, world, *_ in _vram_shared.part("vram_fit_fold").LAUNCHERS:
        if os.environ.get(rank, "").isdigit() and os.environ.get(world, "").isdigit():
            return rank, world, os.environ[rank], os.environ[world]
    return None


def environment_of(process):
    """Returns the variables with which a process was started."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return dict(line.partition(b"=")[::2] for line in file.read().split(b"\0"))
    except OSError:
        return {}


def parent_of(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def started_as(names):
    """Returns the outermost process that was started with the same rank, such as the shell of a script that runs several programs."""
    names = [name.encode() for name in ("VRAM_FIT", *names)]
    process, own = os.getpid(), environment_of("self")
    while all(name in own for name in names):
        parent = parent_of(process)
        there = environment_of(parent)
        if parent <= 1 or any(there.get(name) != own[name] for name in names):
            break
        process = parent
    return process


def put(name, words):
    path = os.path.join(FOLDER, name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(words + "\n")
    os.rename(path + ".new", path)


def main_process():
    """Returns the main process of this process's rank, or this process."""
    place = own_place()
    process, _, rest = os.environ.get(MAIN, "").partition(":")
    return int(process) if place is not None and process.isdigit() and rest == ":".join(place[2:]) else os.getpid()


def note_rank():
    """Called at the start of every process, after a folded rank has got its number."""
    place = own_place()
    if place is None or main_process() != os.getpid():
        return
    main = started_as(place[:2])
    os.environ[MAIN] = ":".join((str(main), *place[2:]))
    if not os.path.exists(os.path.join(FOLDER, f"{main}.rank")):
        put(f"{main}.rank", f"{place[2]} {place[3]} {os.getpid()} {time.time_ns() // 1000}")


def note_join(args, kwargs):
    place = own_place()
    names = ("backend", "init_method", "timeout", "world_size")
    world = {**dict(zip(names, args)), **kwargs}.get("world_size")
    if not isinstance(world, int) or world < 1:
        world = int(place[3]) if place is not None else 0
    put(f"{main_process()}.joins", f"{world} {os.getpid()}")


def watch_spawn(module):
    """Notes how many processes the program spawns, which may use a device each: PID.spawns."""
    start = getattr(module, "start_processes", None)
    if start is None:
        return

    @functools.wraps(start)
    def start_processes(fn, args=(), nprocs=1, *more, **kwargs):
        if isinstance(nprocs, int):
            put(f"{os.getpid()}.spawns", str(nprocs))
        return start(fn, args, nprocs, *more, **kwargs)

    module.start_processes = start_processes


def watch(torch, recorder):
    """Called when PyTorch is imported."""
    watch_spawn(sys.modules.get("torch.multiprocessing.spawn"))
    make = getattr(torch.distributed, "init_process_group", None)
    if make is None:
        return

    @functools.wraps(make)
    def init_process_group(*args, **kwargs):
        try:
            note_join(args, kwargs)
        except Exception as error:
            recorder.notes.append(f"join: {error!r}")
        return make(*args, **kwargs)

    # Named as PyTorch's, so that call sites are those of the program.
    init_process_group.__code__ = init_process_group.__code__.replace(co_filename=make.__code__.co_filename)
    for module in [torch.distributed] + [module for name, module in list(sys.modules.items()) if name.startswith("torch.distributed")]:
        if getattr(module, "init_process_group", None) is make:
            module.init_process_group = init_process_group
