#include "history/logdict.h"

#include "history/logcolumn.h"

// Grows a typed array of the dictionary.
#define GROW(dictionary, items, capacity, needed, status)                                                                                  \
    do {                                                                                                                                   \
        void *items_ = (items);                                                                                                            \
        (status) = vr_budget_grow((dictionary)->budget, &items_, &(capacity), (needed), sizeof *(items));                                  \
        (items) = items_;                                                                                                                  \
    } while (0)

static enum vram_status reserve_strings(struct vr_log_dictionary *dictionary, size_t count, uint64_t bytes) {
    enum vram_status status;
    struct vr_strings *strings = &dictionary->strings;
    uint64_t used = strings->count == 0 ? 0 : strings->offset[strings->count];
    if (count > UINT32_MAX - 1 - (size_t)strings->count || bytes > SIZE_MAX / 2 - used) return VRAM_LIMIT;
    GROW(dictionary, strings->bytes, dictionary->string_bytes_capacity, (size_t)(used + bytes + count), status);
    VR_TRY(status);
    GROW(dictionary, strings->offset, dictionary->string_capacity, (size_t)strings->count + count + 1, status);
    return status;
}

// Appends a string; there must be room.
static enum vram_status put_string(struct vr_strings *strings, const unsigned char *bytes, size_t length) {
    if (!vr_utf8_valid((const char *)bytes, length)) return VRAM_BAD_INPUT;
    uint64_t begin = strings->count == 0 ? 0 : strings->offset[strings->count];
    if (length != 0) memcpy(strings->bytes + begin, bytes, length);
    strings->bytes[begin + length] = '\0';
    strings->offset[strings->count] = begin;
    strings->offset[++strings->count] = begin + length + 1;
    return VRAM_OK;
}

static enum vram_status reserve_frames(struct vr_log_dictionary *dictionary, size_t count) {
    enum vram_status status;
    struct vr_frames *frames = &dictionary->frames;
    if (count > UINT32_MAX - 1 - (size_t)frames->count) return VRAM_LIMIT;
    size_t needed = (size_t)frames->count + count;
    GROW(dictionary, frames->name, dictionary->frame_capacity[0], needed, status);
    VR_TRY(status);
    GROW(dictionary, frames->filename, dictionary->frame_capacity[1], needed, status);
    VR_TRY(status);
    GROW(dictionary, frames->line, dictionary->frame_capacity[2], needed, status);
    return status;
}

static enum vram_status reserve_stacks(struct vr_log_dictionary *dictionary, size_t count, uint64_t frame_count) {
    enum vram_status status;
    struct vr_stacks *stacks = &dictionary->stacks;
    uint64_t used = stacks->count == 0 ? 0 : stacks->offset[stacks->count];
    if (count > UINT32_MAX - 1 - (size_t)stacks->count || frame_count > SIZE_MAX / 8 - used) return VRAM_LIMIT;
    GROW(dictionary, stacks->frame, dictionary->stack_frame_capacity, (size_t)(used + frame_count), status);
    VR_TRY(status);
    GROW(dictionary, stacks->offset, dictionary->stack_capacity, (size_t)stacks->count + count + 1, status);
    return status;
}

enum vram_status vr_log_dictionary_init(struct vr_log_dictionary *dictionary, struct vr_budget *budget) {
    memset(dictionary, 0, sizeof *dictionary);
    dictionary->budget = budget;
    enum vram_status status = reserve_strings(dictionary, 1, 0);
    if (status == VRAM_OK) status = put_string(&dictionary->strings, NULL, 0);
    if (status == VRAM_OK) status = reserve_stacks(dictionary, 1, 1);
    if (status != VRAM_OK) {
        vr_log_dictionary_release(dictionary);
        return status;
    }
    dictionary->stacks.offset[0] = dictionary->stacks.offset[1] = 0;
    dictionary->stacks.count = 1;
    return VRAM_OK;
}

void vr_log_dictionary_release(struct vr_log_dictionary *dictionary) {
    free(dictionary->strings.bytes);
    free(dictionary->strings.offset);
    free(dictionary->frames.name);
    free(dictionary->frames.filename);
    free(dictionary->frames.line);
    free(dictionary->stacks.frame);
    free(dictionary->stacks.offset);
    free(dictionary->modules);
    free(dictionary->scratch);
    memset(dictionary, 0, sizeof *dictionary);
}

enum vram_status vr_log_dictionary_scratch(struct vr_log_dictionary *dictionary, size_t count) {
    enum vram_status status;
    GROW(dictionary, dictionary->scratch, dictionary->scratch_capacity, count, status);
    return status;
}

