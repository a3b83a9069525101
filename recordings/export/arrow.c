// Writes Arrow IPC files; their message headers are FlatBuffers.
#include "base/base.h"
#include "export/export.h"

// ---- A writer of FlatBuffers with the parts that Arrow files need: tables, vectors, strings, structs.
// A message is built from its end to its beginning, inner objects before those that refer to them. An object is identified by its distance
// from the end (never 0). Numbers are little-endian, as on every supported machine.

enum { VR_FLAT_MOST_SLOTS = 8 };

// A zeroed struct is an empty message. The caller releases it.
struct flatbuffer {
    uint8_t *bytes; // the bytes written so far are at the end
    size_t capacity;
    size_t used;
    size_t alignment;                       // strictest alignment so far
    size_t table_start;                     // `used` when the open table began
    uint32_t slots[VR_FLAT_MOST_SLOTS + 1]; // for the open table: the field's distance from the end, 0 if absent
    bool failed;                            // host memory ran out
};

VR_INLINE const uint8_t *vr_flat_bytes(const struct flatbuffer *flat) { return flat->bytes + (flat->capacity - flat->used); }

static void flat_release(struct flatbuffer *flat) {
    free(flat->bytes);
    *flat = (struct flatbuffer){0};
}

// Discards the message but keeps the memory.
static void flat_clear(struct flatbuffer *flat) {
    flat->used = 0;
    flat->alignment = 0;
}

// Makes room for `size` more bytes before the present ones.
static bool reserve_bytes(struct flatbuffer *flat, size_t size) {
    if (flat->failed) return false;
    if (flat->capacity - flat->used >= size) return true;
    size_t capacity = flat->capacity == 0 ? 1024 : flat->capacity;
    while (capacity - flat->used < size) capacity *= 2;
    uint8_t *bytes = malloc(capacity);
    if (bytes == NULL) {
        flat->failed = true;
        return false;
    }
    if (flat->used != 0) memcpy(bytes + (capacity - flat->used), vr_flat_bytes(flat), flat->used);
    free(flat->bytes);
    flat->bytes = bytes;
    flat->capacity = capacity;
    return true;
}

static void put_flat_bytes(struct flatbuffer *flat, const void *bytes, size_t size) {
    if (size == 0 || !reserve_bytes(flat, size)) return;
    flat->used += size;
    memcpy(flat->bytes + (flat->capacity - flat->used), bytes, size);
}

// Adds zeros, so that after `more` bytes the next object is at a multiple of `alignment` from the end.
static void align_flat(struct flatbuffer *flat, size_t alignment, size_t more) {
    static const uint8_t zeros[16];
    assert(alignment <= sizeof zeros && (alignment & (alignment - 1)) == 0);
    if (alignment > flat->alignment) flat->alignment = alignment;
    put_flat_bytes(flat, zeros, (0 - (flat->used + more)) & (alignment - 1));
}

static void put_flat_number(struct flatbuffer *flat, size_t size, uint64_t value) {
    align_flat(flat, size, size);
    put_flat_bytes(flat, &value, size);
}

// Writes the distance from here to an object that follows.
static void put_reference(struct flatbuffer *flat, uint32_t object) {
    align_flat(flat, 4, 4);
    assert(flat->failed || object <= flat->used);
    const uint32_t distance = (uint32_t)flat->used + 4 - object;
    put_flat_bytes(flat, &distance, 4);
}

static uint32_t flat_string(struct flatbuffer *flat, const char *text, size_t length) {
    align_flat(flat, 4, length + 1);
    put_flat_bytes(flat, "", 1);
    put_flat_bytes(flat, text, length);
    put_flat_number(flat, 4, length);
    return (uint32_t)flat->used;
}

// Writes a vector of structs of `size` bytes each with the given alignment.
static uint32_t flat_structs(struct flatbuffer *flat, const void *items, size_t size, size_t count, size_t alignment) {
    align_flat(flat, 4, size * count);
    align_flat(flat, alignment, size * count);
    put_flat_bytes(flat, items, size * count);
    put_flat_number(flat, 4, count);
    return (uint32_t)flat->used;
}

