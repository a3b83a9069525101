#include "export/flatbuffer.h"

void vr_flat_release(struct vr_flat *flat) {
    free(flat->bytes);
    *flat = (struct vr_flat){0};
}

void vr_flat_clear(struct vr_flat *flat) {
    flat->used = 0;
    flat->alignment = 0;
}

// Room for `size` more bytes before what is there.
static bool reserve_bytes(struct vr_flat *flat, size_t size) {
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

static void put_flat_bytes(struct vr_flat *flat, const void *bytes, size_t size) {
    if (size == 0 || !reserve_bytes(flat, size)) return;
    flat->used += size;
    memcpy(flat->bytes + (flat->capacity - flat->used), bytes, size);
}

// Zeros, so that after `more` bytes of another object what comes next stands at a multiple of `alignment` from the end.
static void align_flat(struct vr_flat *flat, size_t alignment, size_t more) {
    static const uint8_t zeros[16];
    assert(alignment <= sizeof zeros && (alignment & (alignment - 1)) == 0);
    if (alignment > flat->alignment) flat->alignment = alignment;
    put_flat_bytes(flat, zeros, (0 - (flat->used + more)) & (alignment - 1));
}

static void put_flat_number(struct vr_flat *flat, size_t size, uint64_t value) {
    align_flat(flat, size, size);
    put_flat_bytes(flat, &value, size);
}

// The distance from here to an object, which lies behind.
static void put_reference(struct vr_flat *flat, uint32_t object) {
    align_flat(flat, 4, 4);
    assert(flat->failed || object <= flat->used);
    const uint32_t distance = (uint32_t)flat->used + 4 - object;
    put_flat_bytes(flat, &distance, 4);
}

uint32_t vr_flat_string(struct vr_flat *flat, const char *text, size_t length) {
    align_flat(flat, 4, length + 1);
    put_flat_bytes(flat, "", 1);
    put_flat_bytes(flat, text, length);
    put_flat_number(flat, 4, length);
    return (uint32_t)flat->used;
}

uint32_t vr_flat_structs(struct vr_flat *flat, const void *items, size_t size, size_t count, size_t alignment) {
    align_flat(flat, 4, size * count);
    align_flat(flat, alignment, size * count);
    put_flat_bytes(flat, items, size * count);
    put_flat_number(flat, 4, count);
    return (uint32_t)flat->used;
}

uint32_t vr_flat_references(struct vr_flat *flat, const uint32_t *objects, size_t count) {
    align_flat(flat, 4, 4 * count);
    for (size_t i = count; i-- > 0;) put_reference(flat, objects[i]);
    put_flat_number(flat, 4, count);
    return (uint32_t)flat->used;
}

void vr_flat_begin(struct vr_flat *flat) {
    memset(flat->slots, 0, sizeof flat->slots);
    flat->table_start = flat->used;
}

void vr_flat_number(struct vr_flat *flat, unsigned slot, size_t size, uint64_t value) {
    assert(slot < VR_FLAT_MOST_SLOTS);
    if (value == 0) return;
    put_flat_number(flat, size, value);
    flat->slots[slot] = (uint32_t)flat->used;
}

void vr_flat_reference(struct vr_flat *flat, unsigned slot, uint32_t object) {
    assert(slot < VR_FLAT_MOST_SLOTS);
    put_reference(flat, object);
    flat->slots[slot] = (uint32_t)flat->used;
}

// A table begins with the distance to its list of fields, which stands before it: its own size, the table's, and where each field is.
uint32_t vr_flat_end(struct vr_flat *flat) {
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

void vr_flat_finish(struct vr_flat *flat, uint32_t root) {
    align_flat(flat, flat->alignment < 4 ? 4 : flat->alignment, 4);
    put_reference(flat, root);
}