// ---- sections

// Gets the number of the section's rows that a table of `held` rows already has. Returns false for a gap.
static bool rows_to_skip(const struct vr_log_reading *reading, uint64_t held, size_t *skip) {
    if (reading->first > held) return false;
    uint64_t known = held - reading->first;
    *skip = known < reading->count ? (size_t)known : (size_t)reading->count;
    return true;
}

static enum vram_status read_strings(struct vr_log_dictionary *dictionary, struct vr_log_reading *reading, size_t skip) {
    size_t count = (size_t)reading->count;
    uint64_t largest, total = 0;
    vr_column_read(&reading->body, dictionary->scratch, count, &largest);
    for (size_t i = 0; i < count && !reading->body.failed; i++) {
        if (!vr_add_u64(total, dictionary->scratch[i], &total) || total > vr_cursor_left(&reading->body)) return VRAM_BAD_INPUT;
    }
    if (reading->body.failed) return VRAM_BAD_INPUT;
    VR_TRY(reserve_strings(dictionary, count - skip, total));
    for (size_t i = 0; i < count; i++) {
        size_t length = (size_t)dictionary->scratch[i];
        const unsigned char *bytes = vr_cursor_take(&reading->body, length);
        if (i >= skip) VR_TRY(put_string(&dictionary->strings, bytes, length));
    }
    return VRAM_OK;
}

static bool ids_below(const uint32_t *ids, size_t count, uint32_t limit) {
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= limit) return false;
    }
    return true;
}

// Reads the new columns after the existing rows, then moves the new rows down over those that were already known.
static enum vram_status read_frames(struct vr_log_dictionary *dictionary, struct vr_log_reading *reading, size_t skip) {
    struct vr_frames *frames = &dictionary->frames;
    size_t held = frames->count, count = (size_t)reading->count, fresh = count - skip;
    struct vr_log_table table;
    VR_TRY(reserve_frames(dictionary, count));
    struct vr_frames rows = {.name = frames->name + held, .filename = frames->filename + held, .line = frames->line + held};
    vr_log_table_frames(&rows, &table);
    if (!vr_log_read_table(reading, &table, dictionary->scratch)) return VRAM_BAD_INPUT;
    memmove(rows.name, rows.name + skip, fresh * sizeof *rows.name);
    memmove(rows.filename, rows.filename + skip, fresh * sizeof *rows.filename);
    memmove(rows.line, rows.line + skip, fresh * sizeof *rows.line);
    const uint32_t strings = dictionary->strings.count;
    if (!ids_below(rows.name, fresh, strings) || !ids_below(rows.filename, fresh, strings)) return VRAM_BAD_INPUT;
    frames->count += (uint32_t)fresh;
    return VRAM_OK;
}

static enum vram_status read_stacks(struct vr_log_dictionary *dictionary, struct vr_log_reading *reading, size_t skip) {
    struct vr_stacks *stacks = &dictionary->stacks;
    size_t count = (size_t)reading->count;
    uint64_t largest, total = 0, skipped = 0;
    vr_column_read(&reading->body, dictionary->scratch, count, &largest);
    for (size_t i = 0; i < count && !reading->body.failed; i++) {
        if (i == skip) skipped = total;
        if (!vr_add_u64(total, dictionary->scratch[i], &total) || total > vr_cursor_left(&reading->body)) return VRAM_BAD_INPUT;
    }
    if (reading->body.failed) return VRAM_BAD_INPUT;
    if (skip == count) return VRAM_OK;
    VR_TRY(reserve_stacks(dictionary, count - skip, total - skipped));
    uint64_t begin = stacks->offset[stacks->count];
    for (size_t i = skip; i < count; i++)
        stacks->offset[stacks->count + 1 + i - skip] = stacks->offset[stacks->count + i - skip] + dictionary->scratch[i];
    VR_TRY(vr_log_dictionary_scratch(dictionary, (size_t)total));
    vr_column_read(&reading->body, dictionary->scratch, (size_t)total, &largest);
    if (reading->body.failed || (total != 0 && largest >= dictionary->frames.count)) return VRAM_BAD_INPUT;
    for (uint64_t i = skipped; i < total; i++) stacks->frame[begin + i - skipped] = (uint32_t)dictionary->scratch[i];
    stacks->count += (uint32_t)(count - skip);
    return VRAM_OK;
}

