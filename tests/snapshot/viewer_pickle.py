"""viewer_pickle.py: a pickle interpreter that accepts only the opcodes of PyTorch's browser viewer.

It also checks the viewer's requirements: numbers of at most eight bytes or exactly nine; batches of at most 100,000 items (the viewer
passes a batch to one function call); memo slots filled in order and before they are read; frames that end at the end of an opcode.
"""
import struct

LARGEST_BATCH = 100_000


class Refused(Exception):
    pass


class Reader:
    def __init__(self, data):
        self.data, self.at, self.stack, self.marks, self.memo, self.frame_end = data, 0, [], [], [], None

    def take(self, count):
        if self.at + count > len(self.data):
            raise Refused("the pickle ends in the middle of an opcode")
        if self.frame_end is not None and self.at < self.frame_end < self.at + count:
            raise Refused("an opcode lies across the end of a frame at %d" % self.frame_end)
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize(code)))[0]

    def above_mark(self):
        begin = self.marks.pop()
        items = self.stack[begin:]
        del self.stack[begin:]
        return items

    def proto(self):
        if self.number("B") > 4:
            raise Refused("the protocol is newer than 4")

    def frame(self):
        if self.frame_end is not None and self.at < self.frame_end:
            raise Refused("a frame begins in a frame")
        length = self.number("Q")
        self.frame_end = self.at + length

    def long1(self):
        length = self.number("B")
        if length > 9:
            raise Refused("a number of %d bytes" % length)
        self.stack.append(int.from_bytes(self.take(length), "little", signed=True))

    def text(self, code):
        self.stack.append(self.take(self.number(code)).decode("utf-8", "surrogatepass"))

    def get(self, code):
        index = self.number(code)
        if index >= len(self.memo):
            raise Refused("memo %d is read before it is filled" % index)
        self.stack.append(self.memo[index])

    def appends(self):
        items = self.above_mark()
        if len(items) > LARGEST_BATCH:
            raise Refused("a batch of %d items" % len(items))
        self.stack[-1].extend(items)

    def append(self):
        item = self.stack.pop()
        self.stack[-1].append(item)

    def set_items(self):
        items = self.above_mark()
        for key, value in zip(items[::2], items[1::2]):
            if key in self.stack[-1]:
                raise Refused("the key %r comes twice" % key)
            self.stack[-1][key] = value

    def set_item(self):
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][key] = value

    def tuple2(self):
        second, first = self.stack.pop(), self.stack.pop()
        self.stack.append((first, second))

    OPCODES = {
        b"\x80": proto, b"\x95": frame, b"\x8a": long1, b"\x86": tuple2, b"e": appends, b"a": append, b"u": set_items, b"s": set_item,
        b"(": lambda self: self.marks.append(len(self.stack)), b"\x94": lambda self: self.memo.append(self.stack[-1]),
        b"}": lambda self: self.stack.append({}), b"]": lambda self: self.stack.append([]), b"N": lambda self: self.stack.append(None),
        b"\x88": lambda self: self.stack.append(True), b"\x89": lambda self: self.stack.append(False),
        b"K": lambda self: self.stack.append(self.number("B")), b"M": lambda self: self.stack.append(self.number("H")),
        b"J": lambda self: self.stack.append(self.number("i")), b"G": lambda self: self.stack.append(struct.unpack(">d", self.take(8))[0]),
        b"\x8c": lambda self: self.text("B"), b"X": lambda self: self.text("I"),
        b"h": lambda self: self.get("B"), b"j": lambda self: self.get("I"),
    }


def load(data):
    """Returns the value. Raises Refused if the viewer would not read the pickle."""
    reader = Reader(data)
    while True:
        if reader.frame_end is not None and reader.at == reader.frame_end:
            reader.frame_end = None
        opcode = reader.take(1)
        if opcode == b".":
            break
        step = Reader.OPCODES.get(opcode)
        if step is None:
            raise Refused("opcode %r at %d is none that the viewer knows" % (opcode, reader.at - 1))
        step(reader)
    if len(reader.stack) != 1 or reader.marks or reader.at != len(data):
        raise Refused("something is left over at the end")
    return reader.stack[0]
