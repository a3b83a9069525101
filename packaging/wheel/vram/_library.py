"""The C functions that this module calls: with ctypes from the shared library, or from the same sources as WebAssembly.

Both variants have: read(path) and read_bytes(bytes), which return a handle; columns(handle, table, device), which returns a list of
Column; word(meaning, number); string(handle, number); string_count, device_count, is_host; and close(handle). A Column's `address` is
where its values are in this process, for as long as the handle is open."""
import atexit
import collections
import ctypes
import struct

from . import _places

EVENTS, SEGMENTS, BLOCKS, FRAMES, STACKS, STACK_FRAMES = range(6)
NUMBER, STRING, ACTION, STATE, KIND, STACK, FRAME = range(7)
TYPES = [("uint8", 1, "C", "B"), ("uint32", 4, "I", "I"), ("uint64", 8, "L", "Q"), ("int64", 8, "l", "q")]  # name, bytes, Arrow's format, struct's format

Column = collections.namedtuple("Column", "name address count common type meaning")


class Unreadable(ValueError):
    """The input is not a readable recording. str() says what is wrong, and where."""


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("driver_result", ctypes.c_int32), ("offset", ctypes.c_uint64), ("message", ctypes.c_char * 512)]


class CColumn(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("values", ctypes.c_void_p), ("count", ctypes.c_uint64), ("common", ctypes.c_uint64),
                ("type", ctypes.c_int), ("meaning", ctypes.c_int)]


class Native:
    """The native library, libvram-recordings.so."""

    def __init__(self):
        c = self.c = ctypes.CDLL(str(_places.library("libvram-recordings")))
        pointer, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
        for name, result, *arguments in [
                ("vram_recording_read_file", ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(pointer), ctypes.POINTER(Error)),
                ("vram_recording_read_memory", ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.POINTER(pointer), ctypes.POINTER(Error)),
                ("vram_recording_destroy", None, pointer),
                ("vram_recording_column", ctypes.c_bool, pointer, ctypes.c_int, u32, u32, ctypes.POINTER(CColumn)),
                ("vram_column_word", ctypes.c_char_p, ctypes.c_int, u32),
                ("vram_recording_string_count", u32, pointer),
                ("vram_recording_string", pointer, pointer, u32, ctypes.POINTER(u64)),
                ("vram_recording_device_count", u32, pointer),
                ("vram_recording_device_is_host", ctypes.c_bool, pointer, u32)]:
            function = getattr(c, name)
            function.restype, function.argtypes = result, arguments

    def read(self, path):
        return self._read(lambda *out: self.c.vram_recording_read_file(str(path).encode(errors="surrogateescape"), *out), path)

    def _read(self, call, name):
        handle, error = ctypes.c_void_p(), Error()
        if call(ctypes.byref(handle), ctypes.byref(error)) != 0:
            raise Unreadable(error.message.decode(errors="replace") or f"{name}: cannot be read")
        return handle.value

    def close(self, handle):
        self.c.vram_recording_destroy(handle)

    def columns(self, handle, table, device):
        found, column = [], CColumn()
        while self.c.vram_recording_column(handle, table, device, len(found), ctypes.byref(column)):
            found.append(Column(column.name.decode(), column.values, column.count, column.common, column.type, column.meaning))
        return found

    def word(self, meaning, number):
        word = self.c.vram_column_word(meaning, number)
        return None if word is None else word.decode()

    def string_count(self, handle):
        return self.c.vram_recording_string_count(handle)

    def string(self, handle, number):
        length = ctypes.c_uint64()
        text = self.c.vram_recording_string(handle, number, ctypes.byref(length))
        return b"" if text is None else ctypes.string_at(text, length.value)

    def device_count(self, handle):
        return self.c.vram_recording_device_count(handle)

    def is_host(self, handle, device):
        return bool(self.c.vram_recording_device_is_host(handle, device))


