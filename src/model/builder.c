#include "model/builder.h"

#include "base/utf8.h"

enum { GROW_BY_EIGHTH_FROM = 1 << 16, FIRST_SLOTS = 64, MOST_AHEAD = 16 };

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
    // A little more, so that a table which comes a bit faster later on does not move after all.
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

// Grows a typed array field; the pointer goes through a void * so that no object is read through another pointer type.
#define GROW(builder, items, capacity, needed, status)                                                                                     \
    do {                                                                                                                                   \
        void *items_ = (items);                                                                                                            \
        status = vr_budget_grow(&(builder)->budget, &items_, &(capacity), (needed), sizeof *(items));                                      \
        (items) = items_;                                                                                                                  \
    } while (0)

#define SLOT_HASH(hash) ((hash)&0xffffffff00000000u)

// The first slot of a hash comes from its upper half, which the slots keep, so that a table can grow without its keys.
static size_t first_slot(uint64_t hash, size_t slot_count) { return (size_t)(hash >> 32) & (slot_count - 1); }

static enum vram_status table_grow(struct vr_builder *builder, struct vr_hash_table *table) {
    size_t slot_count = table->slot_count == 0 ? FIRST_SLOTS : table->slot_count * 2;
    VR_TRY(vr_budget_charge(&builder->budget, slot_count - table->slot_count, sizeof *table->slots));
    uint64_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < table->slot_count; i++) {
        if (table->slots[i] == 0) continue;
        size_t at = first_slot(table->slots[i], slot_count);
        while (slots[at] != 0) at = (at + 1) & (slot_count - 1);
        slots[at] = table->slots[i];
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    return VRAM_OK;
}

// Room for one more key.
static enum vram_status table_reserve(struct vr_builder *builder, struct vr_hash_table *table) {
    if (table->used + 1 <= table->slot_count / 8 * 5) return VRAM_OK;
    return table_grow(builder, table);
}

static void table_insert(struct vr_hash_table *table, uint64_t hash, uint32_t id) {
    size_t at = first_slot(hash, table->slot_count);
    while (table->slots[at] != 0) at = (at + 1) & (table->slot_count - 1);
    table->slots[at] = SLOT_HASH(hash) | ((uint64_t)id + 1);
    table->used++;
}

// Walks the slots whose hash half equals that of `hash`; `equal` is an expression over `candidate`.
#define TABLE_FIND(table, hash, candidate, equal, found)                                                                                   \
    do {                                                                                                                                   \
        (found) = false;                                                                                                                   \
        if ((table)->slot_count == 0) break;                                                                                               \
        size_t mask_ = (table)->slot_count - 1;                                                                                            \
        for (size_t at_ = first_slot((hash), (table)->slot_count); (table)->slots[at_] != 0; at_ = (at_ + 1) & mask_) {                    \
            uint64_t slot_ = (table)->slots[at_];                                                                                          \
            if (SLOT_HASH(slot_) != SLOT_HASH(hash)) continue;                                                                             \
            (candidate) = (uint32_t)slot_ - 1;                                                                                             \
            if (equal) {                                                                                                                   \
                (found) = true;                                                                                                            \
                break;                                                                                                                     \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

static bool string_equals(const struct vr_strings *strings, uint32_t id, const char *bytes, size_t length) {
    uint64_t begin = strings->offset[id];
    return strings->offset[id + 1] - begin - 1 == length && memcmp(strings->bytes + begin, bytes, length) == 0;
}

static bool find_string(const struct vr_builder *builder, uint64_t hash, const char *bytes, size_t length, uint32_t *id) {
    uint32_t candidate = 0;
    bool found;
    TABLE_FIND(&builder->string_table, hash, candidate, string_equals(&builder->strings, candidate, bytes, length), found);
    if (found) *id = candidate;
    return found;
}

bool vr_builder_find_string(const struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id) {
    return find_string(builder, vr_hash_bytes(builder->seed, bytes, length), bytes, length, id);
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
    VR_TRY(table_reserve(builder, &builder->string_table));
    memcpy(strings->bytes + begin, bytes, length);
    strings->bytes[begin + length] = '\0';
    strings->offset[strings->count] = begin;
    strings->offset[strings->count + 1] = begin + length + 1;
    table_insert(&builder->string_table, hash, strings->count);
    *id = strings->count++;
    return VRAM_OK;
}

enum vram_status vr_builder_string(struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id) {
    uint64_t hash = vr_hash_bytes(builder->seed, bytes, length);
    if (find_string(builder, hash, bytes, length, id)) return VRAM_OK;
    return add_string(builder, hash, bytes, length, id);
}

enum vram_status vr_builder_frame(struct vr_builder *builder, uint32_t name, uint32_t filename, int64_t line, uint32_t *id) {
    struct vr_frames *frames = &builder->frames;
    uint64_t hash = vr_mix64(vr_hash_step(vr_hash_step(builder->seed, ((uint64_t)name << 32) | filename), (uint64_t)line));
    uint32_t candidate = 0;
    bool found;
    TABLE_FIND(&builder->frame_table, hash, candidate,
               frames->name[candidate] == name && frames->filename[candidate] == filename && frames->line[candidate] == line, found);
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
    VR_TRY(table_reserve(builder, &builder->frame_table));
    frames->name[frames->count] = name;
    frames->filename[frames->count] = filename;
    frames->line[frames->count] = line;
    table_insert(&builder->frame_table, hash, frames->count);
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
    uint64_t hash = vr_hash_bytes(builder->seed, frames, count * sizeof *frames);
    uint32_t candidate = 0;
    bool found;
    TABLE_FIND(&builder->stack_table, hash, candidate, stack_equals(stacks, candidate, frames, count), found);
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
    VR_TRY(table_reserve(builder, &builder->stack_table));
    memcpy(stacks->frame + begin, frames, count * sizeof *frames);
    stacks->offset[stacks->count + 1] = begin + count;
    table_insert(&builder->stack_table, hash, stacks->count);
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
    // Where the system lays out addresses at random, the seed is as well; ids do not depend on it.
    builder->seed = vr_mix64((uint64_t)(uintptr_t)builder ^ ((uint64_t)(uintptr_t)&vr_builder_init << 20));
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
    free(builder->string_table.slots);
    free(builder->frame_table.slots);
    free(builder->stack_table.slots);
    memset(builder, 0, sizeof *builder);
}

void vr_builder_finish(struct vr_builder *builder, struct vr_model *model) {
    model->strings = builder->strings;
    model->frames = builder->frames;
    model->stacks = builder->stacks;
    memset(&builder->strings, 0, sizeof builder->strings);
    memset(&builder->frames, 0, sizeof builder->frames);
    memset(&builder->stacks, 0, sizeof builder->stacks);
    vr_builder_release(builder);
}

bool vr_utf8_valid(const char *bytes, size_t length) {
    uint64_t word;
    // Nearly everything is ASCII.
    for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        if (word & 0x8080808080808080u) break;
    }
    while (length != 0) {
        uint32_t code;
        size_t taken = vr_utf8_decode(bytes, length, &code);
        if (code == VR_UTF8_MALFORMED) return false;
        bytes += taken;
        length -= taken;
    }
    return true;
}
