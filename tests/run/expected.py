"""The events a recording must have, computed from a log of the simulated driver (VRAM_SIM_LOG) without any recording code."""
from collections import defaultdict, deque

OUT_OF_MEMORY = 2


def read_log(path):
    """Returns the driver's calls as (process, thread, name, result, values), in the order of their ends."""
    calls = []
    for line in path.read_text().splitlines() if path.exists() else ():
        process, thread, name, result, *values = line.split()
        calls.append((int(process), int(thread), name, int(result), [int(value, 0) for value in values]))
    return calls


class Expected:
    """Turns a driver's log into the events of a recording, per thread: (device, action, address, size, tag), address None for memory without an
    address. Devices are not distinguished. A line is written before its call returns, so an allocation precedes its free. But another thread may reuse freed memory
    before the free's line is written, so a free refers to the oldest allocation at its address."""

    def __init__(self, calls):
        self.by_thread = defaultdict(list)
        self.live = defaultdict(deque)  # by device and address: (size, kind, context)
        self.handles, self.ranges, self.primary = {}, {}, {}
        for _, thread, name, result, values in calls:
            self.now = self.by_thread[thread]
            handler = getattr(self, name, None)
            if result == 0 and handler is not None:
                handler(*values)
            elif result == OUT_OF_MEMORY and handler is not None:
                self.now.append(("0", "oom", None, 0 if "Array" in name else values[1], ""))

    def all(self):
        return [event for events in self.by_thread.values() for event in events]

    def born(self, device, address, size, tag, context=0, shown=True):
        self.live[device, address].append((size, tag, context))
        self.now.append((device, "alloc", address if shown else None, size, tag))

    def ended(self, device, shown, size, tag):
        self.now.append((device, "free_requested", shown, size, tag))
        self.now.append((device, "free_completed", shown, size, tag))

    def died(self, device, address, shown=True):
        """Ignores memory that is not the process's own: a graph's, another process's."""
        if self.live[device, address]:
            size, tag, _ = self.live[device, address].popleft()
            self.ended(device, address if shown else None, size, tag)

    def context_gone(self, context):
        for (device, address), pieces in self.live.items():
            ends = [piece for piece in pieces if context != 0 and piece[2] == context]
            for piece in ends:
                pieces.remove(piece)
                self.ended(device, None if piece[1] == "array" else address, piece[0], piece[1])

    # --- by address ------------------------------------------------------------------------------------------------------------------
    def cuMemAlloc_v2(self, address, size, context):
        self.born("0", address, size, "device", context)

    def cuMemAllocManaged(self, address, size, context):
        self.born("0", address, size, "managed", context)

    def cuMemFree_v2(self, address):
        self.died("0", address)

    def cuMemAllocAsync(self, address, size, capturing, context):
        if not capturing:
            self.born("0", address, size, "async", context)

    cuMemAllocFromPoolAsync = cuMemAllocAsync

    def cuMemFreeAsync(self, address, capturing):
        if not capturing:
            self.died("0", address)

    def cuMemHostAlloc(self, address, size, context):
        self.born("host0", address, size, "pinned", context)

    def cuMemFreeHost(self, address):
        self.died("host0", address)

    def cuMemHostRegister_v2(self, address, size):
        self.born("host0", address, size, "registered")

    cuMemHostUnregister = cuMemFreeHost

    # --- physical memory, by references ----------------------------------------------------------------------------------------------
    def cuMemCreate(self, handle, size):
        self.handles[handle] = [size, 1]
        self.now.append(("0", "alloc", None, size, "physical"))

    def cuMemRetainAllocationHandle(self, handle, _address):
        if handle in self.handles:
            self.handles[handle][1] += 1

    def cuMemRelease(self, handle):
        if handle not in self.handles:
            return  # belongs to another process
        self.handles[handle][1] -= 1
        if self.handles[handle][1] == 0:
            self.ended("0", None, self.handles.pop(handle)[0], "physical")

    def cuMemMap(self, address, size, _offset, handle):
        self.ranges[address] = size, handle
        if handle in self.handles:
            self.handles[handle][1] += 1
        self.now.append(("0", "segment_map", address, size, ""))

    def cuMemUnmap(self, address, size):
        end = address + size
        while address < end:
            length, handle = self.ranges.pop(address)
            self.now.append(("0", "segment_unmap", address, length, ""))
            self.cuMemRelease(handle)
            address += length

    # --- arrays: the driver does not report their size ----------------------------------------------------------------------------------
    def cuArrayCreate_v2(self, array, context):
        self.born("0", array, 0, "array", context, shown=False)

    cuArray3DCreate_v2 = cuMipmappedArrayCreate = cuArrayCreate_v2

    def cuArrayDestroy(self, array):
        self.died("0", array, shown=False)

    cuMipmappedArrayDestroy = cuArrayDestroy

    # --- contexts ------------------------------------------------------------------------------------------------------------------------
    def cuDevicePrimaryCtxRetain(self, context, device):
        self.primary[device] = context

    def cuDevicePrimaryCtxRelease_v2(self, device, active):
        if not active:
            self.context_gone(self.primary.get(device, 0))

    def cuDevicePrimaryCtxReset_v2(self, device):
        self.context_gone(self.primary.get(device, 0))

    def cuCtxDestroy_v2(self, context):
        self.context_gone(context)


def split_by_device(events):
    """Returns the events by device, in order. A recording has no order between devices."""
    devices = defaultdict(list)
    for event in events:
        devices[event[0]].append((event[0], event[1], None, *event[3:]) if event[1] == "oom" else event)
    return devices
