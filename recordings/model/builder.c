#include "model/builder.h"

#include "base/text.h"

enum { GROW_BY_EIGHTH_FROM = 1 << 16, MOST_AHEAD = 16 };

enum vram_status vr_budget_charge(struct vr_budget *budget, size_t count, size_t item_bytes) {
    uint64_t bytes, used;
    if (!vr_mul_u64(count, item_bytes, &bytes) || !vr_add_u64(budget->used_bytes, bytes, &used)) return VRAM_LIMIT;
    if (used > budget->limit_bytes) return VRAM_LIMIT;
    budget->used_bytes = used;
    return VRAM_OK;
}

size_t vr_budget_next_capacity(size_t capacity, size_t needed) {
    size_t more = capacity < GROW_BY_EIGHTH_FROM ? capacity : capacity / 8;
    size_t wanted = capacity + more;
    if (wanted < 16) wanted = 16;
    return wanted < needed ? needed : wanted;
}

size_t vr_budget_expected(const struct vr_budget *budget, size_t needed) {
    const double expected = (double)needed * (budget->ahead < MOST_AHEAD ? budget->ahead : MOST_AHEAD);
    // Reserve slightly more, so that a table that grows somewhat faster later need not move.
    const double wanted = expected + expected / 64;
    return wanted > (double)needed && wanted < (double)(SIZE_MAX / 2) ? (size_t)wanted : needed;
}

enum vram_status vr_budget_grow(struct vr_budget *budget, void **items, size_t *capacity, size_t needed, size_t item_bytes) {
    if (needed <= *capacity) return VRAM_OK;
    size_t wanted = vr_budget_next_capacity(*capacity, needed);
    if (wanted > SIZE_MAX / item_bytes) return VRAM_NO_HOST_MEMORY;
    VR_TRY(vr_budget_charge(budget, wanted - *capacity, item_bytes));
    void *grown = realloc(*items, wanted * item_bytes);
    if (grown == NULL) {
        budget->used_bytes -= (uint64_t)(wanted - *capacity) * item_bytes;
        return VRAM_NO_HOST_MEMORY;
    }
    *items = grown;
    *capacity = wanted;
    return VRAM_OK;
}

// Grows a typed array field. The pointer passes through a void * so that no object is accessed through another pointer type.
#define GROW(builder, items, capacity, needed, status)                                                                                     \
    do {                                                                                                                                   \
        void *items_ = (items);                                                                                                            \
        status = (needed) <= (capacity) ? VRAM_OK : vr_budget_grow(&(builder)->budget, &items_, &(capacity), (needed), sizeof *(items));   \
        (items) = items_;                                                                                                                  \
    } while (0)

// Makes room for one more entry.
static enum vram_status index_reserve(struct vr_builder *builder, struct vr_hash_index *index) {
    if (VR_LIKELY(vr_hash_index_has_room(index))) return VRAM_OK;
    VR_TRY(vr_budget_charge(&builder->budget, vr_hash_index_growth_bytes(index), 1));
    return vr_hash_index_reserve(index);
}

static bool string_equals(const struct vr_strings *strings, uint32_t id, const char *bytes, size_t length) {
    uint64_t begin = strings->offset[id];
    return strings->offset[id + 1] - begin - 1 == length && memcmp(strings->bytes + begin, bytes, length) == 0;
}

static bool find_string(const struct vr_builder *builder, uint64_t hash, const char *bytes, size_t length, uint32_t *id) {
    uint32_t candidate = 0;
    bool found;
    VR_HASH_INDEX_FIND(&builder->string_index, hash, candidate, string_equals(&builder->strings, candidate, bytes, length), found);
    if (found) *id = candidate;
    return found;
}

bool vr_builder_find_string(const struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id) {
    return find_string(builder, vr_hash_bytes(builder->string_index.secret, bytes, length), bytes, length, id);
}

static enum vram_status add_string(struct vr_builder *builder, uint64_t hash, const char *bytes, size_t length, uint32_t *id) {
    struct vr_strings *strings = &builder->strings;
    if (strings->count == UINT32_MAX - 1) return VRAM_LIMIT;
    enum vram_status status;
    uint64_t begin = strings->count == 0 ? 0 : strings->offset[strings->count];
    GROW(builder, strings->bytes, builder->string_bytes_capacity, (size_t)begin + length + 1, status);
    VR_TRY(status);
    GROW(builder, strings->offset, builder->string_capacity, (size_t)strings->count + 2, status);
    VR_TRY(status);
    VR_TRY(index_reserve(builder, &builder->string_index));
    memcpy(strings->bytes + begin, bytes, length);
    strings->bytes[begin + length] = '\0';
    strings->offset[strings->count] = begin;
    strings->offset[strings->count + 1] = begin + length + 1;
    vr_hash_index_add(&builder->string_index, hash, strings->count);
    *id = strings->count++;
    return VRAM_OK;
}