static uint32_t flat_references(struct flatbuffer *flat, const uint32_t *objects, size_t count) {
    align_flat(flat, 4, 4 * count);
    for (size_t i = count; i-- > 0;) put_reference(flat, objects[i]);
    put_flat_number(flat, 4, count);
    return (uint32_t)flat->used;
}

// A table: call flat_begin(), write its fields in any order, call flat_end(). A number that is 0 is left out, because readers treat an
// absent number as 0.
static void flat_begin(struct flatbuffer *flat) {
    memset(flat->slots, 0, sizeof flat->slots);
    flat->table_start = flat->used;
}

static void flat_number(struct flatbuffer *flat, unsigned slot, size_t size, uint64_t value) {
    assert(slot < VR_FLAT_MOST_SLOTS);
    if (value == 0) return;
    put_flat_number(flat, size, value);
    flat->slots[slot] = (uint32_t)flat->used;
}

static void flat_reference(struct flatbuffer *flat, unsigned slot, uint32_t object) {
    assert(slot < VR_FLAT_MOST_SLOTS);
    put_reference(flat, object);
    flat->slots[slot] = (uint32_t)flat->used;
}

// Writes the table's field list before it (the list's size, the table's size, the offset of each field), and the distance to the list at
// the table's beginning.
static uint32_t flat_end(struct flatbuffer *flat) {
    put_flat_number(flat, 4, 0);
    const uint32_t table = (uint32_t)flat->used;
    unsigned count = VR_FLAT_MOST_SLOTS;
    while (count > 0 && flat->slots[count - 1] == 0) count--;
    for (unsigned i = count; i-- > 0;) put_flat_number(flat, 2, flat->slots[i] == 0 ? 0 : table - flat->slots[i]);
    put_flat_number(flat, 2, table - flat->table_start);
    put_flat_number(flat, 2, (count + 2) * 2);
    if (flat->failed) return 0;
    const int32_t distance = (int32_t)(flat->used - table);
    memcpy(flat->bytes + (flat->capacity - table), &distance, 4);
    return table;
}

// Completes the message, which is the `used` bytes at vr_flat_bytes().
static void flat_finish(struct flatbuffer *flat, uint32_t root) {
    align_flat(flat, flat->alignment < 4 ? 4 : flat->alignment, 4);
    put_reference(flat, root);
}

// ---- Arrow IPC files: "ARROW1", messages, and at the end a list of the messages' positions. A message is its length, a FlatBuffer that
// describes it, and a body of buffers. Field names and numbers are those of the format's Message.fbs, Schema.fbs and File.fbs.

