// Pickle output of protocol 4, with only the opcodes that PyTorch's viewer reads: frames of up to a chunk, batches of 1000 items (the
// viewer passes each batch to one call); a string, frame or stack is written once and then referred to by its memo index.
#include "snapshot/emit.h"
#include "snapshot/opcodes.h"

enum { BATCH = 1000, PROTOCOL = 4, FRAME_BYTES = 9, LONGEST_INSIDE = VR_EMIT_CHUNK / 2 - 16 };

// Makes the chunk one FRAME, so that no opcode spans two.
static void pickle_seal(struct vr_emitter *emitter) {
    emitter->chunk[0] = OP_FRAME;
    vr_store_64(emitter->chunk + 1, emitter->used - FRAME_BYTES);
}

VR_INLINE void put_opcode(struct vr_emitter *emitter, unsigned char opcode) {
    *vr_emitter_room(emitter, 1) = opcode;
    emitter->used++;
}

static void put_argument(struct vr_emitter *emitter, unsigned char opcode, uint64_t argument, size_t bytes) {
    unsigned char *to = vr_emitter_room(emitter, 9);
    to[0] = opcode;
    vr_store_64(to + 1, argument);
    emitter->used += 1 + bytes;
}

static void pickle_start(struct vr_emitter *emitter) {
    const unsigned char protocol[2] = {OP_PROTO, PROTOCOL};
    vr_emitter_write(emitter, protocol, sizeof protocol);
    emitter->begin = emitter->used = FRAME_BYTES;
}

// Called before a list's item and a dictionary's key: begins a batch or continues it.
VR_INLINE void next_item(struct vr_emitter *emitter) {
    unsigned char *to = vr_emitter_room(emitter, 2);
    uint32_t *items = &emitter->levels[emitter->depth].items;
    if (*items == BATCH) {
        *to++ = emitter->levels[emitter->depth].is_dict ? OP_SETITEMS : OP_APPENDS;
        emitter->used++;
        *items = 0;
    }
    if ((*items)++ != 0) return;
    *to = OP_MARK;
    emitter->used++;
}

VR_INLINE void before_value(struct vr_emitter *emitter) {
    if (emitter->depth != 0 && !emitter->levels[emitter->depth].is_dict) next_item(emitter);
}

static void put_get(struct vr_emitter *emitter, uint64_t get) {
    vr_store_64(vr_emitter_room(emitter, 8), get);
    emitter->used += get >> 56;
}

// Memoizes the value that was just begun or written, and returns the opcode that gets it. Returns 0 when memo indices run out; the value is
// then written out each time.
static uint64_t memoize_value(struct vr_emitter *emitter) {
    const uint64_t index = emitter->memo_count;
    if (index == UINT32_MAX) return 0;
    put_opcode(emitter, OP_MEMOIZE);
    emitter->memo_count++;
    return index < 256 ? OP_BINGET | index << 8 | (uint64_t)2 << 56 : OP_LONG_BINGET | index << 8 | (uint64_t)5 << 56;
}

static void put_length(struct vr_emitter *emitter, size_t length) {
    if (length < 256)
        put_argument(emitter, OP_SHORT_BINUNICODE, length, 1);
    else if (length <= UINT32_MAX)
        put_argument(emitter, OP_BINUNICODE, length, 4);
    else
        put_argument(emitter, OP_BINUNICODE8, length, 8);
}

static void put_pickle_text(struct vr_emitter *emitter, const char *bytes, size_t length) {
    if (length > LONGEST_INSIDE) {
        // Like Python, write long strings outside of any frame.
        vr_emitter_flush(emitter);
        put_length(emitter, length);
        vr_emitter_write(emitter, emitter->chunk + FRAME_BYTES, emitter->used - FRAME_BYTES);
        vr_emitter_write(emitter, bytes, length);
        emitter->used = FRAME_BYTES;
        return;
    }
    (void)vr_emitter_room(emitter, length + 5);
    put_length(emitter, length);
    memcpy(emitter->chunk + emitter->used, bytes, length);
    emitter->used += length;
}

static void put_memoized_name(struct vr_emitter *emitter, uint64_t name) {
    if (VR_LIKELY(emitter->memo[name] != 0)) {
        put_get(emitter, emitter->memo[name]);
        return;
    }
    size_t length;
    const char *bytes = vr_emitter_name(emitter, name, &length);
    put_pickle_text(emitter, bytes, length);
    emitter->memo[name] = memoize_value(emitter);
}

static void pickle_begin(struct vr_emitter *emitter, bool is_dict) {
    before_value(emitter);
    put_opcode(emitter, is_dict ? OP_EMPTY_DICT : OP_EMPTY_LIST);
    emitter->depth++;
    emitter->levels[emitter->depth].is_dict = is_dict;
    emitter->levels[emitter->depth].items = 0;
}

