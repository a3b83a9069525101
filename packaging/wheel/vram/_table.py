"""A table of a recording: NumPy arrays or memoryviews of its columns, and the table as Arrow, for pandas, polars, DuckDB and others."""
import ctypes
import functools

from . import _library

WORDS = (_library.ACTION, _library.STATE, _library.KIND)


def place(owner, address, size):
    """Returns the bytes at an address as an object of the buffer protocol that keeps `owner`."""
    kind = type("Bytes", (ctypes.c_char * size,), {})
    bytes_ = kind.from_address(address)
    bytes_.owner = owner
    return bytes_


@functools.lru_cache(maxsize=None)
def words(meaning):
    """The words for the numbers of an action, state or kind."""
    found = []
    while (word := _library.library().word(meaning, len(found))) is not None:
        found.append(word)
    return found


class Table:
    """Rows of named columns. table["name"] is the column with words and strings as text, table.column("name") its plain numbers."""

    def __init__(self, recording, columns):
        self._recording, self._columns = recording, {column.name: column for column in columns}

    def __len__(self):
        return next(iter(self._columns.values())).count if self._columns else 0

    @property
    def columns(self):
        return list(self._columns)

    def __iter__(self):
        return iter(self._columns)

    def column(self, name):
        """Returns the numbers of a column, read-only and without a copy: a NumPy array, or a memoryview without NumPy."""
        column = self._columns[name]
        kind, size, _, code = _library.TYPES[column.type]
        raw = place(self._recording, column.address, size * column.count)
        try:
            import numpy
        except ImportError:
            view = memoryview(raw).toreadonly().cast("B").cast(code)
            return view if column.common == 0 else memoryview(ctypes_copy(view, column.common, code))
        values = numpy.frombuffer(raw, dtype=kind)
        values.flags.writeable = False
        return values if column.common == 0 else values ^ values.dtype.type(column.common)

    def texts(self, name):
        """Returns the texts of a column's numbers, by number; None for a column of plain numbers."""
        meaning = self._columns[name].meaning
        return words(meaning) if meaning in WORDS else self._recording.strings() if meaning == _library.STRING else None

    def __getitem__(self, name):
        values, texts = self.column(name), self.texts(name)
        if texts is None:
            return values
        try:
            import numpy
        except ImportError:
            return [texts[value] for value in values]
        return numpy.asarray(texts, dtype=object)[values]

    # --- data frames ---

    def to_pandas(self):
        """Returns a pandas.DataFrame. Numbers are not copied; words and strings are categories."""
        import pandas
        made = {}
        for name in self._columns:
            texts, values = self.texts(name), self.column(name)
            if texts is None:
                made[name] = values
            else:
                import numpy
                used, codes = numpy.unique(values, return_inverse=True)
                made[name] = pandas.Categorical.from_codes(*categories([texts[number] for number in used], codes))
        return pandas.DataFrame(made, copy=False)

    def to_arrow(self):
        """Returns a pyarrow.Table."""
        import pyarrow
        return pyarrow.table(self)

    def to_polars(self):
        import polars
        return polars.DataFrame(self)

    def __arrow_c_schema__(self):
        from . import _arrow
        return _arrow.schema(self)

    def __arrow_c_array__(self, requested_schema=None):
        from . import _arrow
        return _arrow.array(self)

    def __arrow_c_stream__(self, requested_schema=None):
        from . import _arrow
        return _arrow.stream(self)

    def __repr__(self):
        return f"<vram.Table: {len(self):,} rows of {', '.join(self._columns)}>"


def categories(texts, codes):
    """Returns codes and distinct categories, because different numbers may have the same text."""
    distinct = list(dict.fromkeys(texts))
    if len(distinct) != len(texts):
        import numpy
        codes = numpy.asarray([distinct.index(text) for text in texts])[codes]
    return codes, distinct


def ctypes_copy(view, common, code):
    import array
    return array.array(code, [value ^ common for value in view])
