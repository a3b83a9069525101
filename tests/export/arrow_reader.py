"""Reads Arrow IPC files with only Python's standard library: columns as lists, with None for missing values. Written from the format's
description, without the writer's code, so that a test can compare both.
"""
import struct


class Table:
    """A FlatBuffers table, with fields by number."""

    def __init__(self, data, position):
        self.data, self.position = data, position
        self.fields = position - struct.unpack_from("<i", data, position)[0]
        self.count = (struct.unpack_from("<H", data, self.fields)[0] - 4) // 2

    def place(self, field):
        offset = struct.unpack_from("<H", self.data, self.fields + 4 + 2 * field)[0] if field < self.count else 0
        return self.position + offset if offset else None

    def number(self, field, kind, otherwise=0):
        place = self.place(field)
        return otherwise if place is None else struct.unpack_from("<" + kind, self.data, place)[0]

    def follow(self, field):
        place = self.place(field)
        return None if place is None else place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, field):
        place = self.follow(field)
        return None if place is None else Table(self.data, place)

    def string(self, field):
        place = self.follow(field)
        length = struct.unpack_from("<I", self.data, place)[0]
        assert self.data[place + 4 + length] == 0
        return self.data[place + 4:place + 4 + length].decode()

    def tables(self, field):
        place = self.follow(field)
        count = struct.unpack_from("<I", self.data, place)[0] if place else 0
        places = [place + 4 + 4 * i for i in range(count)]
        return [Table(self.data, at + struct.unpack_from("<I", self.data, at)[0]) for at in places]

    def structs(self, field, layout):
        place = self.follow(field)
        count = struct.unpack_from("<I", self.data, place)[0] if place else 0
        assert place is None or (place + 4) % 8 == self.data_start % 8, "structs of 8 bytes stand at multiples of 8"
        size = struct.calcsize(layout)
        return [struct.unpack_from(layout, self.data, place + 4 + size * i) for i in range(count)]

    data_start = 0


def root(data, start):
    return Table(data, start + struct.unpack_from("<I", data, start)[0])


def field_of(field):
    dictionary = field.table(4)
    kind = field.number(2, "B")
    assert field.number(1, "B") == 1 and field.tables(5) == []
    if kind == 5:
        assert dictionary.number(1, "I") != 0 and dictionary.table(1).number(0, "i") == 32
        return field.string(0), "i", dictionary.number(0, "q")
    assert kind == 2
    bits, signed = field.table(3).number(0, "i"), field.table(3).number(1, "B")
    return field.string(0), {(64, 1): "q", (64, 0): "Q", (32, 0): "I"}[bits, signed], None


def values_of(body, buffers, node, kind):
    """Returns the values of a column: validity bits, then values."""
    length, nulls = node
    (bits_at, bits_length), (at, size) = buffers
    assert bits_at % 8 == 0 and at % 8 == 0
    values = struct.unpack_from(f"<{length}{kind}", body, at)
    assert size == struct.calcsize(f"<{length}{kind}")
    if bits_length:
        there = [body[bits_at + i // 8] >> i % 8 & 1 for i in range(length)]
        assert there.count(0) == nulls
        return [value if is_there else None for value, is_there in zip(values, there)]
    assert nulls == 0
    return list(values)


def texts_of(body, buffers, length):
    (_, bits_length), (at, _), (bytes_at, _) = buffers
    assert bits_length == 0
    offsets = struct.unpack_from(f"<{length + 1}i", body, at)
    return [bytes(body[bytes_at + a:bytes_at + b]).decode() for a, b in zip(offsets, offsets[1:])]


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"ARROW1\0\0" and data[-6:] == b"ARROW1"
    footer_length = struct.unpack_from("<I", data, len(data) - 10)[0]
    footer = root(data, len(data) - 10 - footer_length)
    assert footer.number(0, "h") == 4
    fields = [field_of(field) for field in footer.table(1).tables(1)]
    dictionaries, columns = {}, {name: [] for name, _, _ in fields}

    def message(block, header):
        offset, head, body_length = block
        assert offset % 8 == 0 and head % 8 == 0 and struct.unpack_from("<I", data, offset)[0] == 0xFFFFFFFF
        assert struct.unpack_from("<I", data, offset + 4)[0] == head - 8
        table = root(data, offset + 8)
        assert table.number(0, "h") == 4 and table.number(1, "B") == header and table.number(3, "q") == body_length
        return table.table(2), memoryview(data)[offset + head:offset + head + body_length]

    for block in footer.structs(2, "<qi4xq"):
        table, body = message(block, 2)
        batch = table.table(1)
        dictionaries[table.number(0, "q")] = texts_of(body, batch.structs(2, "<qq"), batch.number(0, "q"))
    for block in footer.structs(3, "<qi4xq"):
        batch, body = message(block, 3)
        nodes, buffers = batch.structs(1, "<qq"), batch.structs(2, "<qq")
        assert len(nodes) == len(fields) and len(buffers) == 2 * len(fields)
        for i, (name, kind, dictionary) in enumerate(fields):
            values = values_of(body, buffers[2 * i:2 * i + 2], nodes[i], kind)
            if dictionary is not None:
                values = [None if value is None else dictionaries[dictionary][value] for value in values]
            columns[name] += values
    return columns