static enum vram_status read_modules(struct vr_log_dictionary *dictionary, struct vr_log_reading *reading, size_t skip) {
    size_t count = (size_t)reading->count, fresh = count - skip;
    const uint32_t strings = dictionary->strings.count;
    struct vr_log_table table;
    enum vram_status status;
    GROW(dictionary, dictionary->modules, dictionary->module_capacity, dictionary->module_count + count, status);
    VR_TRY(status);
    struct vr_module *rows = dictionary->modules + dictionary->module_count;
    vr_log_table_modules(rows, &table);
    if (!vr_log_read_table(reading, &table, dictionary->scratch)) return VRAM_BAD_INPUT;
    memmove(rows, rows + skip, fresh * sizeof *rows);
    for (size_t i = 0; i < fresh; i++) {
        if (rows[i].path >= strings || rows[i].build_id >= strings) return VRAM_BAD_INPUT;
    }
    dictionary->module_count += fresh;
    return VRAM_OK;
}

enum vram_status vr_log_dictionary_section(struct vr_log_dictionary *dictionary, struct vr_log_reading *reading) {
    static enum vram_status (*const readers[])(struct vr_log_dictionary *, struct vr_log_reading *, size_t) = {
        [VR_LOG_STRINGS] = read_strings,
        [VR_LOG_FRAMES] = read_frames,
        [VR_LOG_STACKS] = read_stacks,
        [VR_LOG_MODULES] = read_modules,
    };
    const uint64_t held[] = {0, dictionary->strings.count, dictionary->frames.count, dictionary->stacks.count, dictionary->module_count};
    size_t skip;
    if (!rows_to_skip(reading, held[reading->tag], &skip)) return VRAM_BAD_INPUT;
    if (reading->count == 0) return VRAM_OK;
    VR_TRY(vr_log_dictionary_scratch(dictionary, (size_t)reading->count));
    return readers[reading->tag](dictionary, reading, skip);
}

// ---- records of the tail

static enum vram_status stack_record(struct vr_log_dictionary *dictionary, const unsigned char *record, size_t length) {
    struct vr_stacks *stacks = &dictionary->stacks;
    uint32_t count = vr_load32(record + 4);
    if (count > (length - 8) / 4) return VRAM_BAD_INPUT;
    VR_TRY(reserve_stacks(dictionary, 1, count));
    uint32_t *frames = stacks->frame + stacks->offset[stacks->count];
    memcpy(frames, record + 8, count * sizeof *frames);
    if (!ids_below(frames, count, dictionary->frames.count)) return VRAM_BAD_INPUT;
    stacks->offset[stacks->count + 1] = stacks->offset[stacks->count] + count;
    stacks->count++;
    return VRAM_OK;
}

static enum vram_status frame_record(struct vr_log_dictionary *dictionary, const unsigned char *record, size_t length) {
    struct vr_frames *frames = &dictionary->frames;
    const uint32_t strings = dictionary->strings.count;
    if (length < 24 || vr_load32(record + 4) >= strings || vr_load32(record + 8) >= strings) return VRAM_BAD_INPUT;
    VR_TRY(reserve_frames(dictionary, 1));
    frames->name[frames->count] = vr_load32(record + 4);
    frames->filename[frames->count] = vr_load32(record + 8);
    frames->line[frames->count++] = (int64_t)vr_load64(record + 16);
    return VRAM_OK;
}

static enum vram_status module_record(struct vr_log_dictionary *dictionary, const unsigned char *record, size_t length) {
    const uint32_t strings = dictionary->strings.count;
    enum vram_status status;
    if (length < 12 || vr_load32(record + 4) >= strings || vr_load32(record + 8) >= strings) return VRAM_BAD_INPUT;
    GROW(dictionary, dictionary->modules, dictionary->module_capacity, dictionary->module_count + 1, status);
    VR_TRY(status);
    dictionary->modules[dictionary->module_count++] = (struct vr_module){vr_load32(record + 4), vr_load32(record + 8)};
    return VRAM_OK;
}

enum vram_status vr_log_dictionary_record(struct vr_log_dictionary *dictionary, unsigned kind, const unsigned char *record, size_t length) {
    switch (kind) {
    case VR_LOG_RECORD_STRING:
        if (vr_load32(record + 4) > length - 8) return VRAM_BAD_INPUT;
        VR_TRY(reserve_strings(dictionary, 1, vr_load32(record + 4)));
        return put_string(&dictionary->strings, record + 8, vr_load32(record + 4));
    case VR_LOG_RECORD_FRAME: return frame_record(dictionary, record, length);
    case VR_LOG_RECORD_STACK: return stack_record(dictionary, record, length);
    case VR_LOG_RECORD_MODULE: return module_record(dictionary, record, length);
    default: return VRAM_OK;
    }
}
