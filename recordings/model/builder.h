// builder.h: fills a model's interned tables: distinct strings, frames and stacks, found by hash.
//
// To make a model, a file reader or the allocator's snapshot creates a builder, asks it for ids, and finally moves its tables into the
// model. A builder has a memory budget, so that an untrusted file cannot grow the tables beyond a few times its own size; set the limit to
// UINT64_MAX for no budget. Use a builder from one thread at a time.
#ifndef VR_MODEL_BUILDER_H
#define VR_MODEL_BUILDER_H

#include "base/hash.h"
#include "model/model.h"

// A limit for the bytes of tables. used_bytes counts capacities, including unused room.
struct vr_budget {
    uint64_t used_bytes;
    uint64_t limit_bytes;
    bool capped;  // the limit comes from vram_input's most_memory_bytes
    double ahead; // stated length of the whole input, in multiples of what has been read; 0: unknown, or too early to say
};

// Charges count * item_bytes to the budget. Returns LIMIT, charging nothing, if the budget does not suffice.
enum vram_status vr_budget_charge(struct vr_budget *budget, size_t count, size_t item_bytes);
// Returns the capacity to grow to from `capacity` for `needed` items: twice as much if small, an eighth more if large, to waste little
// (large arrays grow by remapping instead of copying).
size_t vr_budget_next_capacity(size_t capacity, size_t needed);
// Extrapolates how many rows a table with `needed` rows will have at the end of the input; `needed` if unknown. At most about 16 times
// `needed`, because the stated length of the input may be wrong.
size_t vr_budget_expected(const struct vr_budget *budget, size_t needed);
// Grows *items (of item_bytes each) so that *capacity >= needed. LIMIT, NO_HOST_MEMORY; nothing is changed on failure.
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

// Initializes a builder with the empty string and the empty stack at id 0. limit_bytes is the budget; UINT64_MAX: no limit. The builder
// owns nothing on failure. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_builder_init(struct vr_builder *builder, uint64_t limit_bytes);
// Frees everything. Accepts a zeroed builder.
void vr_builder_release(struct vr_builder *builder);

// Sets *id to that of the string of `length` bytes (NULs allowed; must be UTF-8, see vr_utf8_valid). Copies the bytes. NO_HOST_MEMORY,
// LIMIT (budget, or 2^32 strings).
enum vram_status vr_builder_string(struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id);
// Like vr_builder_string(), but checks the encoding: BAD_INPUT if the bytes are not UTF-8.
enum vram_status vr_builder_text(struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id);
// Makes room for `count` strings of `bytes` bytes in total, including terminators. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_builder_expect_strings(struct vr_builder *builder, size_t count, size_t bytes);
// Finds the id of a string. Returns false if the string is not in the table.
bool vr_builder_find_string(const struct vr_builder *builder, const char *bytes, size_t length, uint32_t *id);
// Sets *id to that of a frame; name and filename are string ids. Frame ids begin at 0.
enum vram_status vr_builder_frame(struct vr_builder *builder, uint32_t name, uint32_t filename, int64_t line, uint32_t *id);
// Sets *id to that of the stack of `count` frame ids, innermost first; 0 for an empty stack (frames may be NULL then).
enum vram_status vr_builder_stack(struct vr_builder *builder, const uint32_t *frames, size_t count, uint32_t *id);

// Returns whether every string, frame and stack is at its id, is found by its contents, is unique, and the budget is not overdrawn.
bool vr_builder_check(const struct vr_builder *builder);

// Moves strings, frames and stacks into *model (whose tables must be empty) and releases the rest.
void vr_builder_finish(struct vr_builder *builder, struct vr_model *model);

// Returns whether the bytes are UTF-8. Accepts three-byte surrogates, because Python writes them.
bool vr_utf8_valid(const char *bytes, size_t length);

#endif
