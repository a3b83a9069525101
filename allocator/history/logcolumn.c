#include "history/logcolumn.h"

#include "base/hash.h"

// Distinct values found so far, and a map from each value to its index + 1.
struct choices {
    uint64_t values[VR_CHOICE_MAX];
    struct vr_map index;
};

// Returns the value's index, adding a new value; VR_CHOICE_MAX if there is no room.
static size_t choice_of(struct choices *choices, uint64_t value) {
    const size_t count = choices->index.count, known = (size_t)vr_map_get(&choices->index, value);
    if (known != 0) return known - 1;
    if (count == VR_CHOICE_MAX || vr_map_set(&choices->index, value, count + 1) != VRAM_OK) return VR_CHOICE_MAX;
    choices->values[count] = value;
    return count;
}

// Compares in stretches without an early exit, which the compiler vectorizes; columns that differ usually differ in the first stretch.
enum { STRETCH = 64 };
static bool all_same(const uint64_t *values, size_t count) {
    const uint64_t first = values[0];
    size_t at = 0;
    for (; count - at >= STRETCH; at += STRETCH) {
        uint64_t differ = 0;
        for (size_t i = 0; i < STRETCH; i++) differ |= values[at + i] ^ first;
        if (differ != 0) return false;
    }
    while (at < count && values[at] == first) at++;
    return at == count;
}

// Writes the choice of each row into `rows`. Returns false if there are `most` choices or more.
static bool choose_encoding(struct choices *choices, const uint64_t *values, size_t count, size_t most, unsigned char *rows) {
    for (size_t i = 0; i < count; i++) {
        const size_t choice = i != 0 && values[i] == values[i - 1] ? rows[i - 1] : choice_of(choices, values[i]);
        if (choice >= most) return false;
        rows[i] = (unsigned char)choice;
    }
    return true;
}

// Writes the column as CHOICE. Returns false if it has too many different values, or there is no memory to find them.
static bool write_choice(struct vr_bytes *out, const uint64_t *values, size_t count, size_t most) {
    struct choices choices = {.index = {0}};
    size_t begin = out->count;
    if (!vr_bytes_reserve(out, 1 + VR_VARINT_MAX * (VR_CHOICE_MAX + 1) + count)) return true;
    // Write the rows first, after the longest possible list of values, and then move them down.
    unsigned char *rows = out->data + begin + 1 + VR_VARINT_MAX * (VR_CHOICE_MAX + 1);
    const bool few = choose_encoding(&choices, values, count, most, rows);
    const size_t choice_count = choices.index.count;
    vr_map_release(&choices.index);
    if (!few) return false;
    unsigned char *at = out->data + begin;
    *at++ = VR_CODING_CHOICE;
    at = vr_varint_put(at, choice_count);
    for (size_t i = 0; i < choice_count; i++) at = vr_varint_put(at, choices.values[i]);
    memmove(at, rows, count);
    out->count = (size_t)(at + count - out->data);
    return true;
}

void vr_column_write_same(struct vr_bytes *out, uint64_t value) {
    vr_bytes_add(out, &(unsigned char){VR_CODING_SAME}, 1);
    vr_bytes_varint(out, value);
}

void vr_column_write_plain(struct vr_bytes *out, const uint64_t *values, size_t count) {
    if (count == 0 || !vr_bytes_reserve(out, 1 + VR_VARINT_MAX * count)) return;
    unsigned char *at = out->data + out->count;
    *at++ = VR_CODING_PLAIN;
    for (size_t i = 0; i < count; i++) at = vr_varint_put(at, values[i]);
    out->count = (size_t)(at - out->data);
}

void vr_column_write_change(struct vr_bytes *out, const uint64_t *values, size_t count) {
    if (count == 0 || !vr_bytes_reserve(out, 1 + VR_VARINT_MAX * count)) return;
    unsigned char *at = out->data + out->count;
    uint64_t before = 0;
    *at++ = VR_CODING_CHANGE;
    for (size_t i = 0; i < count; i++) {
        at = vr_varint_put(at, vr_zigzag(values[i] - before));
        before = values[i];
    }
    out->count = (size_t)(at - out->data);
}

void vr_column_write_rising(struct vr_bytes *out, const uint64_t *values, size_t count) {
    if (count != 0 && all_same(values, count))
        vr_column_write_same(out, values[0]);
    else
        vr_column_write_change(out, values, count);
}

void vr_column_write(struct vr_bytes *out, const uint64_t *values, size_t count, bool varied) {
    uint64_t plain = 0, change = 0, before = 0;
    if (count == 0) return;
    if (!varied && all_same(values, count)) {
        vr_column_write_same(out, values[0]);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        plain += vr_varint_length(values[i]);
        change += vr_varint_length(vr_zigzag(values[i] - before));
        before = values[i];
    }
    uint64_t least = plain < change ? plain : change;
    if (least > count && write_choice(out, values, count, count / 4 < VR_CHOICE_MAX ? count / 4 + 1 : VR_CHOICE_MAX)) return;
    if (plain <= change)
        vr_column_write_plain(out, values, count);
    else
        vr_column_write_change(out, values, count);
}

static uint64_t read_choice(struct vr_cursor *cursor, uint64_t *values, size_t count) {
    uint64_t choices[VR_CHOICE_MAX] = {0}, largest = 0, choice_count = vr_cursor_varint(cursor);
    if (choice_count == 0 || choice_count > VR_CHOICE_MAX) cursor->failed = true;
    for (size_t i = 0; i < choice_count && !cursor->failed; i++) {
        choices[i] = vr_cursor_varint(cursor);
        if (choices[i] > largest) largest = choices[i];
    }
    const unsigned char *rows = vr_cursor_take(cursor, count);
    if (rows == NULL || cursor->failed) return 0;
    unsigned last = 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = choices[rows[i]];
        last = rows[i] > last ? rows[i] : last;
    }
    if (last >= choice_count) cursor->failed = true;
    return largest;
}

static uint64_t read_plain(struct vr_cursor *cursor, uint64_t *values, size_t count) {
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = vr_cursor_varint(cursor);
        largest = values[i] > largest ? values[i] : largest;
    }
    return largest;
}

static uint64_t read_change(struct vr_cursor *cursor, uint64_t *values, size_t count) {
    uint64_t largest = 0, value = 0;
    for (size_t i = 0; i < count; i++) {
        value += vr_unzigzag(vr_cursor_varint(cursor));
        values[i] = value;
        largest = value > largest ? value : largest;
    }
    return largest;
}

bool vr_column_read_same(struct vr_cursor *cursor, uint64_t *value) {
    if (vr_cursor_left(cursor) == 0 || *cursor->next != VR_CODING_SAME) return false;
    cursor->next++;
    *value = vr_cursor_varint(cursor);
    return true;
}

void vr_column_read(struct vr_cursor *cursor, uint64_t *values, size_t count, uint64_t *largest) {
    *largest = 0;
    if (count == 0) return;
    const unsigned char *coding = vr_cursor_take(cursor, 1);
    if (coding == NULL) return;
    switch (*coding) {
    case VR_CODING_SAME:
        *largest = vr_cursor_varint(cursor);
        for (size_t i = 0; i < count; i++) values[i] = *largest;
        break;
    case VR_CODING_CHOICE: *largest = read_choice(cursor, values, count); break;
    case VR_CODING_PLAIN: *largest = read_plain(cursor, values, count); break;
    case VR_CODING_CHANGE: *largest = read_change(cursor, values, count); break;
    default: cursor->failed = true; break;
    }
}
