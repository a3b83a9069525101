"""Device memory for a Triton kernel on the host: bytes by device address, fetched on access, with each byte's level (vram_values.py).
Written bytes stay here until commit()."""
import numpy

PAGE = 512  # allocators' blocks are aligned to it (VR_SIM_BLOCK_BYTES)
KNOWN, LIKELY, UNKNOWN, UNTOUCHED = range(4)


class OutOfReach(Exception):
    """Raised if the kernel accesses memory that is not the device's, or too much of it."""


class Pages:
    def __init__(self, driver, most_bytes, tensors=()):
        self.driver, self.most = driver, max(1, most_bytes // PAGE)
        self.tensors, self.lost = tensors, []  # address and bytes of the kernel's tensors; of those with a store at an unknown place
        self.slots = {}  # page number -> index here
        self.bytes, self.levels, self.stored = (self.grown(None, kind) for kind in (numpy.uint8, numpy.uint8, bool))
        self.read = set()  # page numbers that were loaded from

    def grown(self, old, kind):
        new = numpy.zeros(16 * PAGE if old is None else 2 * len(old), kind)
        if old is not None:
            new[:len(old)] = old
        return new

    def slot(self, page):
        found = self.slots.get(page)
        return self.fetch(page) if found is None else found

    def fetch(self, page):
        slot = len(self.slots)
        if slot >= self.most:
            raise OutOfReach("too many bytes")
        if (slot + 1) * PAGE > len(self.bytes):
            self.bytes, self.levels, self.stored = (self.grown(old, old.dtype) for old in (self.bytes, self.levels, self.stored))
        at = slot * PAGE
        if self.driver.look(page * PAGE, PAGE, 1, self.bytes.ctypes.data + at, self.levels.ctypes.data + at) < 0:
            raise OutOfReach("no device memory")
        self.slots[page] = slot
        return slot

    def places(self, addresses, width):
        """Returns the indexes of the elements' first bytes here, and their page numbers."""
        if len(addresses) and int((addresses % width).max()) and PAGE % width == 0:
            raise OutOfReach("not aligned")
        pages, which = numpy.unique(addresses // PAGE, return_inverse=True)
        slots = numpy.array([self.slot(page) for page in pages.tolist()], numpy.int64)
        return slots[which.reshape(-1)] * PAGE + (addresses % PAGE).astype(numpy.int64), pages

    def load(self, addresses, width):
        """Returns the elements' bytes, one row each, and their levels."""
        places, pages = self.places(addresses, width)
        self.read.update(pages.tolist())
        whole = places[:, None] + numpy.arange(width)
        levels = self.levels[whole].max(1) if len(places) else numpy.zeros(0, numpy.uint8)
        for start, size in self.lost:
            levels[(addresses >= start) & (addresses < start + size)] = UNKNOWN
        return self.bytes[whole], levels

    def store(self, addresses, rows, levels):
        """Stores elements. If several have one address, the last wins."""
        whole = self.places(addresses, rows.shape[1])[0][:, None] + numpy.arange(rows.shape[1])
        self.bytes[whole], self.levels[whole], self.stored[whole] = rows, levels[:, None], True

    def lose(self, addresses):
        """Makes the tensors unknown that hold the addresses, which are wrong but near: a store went to an unknown place in them. Returns whether
        all addresses are in tensors."""
        for address in numpy.unique(addresses).tolist():
            found = next((tensor for tensor in self.tensors if tensor[0] <= address < sum(tensor)), None)
            if found is None:
                return False
            if found not in self.lost:
                self.lost.append(found)
        return True

    def doubt(self, addresses, width, levels):
        """Raises the levels at addresses that may have been written. Ignores addresses out of reach."""
        inside = numpy.array([page in self.slots for page in (addresses // PAGE).tolist()], bool)
        whole = self.places(addresses[inside], width)[0][:, None] + numpy.arange(width)
        self.levels[whole] = numpy.maximum(self.levels[whole], levels[inside][:, None])
        self.stored[whole] = True

    def commit(self):
        for page, slot in self.slots.items():
            part = slice(slot * PAGE, (slot + 1) * PAGE)
            if self.stored[part].any():
                levels = numpy.where(self.stored[part], self.levels[part], UNTOUCHED).astype(numpy.uint8)
                self.driver.put(page * PAGE, PAGE, 1, self.bytes.ctypes.data + slot * PAGE, levels.ctypes.data)
        for start, size in self.lost:
            self.driver.forget(start, size)