enum { METADATA_V5 = 4, TYPE_INT = 2, TYPE_UTF8 = 5, HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { FIELD_NAME, FIELD_NULLABLE, FIELD_TYPE_TYPE, FIELD_TYPE, FIELD_DICTIONARY, FIELD_CHILDREN };
enum { ROWS_A_BATCH = 1 << 16, ALIGNMENT = 8 };

struct node {
    int64_t length, null_count;
};
struct buffer {
    int64_t offset, length;
};
// A message's position in the file.
struct block {
    int64_t offset;
    int32_t head_bytes, padding;
    int64_t body_bytes;
};
struct blocks {
    struct block *items;
    size_t count, items_capacity;
};

// A column of the current batch.
struct column {
    struct vr_text bits; // bitmap of rows with a value
    struct vr_text values;
    int64_t nulls;
};

struct writer {
    const struct vr_arrow_table *table;
    struct vr_output *out;
    uint64_t written;
    struct flatbuffer flat;
    struct vr_text body;
    struct column *columns;
    struct vr_arrow_cell *cells;
    struct node *nodes; // one per column of a batch
    struct buffer *buffers;
    size_t node_count, buffer_count;
    struct blocks dictionaries, batches;
};

static void put_bytes(struct writer *writer, const void *bytes, size_t length) {
    vr_text_append(&writer->out->text, bytes, length);
    writer->written += length;
    (void)vr_output_flow(writer->out);
}

static void put_padding(struct writer *writer) {
    static const char zeros[ALIGNMENT];
    put_bytes(writer, zeros, (size_t)(0 - writer->written) & (ALIGNMENT - 1));
}

// --- types -----------------------------------------------------------------------------------------------------------------------------

static uint32_t integer_type(struct flatbuffer *flat, unsigned bits, bool is_signed) {
    flat_begin(flat);
    flat_number(flat, 0, 4, bits);
    flat_number(flat, 1, 1, is_signed);
    return flat_end(flat);
}

static uint32_t type_of(struct flatbuffer *flat, enum vr_arrow_kind kind) {
    if (kind == VR_ARROW_TEXT) {
        flat_begin(flat);
        return flat_end(flat);
    }
    return integer_type(flat, kind == VR_ARROW_UINT32 ? 32 : 64, kind == VR_ARROW_INT64);
}

static uint32_t dictionary_of(struct flatbuffer *flat, size_t column) {
    const uint32_t numbers = integer_type(flat, 32, true);
    flat_begin(flat);
    flat_number(flat, 0, 8, column);
    flat_reference(flat, 1, numbers);
    return flat_end(flat);
}

static uint32_t field_of(struct flatbuffer *flat, const struct vr_arrow_column *column, size_t index) {
    const bool is_text = column->kind == VR_ARROW_TEXT;
    const uint32_t name = flat_string(flat, column->name, strlen(column->name));
    const uint32_t type = type_of(flat, column->kind);
    const uint32_t dictionary = is_text ? dictionary_of(flat, index) : 0;
    const uint32_t children = flat_references(flat, NULL, 0);
    flat_begin(flat);
    flat_reference(flat, FIELD_NAME, name);
    flat_number(flat, FIELD_NULLABLE, 1, 1);
    flat_number(flat, FIELD_TYPE_TYPE, 1, is_text ? TYPE_UTF8 : TYPE_INT);
    flat_reference(flat, FIELD_TYPE, type);
    if (is_text) flat_reference(flat, FIELD_DICTIONARY, dictionary);
    flat_reference(flat, FIELD_CHILDREN, children);
    return flat_end(flat);
}

static enum vram_status schema_of(struct writer *writer, uint32_t *schema) {
    const struct vr_arrow_table *table = writer->table;
    uint32_t *fields = calloc(table->column_count, sizeof *fields);
    if (fields == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < table->column_count; i++) fields[i] = field_of(&writer->flat, &table->columns[i], i);
    const uint32_t list = flat_references(&writer->flat, fields, table->column_count);
    free(fields);
    flat_begin(&writer->flat);
    flat_reference(&writer->flat, 1, list);
    *schema = flat_end(&writer->flat);
    return VRAM_OK;
}

// --- messages --------------------------------------------------------------------------------------------------------------------------

static void put_message(struct writer *writer, unsigned kind, uint32_t header, uint64_t body_bytes) {
    struct flatbuffer *flat = &writer->flat;
    flat_begin(flat);
    flat_number(flat, 0, 2, METADATA_V5);
    flat_number(flat, 1, 1, kind);
    flat_reference(flat, 2, header);
    flat_number(flat, 3, 8, body_bytes);
    flat_finish(flat, flat_end(flat));
    const uint32_t marker = UINT32_MAX, length = (uint32_t)((flat->used + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
    put_bytes(writer, &marker, sizeof marker);
    put_bytes(writer, &length, sizeof length);
    put_bytes(writer, vr_flat_bytes(flat), flat->used);
    put_padding(writer);
    flat_clear(flat);
}

// Ends a buffer of the body, padded to a multiple of 8.
static void end_buffer(struct writer *writer, size_t start) {
    static const char zeros[ALIGNMENT];
    writer->buffers[writer->buffer_count++] = (struct buffer){(int64_t)start, (int64_t)(writer->body.length - start)};
    vr_text_append(&writer->body, zeros, (size_t)(0 - writer->body.length) & (ALIGNMENT - 1));
}

static void begin_batch(struct writer *writer) {
    writer->node_count = writer->buffer_count = 0;
    writer->body.length = 0;
}

static uint32_t batch_of(struct writer *writer, size_t rows) {
    const uint32_t buffers = flat_structs(&writer->flat, writer->buffers, sizeof *writer->buffers, writer->buffer_count, ALIGNMENT);
    const uint32_t nodes = flat_structs(&writer->flat, writer->nodes, sizeof *writer->nodes, writer->node_count, ALIGNMENT);
    flat_begin(&writer->flat);
    flat_number(&writer->flat, 0, 8, rows);
    flat_reference(&writer->flat, 1, nodes);
    flat_reference(&writer->flat, 2, buffers);
    return flat_end(&writer->flat);
}

static enum vram_status put_batch(struct writer *writer, unsigned kind, uint32_t header, struct blocks *blocks) {
    VR_TRY(VR_GROW(blocks, items, blocks->count + 1));
    const uint64_t start = writer->written;
    put_message(writer, kind, header, writer->body.length);
    blocks->items[blocks->count++] = (struct block){(int64_t)start, (int32_t)(writer->written - start), 0, (int64_t)writer->body.length};
    put_bytes(writer, writer->body.bytes, writer->body.length);
    return writer->body.failed || writer->flat.failed ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

// --- columns ---------------------------------------------------------------------------------------------------------------------------

// Writes a column's texts as a dictionary: the offset of each, then their bytes.
static enum vram_status put_words(struct writer *writer, size_t column) {
    const struct vr_arrow_words *words = &writer->table->columns[column].words;
    struct vr_text texts = {0}, one = {0};
    begin_batch(writer);
    end_buffer(writer, writer->body.length); // empty bitmap: no text is null
    const size_t start = writer->body.length;
    for (size_t i = 0; i <= words->count; i++) {
        const int32_t offset = (int32_t)texts.length;
        vr_text_append(&writer->body, (const char *)&offset, sizeof offset);
        if (i == words->count) break;
        one.length = 0;
        words->append(writer->table->table, i, &one);
        vr_text_printable(&texts, vr_text_string(&one), one.length);
        if (texts.length > INT32_MAX) break;
    }
    end_buffer(writer, start);
    const bool fits = texts.length <= INT32_MAX, good = !texts.failed && !one.failed;
    const size_t bytes = writer->body.length;
    if (fits && good) vr_text_append(&writer->body, vr_text_string(&texts), texts.length);
    end_buffer(writer, bytes);
    vr_text_release(&texts);
    vr_text_release(&one);
    if (!good || !fits) return good ? VRAM_LIMIT : VRAM_NO_HOST_MEMORY;
    writer->nodes[writer->node_count++] = (struct node){(int64_t)words->count, 0};
    const uint32_t data = batch_of(writer, words->count);
    flat_begin(&writer->flat);
    flat_number(&writer->flat, 0, 8, column);
    flat_reference(&writer->flat, 1, data);
    return put_batch(writer, HEADER_DICTIONARY, flat_end(&writer->flat), &writer->dictionaries);
}

static size_t width_of(enum vr_arrow_kind kind) { return kind == VR_ARROW_TEXT || kind == VR_ARROW_UINT32 ? 4 : 8; }

static void add_arrow_row(struct writer *writer, size_t row, size_t place) {
    const struct vr_arrow_table *table = writer->table;
    memset(writer->cells, 0, table->column_count * sizeof *writer->cells);
    table->fill(table->table, row, writer->cells);
    for (size_t i = 0; i < table->column_count; i++) {
        struct column *column = &writer->columns[i];
        const struct vr_arrow_cell *cell = &writer->cells[i];
        if (place % 8 == 0) vr_text_append(&column->bits, "", 1);
        if (cell->is_there && !column->bits.failed) column->bits.bytes[place / 8] |= (char)(1u << place % 8);
        column->nulls += !cell->is_there;
        vr_text_append(&column->values, (const char *)&cell->value, width_of(table->columns[i].kind));
    }
}

static void add_column(struct writer *writer, struct column *column, size_t rows) {
    struct vr_text *const parts[] = {&column->bits, &column->values};
    for (size_t i = 0; i < VR_COUNT_OF(parts); i++) {
        const size_t start = writer->body.length;
        vr_text_append(&writer->body, vr_text_string(parts[i]), parts[i]->length);
        if (parts[i]->failed) writer->body.failed = true;
        parts[i]->length = 0;
        end_buffer(writer, start);
    }
    writer->nodes[writer->node_count++] = (struct node){(int64_t)rows, column->nulls};
    column->nulls = 0;
}

static enum vram_status put_rows(struct writer *writer) {
    const struct vr_arrow_table *table = writer->table;
    for (size_t first = 0; first < table->row_count; first += ROWS_A_BATCH) {
        const size_t left = table->row_count - first, count = left < ROWS_A_BATCH ? left : ROWS_A_BATCH;
        for (size_t row = 0; row < count; row++) add_arrow_row(writer, first + row, row);
        begin_batch(writer);
        for (size_t i = 0; i < table->column_count; i++) add_column(writer, &writer->columns[i], count);
        VR_TRY(put_batch(writer, HEADER_BATCH, batch_of(writer, count), &writer->batches));
        if (writer->out->refused) break;
    }
    return VRAM_OK;
}

// --- the file --------------------------------------------------------------------------------------------------------------------------

static const char magic[] = "ARROW1";

static enum vram_status put_footer(struct writer *writer) {
    struct flatbuffer *flat = &writer->flat;
    const uint32_t end[2] = {UINT32_MAX, 0};
    put_bytes(writer, end, sizeof end);
    uint32_t schema;
    VR_TRY(schema_of(writer, &schema));
    const uint32_t batches = flat_structs(flat, writer->batches.items, sizeof(struct block), writer->batches.count, ALIGNMENT);
    const uint32_t words = flat_structs(flat, writer->dictionaries.items, sizeof(struct block), writer->dictionaries.count, ALIGNMENT);
    flat_begin(flat);
    flat_number(flat, 0, 2, METADATA_V5);
    flat_reference(flat, 1, schema);
    flat_reference(flat, 2, words);
    flat_reference(flat, 3, batches);
    flat_finish(flat, flat_end(flat));
    const uint32_t length = (uint32_t)flat->used;
    put_bytes(writer, vr_flat_bytes(flat), flat->used);
    put_bytes(writer, &length, sizeof length);
    put_bytes(writer, magic, sizeof magic - 1);
    return flat->failed ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

static enum vram_status put_file(struct writer *writer) {
    put_bytes(writer, magic, sizeof magic - 1);
    put_padding(writer);
    uint32_t schema;
    VR_TRY(schema_of(writer, &schema));
    put_message(writer, HEADER_SCHEMA, schema, 0);
    for (size_t i = 0; i < writer->table->column_count; i++) {
        if (writer->table->columns[i].kind == VR_ARROW_TEXT) VR_TRY(put_words(writer, i));
    }
    VR_TRY(put_rows(writer));
    return put_footer(writer);
}

enum vram_status vr_arrow_write(const struct vr_arrow_table *table, struct vr_output *out) {
    assert(table->column_count != 0);
    const size_t count = table->column_count, buffers = 2 * count < 3 ? 3 : 2 * count; // dictionaries have three
    struct writer writer = {.table = table, .out = out};
    writer.columns = calloc(count, sizeof *writer.columns);
    writer.cells = calloc(count, sizeof *writer.cells);
    writer.nodes = calloc(count, sizeof *writer.nodes);
    writer.buffers = calloc(buffers, sizeof *writer.buffers);
    const bool good = writer.columns != NULL && writer.cells != NULL && writer.nodes != NULL && writer.buffers != NULL;
    const enum vram_status status = good ? put_file(&writer) : VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; writer.columns != NULL && i < count; i++) {
        vr_text_release(&writer.columns[i].bits);
        vr_text_release(&writer.columns[i].values);
    }
    free(writer.columns);
    free(writer.cells);
    free(writer.nodes);
    free(writer.buffers);
    free(writer.dictionaries.items);
    free(writer.batches.items);
    flat_release(&writer.flat);
    vr_text_release(&writer.body);
    return status;
}