enum vram_status vr_builder_string(struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id) {
    uint64_t hash = vr_hash_bytes(builder->string_index.secret, bytes, length);
    if (find_string(builder, hash, bytes, length, id)) return VRAM_OK;
    return add_string(builder, hash, bytes, length, id);
}

enum vram_status vr_builder_expect_strings(struct vr_builder *builder, size_t count, size_t bytes) {
    struct vr_strings *strings = &builder->strings;
    enum vram_status status;
    GROW(builder, strings->bytes, builder->string_bytes_capacity, bytes, status);
    VR_TRY(status);
    GROW(builder, strings->offset, builder->string_capacity, count + 1, status);
    return status;
}

enum vram_status vr_builder_text(struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id) {
    uint64_t hash = vr_hash_bytes(builder->string_index.secret, bytes, length);
    if (find_string(builder, hash, bytes, length, id)) return VRAM_OK;
    return vr_utf8_valid(bytes, length) ? add_string(builder, hash, bytes, length, id) : VRAM_BAD_INPUT;
}

enum vram_status vr_builder_frame(struct vr_builder *builder, uint32_t name, uint32_t filename, int64_t line, uint32_t *id) {
    struct vr_frames *frames = &builder->frames;
    assert(name < builder->strings.count && filename < builder->strings.count);
    uint64_t hash = vr_mix64(vr_hash_step(vr_hash_step(builder->frame_index.secret, ((uint64_t)name << 32) | filename), (uint64_t)line));
    uint32_t candidate = 0;
    bool found;
    VR_HASH_INDEX_FIND(&builder->frame_index, hash, candidate,
                       frames->name[candidate] == name && frames->filename[candidate] == filename && frames->line[candidate] == line,
                       found);
    if (found) {
        *id = candidate;
        return VRAM_OK;
    }
    if (frames->count == UINT32_MAX - 1) return VRAM_LIMIT;
    size_t needed = (size_t)frames->count + 1, capacity = builder->frame_capacity;
    enum vram_status status;
    GROW(builder, frames->name, capacity, needed, status);
    VR_TRY(status);
    capacity = builder->frame_capacity;
    GROW(builder, frames->filename, capacity, needed, status);
    VR_TRY(status);
    capacity = builder->frame_capacity;
    GROW(builder, frames->line, capacity, needed, status);
    VR_TRY(status);
    builder->frame_capacity = capacity;
    VR_TRY(index_reserve(builder, &builder->frame_index));
    frames->name[frames->count] = name;
    frames->filename[frames->count] = filename;
    frames->line[frames->count] = line;
    vr_hash_index_add(&builder->frame_index, hash, frames->count);
    *id = frames->count++;
    return VRAM_OK;
}

static bool stack_equals(const struct vr_stacks *stacks, uint32_t id, const uint32_t *frames, size_t count) {
    uint64_t begin = stacks->offset[id];
    return stacks->offset[id + 1] - begin == count && memcmp(stacks->frame + begin, frames, count * sizeof *frames) == 0;
}

enum vram_status vr_builder_stack(struct vr_builder *builder, const uint32_t *frames, size_t count, uint32_t *id) {
    if (count == 0) {
        *id = 0;
        return VRAM_OK;
    }
    struct vr_stacks *stacks = &builder->stacks;
    uint64_t hash = vr_hash_bytes(builder->stack_index.secret, frames, count * sizeof *frames);
    uint32_t candidate = 0;
    bool found;
    VR_HASH_INDEX_FIND(&builder->stack_index, hash, candidate, stack_equals(stacks, candidate, frames, count), found);
    if (found) {
        *id = candidate;
        return VRAM_OK;
    }
    if (stacks->count == UINT32_MAX - 1) return VRAM_LIMIT;
    uint64_t begin = stacks->offset[stacks->count];
    enum vram_status status;
    GROW(builder, stacks->frame, builder->stack_frame_capacity, (size_t)begin + count, status);
    VR_TRY(status);
    GROW(builder, stacks->offset, builder->stack_capacity, (size_t)stacks->count + 2, status);
    VR_TRY(status);
    VR_TRY(index_reserve(builder, &builder->stack_index));
    memcpy(stacks->frame + begin, frames, count * sizeof *frames);
    stacks->offset[stacks->count + 1] = begin + count;
    vr_hash_index_add(&builder->stack_index, hash, stacks->count);
    *id = stacks->count++;
    return VRAM_OK;
}