static void pickle_end(struct vr_emitter *emitter) {
    if (emitter->levels[emitter->depth].items != 0) {
        put_opcode(emitter, emitter->levels[emitter->depth].is_dict ? OP_SETITEMS : OP_APPENDS);
    }
    emitter->depth--;
}

static void pickle_key(struct vr_emitter *emitter, uint64_t name) {
    next_item(emitter);
    put_memoized_name(emitter, name);
}

static void pickle_key_bytes(struct vr_emitter *emitter, const char *bytes, size_t length) {
    next_item(emitter);
    put_pickle_text(emitter, bytes, length);
}

static void pickle_name(struct vr_emitter *emitter, uint64_t name) {
    before_value(emitter);
    put_memoized_name(emitter, name);
}

static void pickle_bytes(struct vr_emitter *emitter, const char *bytes, size_t length) {
    before_value(emitter);
    put_pickle_text(emitter, bytes, length);
}

// Writes the shortest opcode of a number to `to`, which has 11 free bytes, and returns the end.
VR_INLINE unsigned char *encode_number(unsigned char *to, uint64_t number) {
    if (number <= INT32_MAX) {
        to[0] = number < 256 ? OP_BININT1 : number < 65536 ? OP_BININT2 : OP_BININT;
        vr_store_64(to + 1, number);
        return to + (number < 256 ? 2 : number < 65536 ? 3 : 5);
    }
    // The sign needs a bit, too.
    const unsigned bytes = (vr_log2_floor(number) + 1) / 8 + 1;
    to[0] = OP_LONG1;
    to[1] = (unsigned char)bytes;
    vr_store_64(to + 2, number);
    to[10] = 0;
    return to + 2 + bytes;
}

VR_INLINE unsigned char *encode_signed(unsigned char *to, int64_t number) {
    if (number >= 0) return encode_number(to, (uint64_t)number);
    const unsigned bytes = number >= INT32_MIN ? 4 : (vr_log2_floor(~(uint64_t)number) + 1) / 8 + 1;
    to[0] = number >= INT32_MIN ? OP_BININT : OP_LONG1;
    to[1] = (unsigned char)bytes;
    to += number >= INT32_MIN ? 1 : 2;
    vr_store_64(to, (uint64_t)number);
    return to + bytes;
}

static void pickle_number(struct vr_emitter *emitter, uint64_t number) {
    before_value(emitter);
    emitter->used = (size_t)(encode_number(vr_emitter_room(emitter, 11), number) - emitter->chunk);
}

static void pickle_signed(struct vr_emitter *emitter, int64_t number) {
    before_value(emitter);
    emitter->used = (size_t)(encode_signed(vr_emitter_room(emitter, 11), number) - emitter->chunk);
}

// Writes keys with their values. Most names have occurred before, so numbers and memo gets go directly into the chunk.
static void pickle_fields(struct vr_emitter *emitter, const struct vr_emit_field *fields, size_t count) {
    enum { LONGEST = 24 }; // a 5-byte get, stored as 8 bytes, and an 11-byte number
    for (size_t i = 0; i < count; i++) {
        next_item(emitter);
        const uint64_t key = emitter->memo[fields[i].key], value = fields[i].kind == VR_FIELD_NAME ? emitter->memo[fields[i].value] : 1;
        if (VR_UNLIKELY(key == 0 || value == 0)) {
            put_memoized_name(emitter, fields[i].key);
            if (fields[i].kind == VR_FIELD_NAME) {
                put_memoized_name(emitter, fields[i].value);
                continue;
            }
        }
        unsigned char *to = vr_emitter_room(emitter, LONGEST);
        if (VR_LIKELY(key != 0)) {
            vr_store_64(to, key);
            to += key >> 56;
        }
        if (fields[i].kind == VR_FIELD_NUMBER) {
            to = encode_number(to, fields[i].value);
        } else if (fields[i].kind == VR_FIELD_SIGNED) {
            to = encode_signed(to, (int64_t)fields[i].value);
        } else {
            vr_store_64(to, value);
            to += value >> 56;
        }
        emitter->used = (size_t)(to - emitter->chunk);
    }
}

// Writes the number as in protocol 0, which every protocol accepts.
static void pickle_digits(struct vr_emitter *emitter, const char *text, size_t length) {
    before_value(emitter);
    unsigned char *to = vr_emitter_room(emitter, length + 3);
    to[0] = OP_LONG;
    memcpy(to + 1, text, length);
    memcpy(to + 1 + length, "L\n", 2);
    emitter->used += length + 3;
}