class Wasm:
    """The library as vram_library.wasm. Each recording has its own instance, which is its handle. The instance's memory does not move
    after the recording was read."""
    COLUMN = struct.Struct("<IIQQII")
    ERROR_MESSAGE = 16

    def __init__(self):
        import wasmtime
        from . import _wasm_engine
        self.wasmtime, self.loader = wasmtime, _wasm_engine
        self.instances, self.words = {}, None
        atexit.register(self.end)

    def end(self):
        self.instances.clear()
        self.words = None

    def open(self):
        store = self.wasmtime.Store(self.loader.engine())
        store.set_wasi(self.wasmtime.WasiConfig())
        linker = self.wasmtime.Linker(self.loader.engine())
        linker.define_wasi()
        exports = linker.instantiate(store, self.loader.module("vram_library.wasm")).exports(store)
        exports["_initialize"](store)
        return store, exports

    def read(self, path):
        with open(path, "rb") as file:
            data = file.read()
        store, exports = self.open()
        memory = exports["memory"]
        scratch = exports["malloc"](store, 1024) & 0xFFFFFFFF
        place = exports["malloc"](store, max(1, len(data))) & 0xFFFFFFFF
        name = str(path).encode(errors="surrogateescape")[-500:] + b"\0"
        if scratch == 0 or place == 0:
            raise MemoryError(f"{path}: the file is larger than WebAssembly's memory")
        memory.write(store, data, place)
        memory.write(store, name, scratch + 512)
        out = exports["malloc"](store, 600) & 0xFFFFFFFF
        failed = exports["vram_recording_read_memory"](store, place, len(data), scratch + 512, out, out + 8)
        exports["free"](store, place)
        if failed:
            message = bytes(memory.read(store, out + 8 + self.ERROR_MESSAGE, out + 8 + self.ERROR_MESSAGE + 512)).split(b"\0")[0]
            raise Unreadable(message.decode(errors="replace"))
        recording = struct.unpack("<I", memory.read(store, out, out + 4))[0]
        handle = max(self.instances, default=0) + 1
        self.instances[handle] = (store, exports, memory, recording, scratch)
        return handle

    def close(self, handle):
        self.instances.pop(handle, None)

    def text(self, store, memory, at):
        found = b""
        while b"\0" not in found:
            found += bytes(memory.read(store, at + len(found), at + len(found) + 64))
        return found.split(b"\0")[0].decode()

    def columns(self, handle, table, device):
        store, exports, memory, recording, scratch = self.instances[handle]
        base = ctypes.addressof(memory.data_ptr(store).contents)
        found = []
        while exports["vram_recording_column"](store, recording, table, device, len(found), scratch):
            name, values, count, common, kind, meaning = self.COLUMN.unpack(memory.read(store, scratch, scratch + self.COLUMN.size))
            found.append(Column(self.text(store, memory, name), base + values, count, common, kind, meaning))
        return found

    def word(self, meaning, number):
        if self.words is None:
            self.words = self.open()
        store, exports = self.words
        at = exports["vram_column_word"](store, meaning, number) & 0xFFFFFFFF
        return None if at == 0 else self.text(store, exports["memory"], at)

    def string_count(self, handle):
        store, exports, _, recording, _ = self.instances[handle]
        return exports["vram_recording_string_count"](store, recording) & 0xFFFFFFFF

    def string(self, handle, number):
        store, exports, memory, recording, scratch = self.instances[handle]
        at = exports["vram_recording_string"](store, recording, number, scratch) & 0xFFFFFFFF
        length = struct.unpack("<Q", memory.read(store, scratch, scratch + 8))[0]
        return bytes(memory.read(store, at, at + length)) if at else b""

    def device_count(self, handle):
        store, exports, _, recording, _ = self.instances[handle]
        return exports["vram_recording_device_count"](store, recording) & 0xFFFFFFFF

    def is_host(self, handle, device):
        store, exports, _, recording, _ = self.instances[handle]
        return bool(exports["vram_recording_device_is_host"](store, recording, device))


_loaded = None


def library():
    global _loaded
    if _loaded is None:
        _loaded = Native() if _places.is_native() else Wasm()
    return _loaded
