"""Tables in Arrow's C data interface, in capsules (https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html).

Columns of numbers share the recording's memory. Words and strings are dictionaries, whose texts are made once per export. An export
keeps the recording until the consumer releases it."""
import ctypes
import itertools

from . import _library
from ._table import WORDS

NULLABLE = 2


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
                   ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                  ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
                  ("dictionary", ctypes.POINTER(Array)), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]
Stream._fields_ = [("get_schema", ctypes.c_void_p), ("get_next", ctypes.c_void_p), ("get_last_error", ctypes.c_void_p), ("release", ctypes.c_void_p),
                   ("private_data", ctypes.c_void_p)]

# Objects kept until a consumer releases them, by the number in private_data.
_held, _numbers = {}, itertools.count(1)


def hold(*objects):
    number = next(_numbers)
    _held[number] = objects
    return number


def releaser(kind):
    """The function that a consumer calls once. It also releases the children that the consumer did not take."""
    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def release(pointer):
        one = kind.from_address(pointer)
        parts = [one.children[i] for i in range(one.n_children)] if kind is not Stream else []
        parts += [one.dictionary] if kind is not Stream and one.dictionary else []
        for part in parts:
            if part.contents.release:
                RELEASE(part.contents.release)(ctypes.addressof(part.contents))
        number, one.release = one.private_data, None
        _held.pop(number, None)
    return release


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_release = {kind: releaser(kind) for kind in (Schema, Array, Stream)}


def finish(one, *kept):
    """Completes the struct, and keeps the objects it needs until it is released."""
    one.release = ctypes.cast(_release[type(one)], ctypes.c_void_p)
    one.private_data = hold(*kept)
    return one


def pointers(kind, children):
    return (ctypes.POINTER(kind) * max(1, len(children)))(*[ctypes.pointer(child) for child in children])


def make_schema(text_format, name, children=(), dictionary=None, flags=0):
    made = Schema(format=text_format, name=name, flags=flags, n_children=len(children))
    below = pointers(Schema, children)
    made.children = below
    if dictionary is not None:
        made.dictionary = ctypes.pointer(dictionary)
    return finish(made, text_format, name, children, below, dictionary)


def make_array(length, buffers, children=(), dictionary=None, keep=None):
    places = (ctypes.c_void_p * max(1, len(buffers)))(*buffers)
    below = pointers(Array, children)
    made = Array(length=length, null_count=0, offset=0, n_buffers=len(buffers), n_children=len(children), buffers=places, children=below)
    if dictionary is not None:
        made.dictionary = ctypes.pointer(dictionary)
    return finish(made, places, below, children, dictionary, keep)


def texts_array(texts):
    """Returns strings as Arrow's large_utf8."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    offsets = (ctypes.c_int64 * (len(encoded) + 1))(0, *itertools.accumulate(map(len, encoded)))
    data = ctypes.create_string_buffer(b"".join(encoded) or b"\0")
    return make_array(len(encoded), [None, ctypes.addressof(offsets), ctypes.addressof(data)], keep=(offsets, data))


def column_schema(column):
    """Gives dictionaries signed indexes if that needs no copy, because some readers refuse unsigned ones."""
    arrow = _library.TYPES[column.type][2].encode()
    if column.meaning in WORDS or column.meaning == _library.STRING:
        return make_schema(arrow.lower(), column.name.encode(), dictionary=make_schema(b"U", b""))
    return make_schema(arrow, column.name.encode())


def column_array(table, column):
    values = table.column(column.name)
    texts = table.texts(column.name)
    if column.common == 0:
        address = column.address
    else:
        values = memoryview(values).toreadonly()
        raw = (ctypes.c_char * max(1, values.nbytes)).from_buffer_copy(values.cast("B"))
        address, values = ctypes.addressof(raw), raw
    return make_array(column.count, [None, address], dictionary=None if texts is None else texts_array(texts), keep=(table._recording, values))


def table_schema(table):
    return make_schema(b"+s", b"", [column_schema(column) for column in table._columns.values()])


def table_array(table):
    return make_array(len(table), [None], [column_array(table, column) for column in table._columns.values()], keep=table)


# --- capsules ---

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# The destructor gets a capsule that is being destroyed. It is passed as a plain pointer, so that ctypes does not change its reference
# count.
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_capsules = {}


def destructor(name, kind):
    @ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    def destroy(capsule):
        pointer = _get(capsule, name)
        one = kind.from_address(pointer)
        if one.release:
            RELEASE(one.release)(pointer)
        _capsules.pop(pointer, None)
    return destroy


_destroy = {kind: (name, destructor(name, kind)) for kind, name in ((Schema, b"arrow_schema"), (Array, b"arrow_array"), (Stream, b"arrow_array_stream"))}


def capsule(one):
    name, destroy = _destroy[type(one)]
    _capsules[ctypes.addressof(one)] = one
    return _api.PyCapsule_New(ctypes.addressof(one), name, ctypes.cast(destroy, ctypes.c_void_p))


def schema(table):
    return capsule(table_schema(table))


def array(table):
    return schema(table), capsule(table_array(table))


GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
TEXT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def move(one, out):
    """Moves a struct to the consumer, which releases it."""
    ctypes.memmove(out, ctypes.addressof(one), ctypes.sizeof(one))
    return 0


@GET
def _get_schema(stream, out):
    return move(table_schema(_held[Stream.from_address(stream).private_data][0]), out)


@GET
def _get_next(stream, out):
    held = _held[Stream.from_address(stream).private_data]
    if not held[1]:
        ctypes.memset(out, 0, ctypes.sizeof(Array))
        return 0
    held[1].pop()
    return move(table_array(held[0]), out)


@TEXT
def _get_last_error(_stream):
    return None


def stream(table):
    """A stream of one batch."""
    made = Stream(get_schema=ctypes.cast(_get_schema, ctypes.c_void_p), get_next=ctypes.cast(_get_next, ctypes.c_void_p),
                  get_last_error=ctypes.cast(_get_last_error, ctypes.c_void_p))
    return capsule(finish(made, table, [True]))
