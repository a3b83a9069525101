// builder.h: fills the interned tables of a model: distinct strings, frames and stacks, each found by hash.
//
// Whoever makes a model (a reader of files, the allocator's snapshot) makes one builder, asks it for ids, and moves the tables
// into the model at the end. A builder has a memory budget, so that a stranger's file cannot grow tables beyond a few times
// its own size; whoever needs none leaves the limit at UINT64_MAX. One thread at a time.
#ifndef VR_MODEL_BUILDER_H
#define VR_MODEL_BUILDER_H

#include "base/hash.h"
#include "model/model.h"

// How many bytes of tables may be held. used_bytes counts capacities, not only what is filled.
struct vr_budget {
    uint64_t used_bytes;
    uint64_t limit_bytes;
    bool capped;  // by what reading may take at most
    double ahead; // what is said to be the length of the whole input, in lengths of what has come in; 0: not known, or too early to tell
};

// Takes count * item_bytes from the budget. LIMIT when it does not suffice; nothing is taken then.
enum vram_status vr_budget_charge(struct vr_budget *budget, size_t count, size_t item_bytes);
// The capacity to grow to from `capacity` for `needed` items: doubles while small, by an eighth when large, so that little is
// unused (large arrays move by remapping, not by copying).
size_t vr_budget_next_capacity(size_t capacity, size_t needed);
// How many rows a table will have at the end of the input that has `needed` now, if it goes on as it began; `needed` where not known. At
// most about 16 times as many: whoever says how long the input is may be wrong.
size_t vr_budget_expected(const struct vr_budget *budget, size_t needed);
// Grows *items (items of item_bytes each) so that *capacity >= needed. LIMIT, NO_HOST_MEMORY; all untouched on failure.
enum vram_status vr_budget_grow(struct vr_budget *budget, void **items, size_t *capacity, size_t needed, size_t item_bytes);

struct vr_builder {
    struct vr_budget budget;
    struct vr_strings strings;
    size_t string_bytes_capacity;
    size_t string_capacity;
    struct vr_hash_index string_index;
    struct vr_frames frames;
    size_t frame_capacity;
    struct vr_hash_index frame_index;
    struct vr_stacks stacks;
    size_t stack_frame_capacity;
    size_t stack_capacity;
    struct vr_hash_index stack_index;
};

// An empty builder with the empty string and the empty stack at id 0. limit_bytes: the budget; UINT64_MAX for none. On failure nothing
// is held. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_builder_init(struct vr_builder *builder, uint64_t limit_bytes);
// Frees everything; a zeroed builder is fine.
void vr_builder_release(struct vr_builder *builder);

// The id of the string of `length` bytes (any bytes, NULs included; must be UTF-8, see vr_utf8_valid). The bytes are copied.
// NO_HOST_MEMORY, LIMIT (budget, or 2^32 strings).
enum vram_status vr_builder_string(struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id);
// The same of bytes that may not be UTF-8: BAD_INPUT then.
enum vram_status vr_builder_text(struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id);
// Room for so many strings of so many bytes in all, their ends included. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_builder_expect_strings(struct vr_builder *builder, size_t count, size_t bytes);
// The id of the string if it is there. False when not.
bool vr_builder_find_string(const struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id);
// The id of a frame; name and filename are string ids. Frame ids begin at 0.
enum vram_status vr_builder_frame(struct vr_builder *builder, uint32_t name, uint32_t filename, int64_t line, uint32_t *id);
// The id of the stack of `count` frame ids, innermost first; 0 for none (frames may be NULL then).
enum vram_status vr_builder_stack(struct vr_builder *builder, const uint32_t *frames, size_t count, uint32_t *id);

// Every string, frame and stack is where its id says, found by what it holds, and there once; the budget is not overdrawn.
bool vr_builder_check(const struct vr_builder *builder);

// Moves strings, frames and stacks into *model (whose own must be empty) and releases the rest.
void vr_builder_finish(struct vr_builder *builder, struct vr_model *model);

// Whether the bytes are UTF-8. Surrogates in three bytes are let through: Python writes them so.
bool vr_utf8_valid(const char *bytes, size_t length);

#endif