static enum vram_status add_nothings(struct vr_builder *builder) {
    uint32_t id;
    enum vram_status status;
    VR_TRY(vr_builder_string(builder, "", 0, &id));
    GROW(builder, builder->stacks.offset, builder->stack_capacity, 2, status);
    VR_TRY(status);
    builder->stacks.offset[0] = builder->stacks.offset[1] = 0;
    builder->stacks.count = 1;
    return VRAM_OK;
}

enum vram_status vr_builder_init(struct vr_builder *builder, uint64_t limit_bytes) {
    memset(builder, 0, sizeof *builder);
    builder->budget.limit_bytes = limit_bytes;
    vr_hash_index_init(&builder->string_index);
    vr_hash_index_init(&builder->frame_index);
    vr_hash_index_init(&builder->stack_index);
    enum vram_status status = add_nothings(builder);
    if (status != VRAM_OK) vr_builder_release(builder);
    return status;
}

void vr_builder_release(struct vr_builder *builder) {
    free(builder->strings.bytes);
    free(builder->strings.offset);
    free(builder->frames.name);
    free(builder->frames.filename);
    free(builder->frames.line);
    free(builder->stacks.frame);
    free(builder->stacks.offset);
    vr_hash_index_release(&builder->string_index);
    vr_hash_index_release(&builder->frame_index);
    vr_hash_index_release(&builder->stack_index);
    memset(builder, 0, sizeof *builder);
}

static bool strings_are_whole(const struct vr_builder *builder) {
    const struct vr_strings *strings = &builder->strings;
    for (uint32_t i = 0; i < strings->count; i++) {
        uint32_t id = UINT32_MAX;
        const uint64_t begin = strings->offset[i], end = strings->offset[i + 1];
        if (begin >= end || end > builder->string_bytes_capacity || strings->bytes[end - 1] != '\0') return false;
        if (!vr_builder_find_string(builder, strings->bytes + begin, (size_t)(end - begin - 1), &id) || id != i) return false;
    }
    return strings->count != 0 && strings->offset[0] == 0 && builder->string_index.count == strings->count;
}

static bool frames_and_stacks_are_whole(const struct vr_builder *builder) {
    const struct vr_frames *frames = &builder->frames;
    const struct vr_stacks *stacks = &builder->stacks;
    for (uint32_t i = 0; i < frames->count; i++) {
        if (frames->name[i] >= builder->strings.count || frames->filename[i] >= builder->strings.count) return false;
    }
    // Stack 0 is empty and not in the index.
    if (stacks->count == 0 || stacks->offset[0] != 0 || stacks->offset[1] != 0) return false;
    for (uint32_t i = 1; i < stacks->count; i++) {
        if (stacks->offset[i] >= stacks->offset[i + 1]) return false;
    }
    for (uint64_t i = 0; i < stacks->offset[stacks->count]; i++) {
        if (stacks->frame[i] >= frames->count) return false;
    }
    return builder->frame_index.count == frames->count && builder->stack_index.count == stacks->count - 1;
}

bool vr_builder_check(const struct vr_builder *builder) {
    if (builder->budget.used_bytes > builder->budget.limit_bytes) return false;
    if (!vr_hash_index_check(&builder->string_index) || !vr_hash_index_check(&builder->frame_index)) return false;
    return vr_hash_index_check(&builder->stack_index) && strings_are_whole(builder) && frames_and_stacks_are_whole(builder);
}

void vr_builder_finish(struct vr_builder *builder, struct vr_model *model) {
    assert(model->strings.bytes == NULL && model->frames.name == NULL && model->stacks.offset == NULL);
    model->strings = builder->strings;
    model->frames = builder->frames;
    model->stacks = builder->stacks;
    memset(&builder->strings, 0, sizeof builder->strings);
    memset(&builder->frames, 0, sizeof builder->frames);
    memset(&builder->stacks, 0, sizeof builder->stacks);
    vr_builder_release(builder);
}

static bool is_ascii(const char *bytes, size_t length) {
    const uint64_t high_bits = 0x8080808080808080u;
    uint64_t any = 0, word;
    if (length < sizeof word) {
        for (size_t i = 0; i < length; i++) any |= (unsigned char)bytes[i];
        return (any & high_bits) == 0;
    }
    for (size_t at = 0; at + sizeof word <= length; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        any |= word;
    }
    memcpy(&word, bytes + length - sizeof word, sizeof word);
    return ((any | word) & high_bits) == 0;
}

bool vr_utf8_valid(const char *bytes, size_t length) {
    if (length == 0) return true; // bytes may be NULL here, and NULL + 0 is undefined
    // Fast path: nearly all strings are ASCII.
    if (is_ascii(bytes, length)) return true;
    while (length != 0) {
        uint32_t code;
        size_t taken = vr_utf8_decode(bytes, length, &code);
        if (code == VR_UTF8_MALFORMED) return false;
        bytes += taken;
        length -= taken;
    }
    return true;
}