static void pickle_real(struct vr_emitter *emitter, double number) {
    uint64_t bits;
    before_value(emitter);
    memcpy(&bits, &number, sizeof bits);
    unsigned char *to = vr_emitter_room(emitter, 9);
    to[0] = OP_BINFLOAT;
    for (size_t i = 0; i < 8; i++) to[1 + i] = (unsigned char)(bits >> (56 - 8 * i));
    emitter->used += 9;
}

static void pickle_boolean(struct vr_emitter *emitter, bool value) {
    before_value(emitter);
    put_opcode(emitter, value ? OP_NEWTRUE : OP_NEWFALSE);
}

static void pickle_null(struct vr_emitter *emitter) {
    before_value(emitter);
    put_opcode(emitter, OP_NONE);
}

static void pickle_pair(struct vr_emitter *emitter, uint64_t first, uint64_t second) {
    before_value(emitter);
    // The pair's two members are not items of the surrounding list.
    bool was_dict = emitter->levels[emitter->depth].is_dict;
    emitter->levels[emitter->depth].is_dict = true;
    pickle_number(emitter, first);
    pickle_number(emitter, second);
    emitter->levels[emitter->depth].is_dict = was_dict;
    put_opcode(emitter, OP_TUPLE2);
}

// The items that follow are not items of the surrounding container, as in pickle_pair().
static void pickle_begin_python(struct vr_emitter *emitter, enum vr_python_value kind) {
    before_value(emitter);
    if (kind == VR_PYTHON_KIND_SET) put_opcode(emitter, OP_EMPTY_SET);
    if (kind == VR_PYTHON_KIND_DICT) put_opcode(emitter, OP_EMPTY_DICT);
    put_opcode(emitter, OP_MARK);
    emitter->depth++;
    emitter->levels[emitter->depth].is_dict = true;
    emitter->levels[emitter->depth].items = 0;
}

static void pickle_end_python(struct vr_emitter *emitter, enum vr_python_value kind) {
    static const unsigned char ends[] = {[VR_PYTHON_KIND_TUPLE] = OP_TUPLE,
                                         [VR_PYTHON_KIND_SET] = OP_ADDITEMS,
                                         [VR_PYTHON_KIND_FROZENSET] = OP_FROZENSET,
                                         [VR_PYTHON_KIND_DICT] = OP_SETITEMS};
    assert((size_t)kind < sizeof ends);
    put_opcode(emitter, ends[kind]);
    emitter->depth--;
}

static void pickle_python_bytes(struct vr_emitter *emitter, enum vr_python_value kind, const char *bytes, size_t length) {
    before_value(emitter);
    if (kind == VR_PYTHON_KIND_BYTEARRAY)
        put_argument(emitter, OP_BYTEARRAY8, length, 8);
    else
        put_argument(emitter, OP_BINBYTES, length, 4);
    for (size_t done = 0; done < length;) {
        const size_t step = length - done < LONGEST_INSIDE ? length - done : LONGEST_INSIDE;
        memcpy(vr_emitter_room(emitter, step), bytes + done, step);
        emitter->used += step;
        done += step;
    }
}

static bool pickle_shared(struct vr_emitter *emitter, enum vr_shared kind, uint32_t id) {
    if (emitter->known[kind][id] != 0) {
        before_value(emitter);
        put_get(emitter, emitter->known[kind][id]);
        return true;
    }
    pickle_begin(emitter, kind == VR_SHARED_FRAME);
    emitter->known[kind][id] = memoize_value(emitter);
    return false;
}

static void pickle_end_shared(struct vr_emitter *emitter, enum vr_shared kind, uint32_t id) {
    (void)kind;
    (void)id;
    pickle_end(emitter);
}

static void pickle_finish(struct vr_emitter *emitter) { put_opcode(emitter, OP_STOP); }

const struct vr_emit_calls vr_emit_pickle = {
    .start = pickle_start,
    .begin = pickle_begin,
    .end = pickle_end,
    .fields = pickle_fields,
    .key = pickle_key,
    .key_bytes = pickle_key_bytes,
    .name = pickle_name,
    .bytes = pickle_bytes,
    .number = pickle_number,
    .signed_number = pickle_signed,
    .digits = pickle_digits,
    .real = pickle_real,
    .boolean = pickle_boolean,
    .null = pickle_null,
    .pair = pickle_pair,
    .begin_python = pickle_begin_python,
    .end_python = pickle_end_python,
    .python_bytes = pickle_python_bytes,
    .shared = pickle_shared,
    .end_shared = pickle_end_shared,
    .seal = pickle_seal,
    .finish = pickle_finish,
};
