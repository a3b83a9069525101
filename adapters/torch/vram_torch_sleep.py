"""Suspends tagged memory: vram_torch.tagged(), sleep(), wake() and sleepers() are implemented here. See docs/guides/sleep.md."""
import contextlib
import threading

import vram_torch

_lock = threading.Lock()
_pools = []  # tagged pools of PyTorch, kept as long as the process
_used = {}  # device -> tags, in order of first use


def _devices(device):
    if device is not None:
        return [vram_torch._index(device)]
    return sorted(_used) or [vram_torch._index(None)]


@contextlib.contextmanager
def tagged(tag, device=None):
    """Puts the calling thread's allocations inside into a pool with this tag, which vram_torch.sleep(tag) suspends."""
    if not tag:
        raise ValueError("a tag must not be empty")
    number = vram_torch._index(device)
    vram_torch.allocator().tag_begin(tag, number)
    with _lock:
        tags = _used.setdefault(number, [])
        if tag not in tags:
            tags.append(tag)
    try:
        yield
    finally:
        vram_torch.allocator().tag_end(tag, number)


@contextlib.contextmanager
def untagged(device=None):
    """Within tagged(): the calling thread's allocations are not suspended."""
    number = vram_torch._index(device)
    vram_torch.allocator().tag_begin("", number)
    try:
        yield
    finally:
        vram_torch.allocator().tag_end("", number)


def tag_pool(pool, tag, device=None):
    """Gives a torch.cuda.MemPool a tag. Its allocations from now on can be suspended, even if it is the pool of a CUDA graph. Only the native way
    supports it."""
    number = vram_torch._index(device)
    vram_torch.allocator().tag_pool(pool.id, tag, number)
    with _lock:
        _pools.append(pool)
        tags = _used.setdefault(number, [])
        if tag not in tags:
            tags.append(tag)


def tags_of(device=None):
    """Returns the used tags of a device, or of all."""
    with _lock:
        return list(dict.fromkeys(tag for number in _devices(device) for tag in _used.get(number, ())))


def tagged_devices():
    """Returns the devices on which tags were used."""
    with _lock:
        return sorted(_used)


def sleep(tags=None, level="keep", on_request="fail", device=None):
    """Releases the device memory of tagged tensors to the driver; addresses stay valid. Returns the number of bytes released.

    tags: one, several, or None for everything, including memory without a tag (which must consist of pages: sleepable:True or
    expandable_segments:True). A dictionary gives each tag its level, and with the key None all other memory. level: "keep" (move the bytes to the host's pinned memory),
    "discard" or "zero". on_request: whether a request to a suspended pool fails or wakes it ("fail", "wake"). device: one; None: all
    that have tags. On failure no pool that was awake is suspended.
    """
    if isinstance(tags, str):
        tags = (tags,)
    levels = tags if isinstance(tags, dict) else level if tags is None else dict.fromkeys(tags, level)
    for word in levels.values() if isinstance(levels, dict) else (levels,):
        if word not in vram_torch.SLEEP_LEVELS:
            raise ValueError(f"unknown level {word!r}; expected one of {', '.join(vram_torch.SLEEP_LEVELS)}")
    if on_request not in ("fail", "wake"):
        raise ValueError(f"invalid on_request {on_request!r}; expected fail or wake")
    if isinstance(levels, dict) and not levels:
        return 0
    made, went, asleep = vram_torch.allocator(), 0, []
    _wait(device)
    for number in _devices(device):
        here = levels
        if isinstance(levels, dict):
            known = _used.get(number, ())
            here = {tag: word for tag, word in levels.items() if tag is None or tag in known or device is not None}
            if not here:
                continue
        before = {sleeper.pool for sleeper in made.sleepers(number)}
        try:
            went += made.sleep(here, on_request, number)
        except Exception:
            for other, pools in asleep:
                for pool in pools:
                    with contextlib.suppress(vram_torch.Error):
                        made.wake_pool(pool, other)
            raise
        asleep.append((number, [s.pool for s in made.sleepers(number) if s.pool not in before]))
    if isinstance(levels, dict) and not asleep:
        raise vram_torch.Error(f"vram: no memory has the tag {', '.join(map(repr, levels))}")
    return went


def wake(tags=None, device=None):
    """Restores device memory at the same addresses, with the bytes that were kept. Returns the number of bytes allocated. tags: one,
    several, None: all. On failure (vram_torch.OutOfMemory if the device is full) everything stays suspended.
    """
    if isinstance(tags, str):
        tags = (tags,)
    made, came, done = vram_torch.allocator(), 0, []
    for number in _devices(device):
        here = [s for s in made.sleepers(number) if tags is None or s.tag in tags]
        if not here:
            continue
        names = None if tags is None else list(dict.fromkeys(s.tag for s in here))
        try:
            came += made.wake(names, number)
        except Exception:
            for other, levels in done:
                with contextlib.suppress(vram_torch.Error):
                    made.sleep(levels, device=other)
            raise
        done.append((number, {s.tag: s.level for s in here if s.tag}))
    return came


def wake_untagged(device=None):
    """Restores the memory that has no tag, as wake() does. Returns the number of bytes allocated."""
    made = vram_torch.allocator()
    return sum(made.wake_pool(sleeper.pool, number) for number in _devices(device) for sleeper in made.sleepers(number) if not sleeper.tag)


def sleepers(device=None):
    """Returns the suspended pools as Sleeper objects with pool, level, wakes, live_bytes, away_bytes, host_bytes and tag."""
    return [sleeper for number in _devices(device) for sleeper in vram_torch.allocator().sleepers(number)]


def _wait(device):
    """Waits for the work that PyTorch has queued before memory is released; the allocator also waits for the device."""
    torch = vram_torch._Enabled.torch
    if torch is not None and torch.cuda.is_initialized():
        for number in _devices(device):
            torch.cuda.synchronize(number)
