// pickle_vm.h: the machine that every reader drives. Values are pushed, and lists and dictionaries are made of what lies above a mark, as
// pickle does it; a JSON reader calls the same operations.
//
// A dictionary that is recognised by its keys (an event, a frame, a segment, a block...) becomes a row of a table as soon as it is
// complete, and a list of frames a stack id, so that what is held while reading is little more than the model itself. A container that the
// memo refers to lives in its memo slot, and the stack then holds a reference to the slot.
#ifndef VR_SNAPSHOT_PICKLE_VM_H
#define VR_SNAPSHOT_PICKLE_VM_H

#include "base/hash.h"
#include "model/columns.h"
#include "snapshot/value.h"
#include "snapshot/vocabulary.h"

// Items of one batch: Python's pickler writes so many per APPENDS or SETITEMS, so fewer mean that the container is complete.
enum { VR_BATCH = 1000 };

// The items of a list, or keys and values of a dictionary by turns.
struct vr_node {
    uint64_t *items;
    size_t count;
    size_t capacity;
    bool busy; // being read: must neither be forgotten nor read again (the data may contain itself)
    enum vr_items items_of;
};

// In place of a kept value: nothing is to be kept.
#define VR_KEPT_CANCELLED UINT32_MAX

// A key that no column holds, or not as the file has it (struct vr_extra), of a row of this machine's tables.
struct vr_kept {
    uint64_t row;
    uint32_t key, value; // string ids
    uint32_t order;      // the later counts
    uint8_t owner;       // enum vr_owner
};

// The `history` of a block.
struct vr_former {
    uint64_t block; // row
    uint64_t list;  // the value
};

struct vr_machine {
    struct vr_builder builder;
    struct vram_error *error;

    uint64_t *stack;
    size_t depth, stack_capacity;
    size_t *marks; // depths
    size_t mark_count, mark_capacity;
    bool skipping; // inside the value of a top-level key that no one reads: nothing is taken for a row, and what would be too much is not
                   // kept
    uint64_t *memo;
    size_t memo_size, memo_capacity; // slots; unset ones are 0
    size_t memo_used;
    uint64_t memo_generation; // how often a slot was given another value
    uint64_t *shared;         // containers that DUP made a second reference to
    size_t shared_count, shared_capacity;
    struct vr_node *nodes;
    size_t node_count, node_capacity;
    bool pairs_are_lists; // the input has no pairs: lists of two numbers stand for them
    struct vr_kept *kept;
    size_t kept_count, kept_capacity;
    size_t kept_sorted;          // so many are in order, each key of a row once
    uint32_t kept_order;         // of the next
    enum vr_loss loss;           // what of the file the model does not say, the first; a writer refuses then
    uint32_t lost_key;           // of what was lost; 0: it has no name
    bool kept_known;             // a key that has a column is among them
    struct vr_map kept_of_frame; // frame -> 1 + number of its first entry in `kept`
    uint64_t text_bytes;         // of text made of what is kept
    uint64_t *wide;              // numbers that no payload can hold
    size_t wide_count, wide_capacity;

    struct vr_history events; // of all devices, in file order
    size_t event_capacity, event_held;
    struct vr_segments segments; // first_block is not used
    uint64_t *segment_blocks;    // the value of each segment's `blocks`
    size_t segment_capacity, segment_blocks_capacity;
    struct vr_blocks blocks;
    size_t block_capacity;
    struct vr_tenant *tenants; // `block` is not used
    size_t tenant_count, tenant_capacity;
    struct vr_former *formers;
    size_t former_count, former_capacity;
    struct vr_annotation *annotations;
    size_t annotation_count, annotation_capacity;
};

// *error is filled when an operation fails, with no offset (the reader knows it). NO_HOST_MEMORY, LIMIT; nothing is held then.
enum vram_status vr_machine_init(struct vr_machine *machine, struct vram_error *error, uint64_t limit_bytes);
// Frees everything.
void vr_machine_release(struct vr_machine *machine);

// All operations: BAD_INPUT for what the input must not do, LIMIT, NO_HOST_MEMORY.

VR_NOINLINE enum vram_status vr_machine_grow_stack(struct vr_machine *machine);

VR_INLINE enum vram_status vr_machine_push(struct vr_machine *machine, uint64_t value) {
    if (VR_UNLIKELY(machine->depth == machine->stack_capacity)) VR_TRY(vr_machine_grow_stack(machine));
    machine->stack[machine->depth++] = value;
    return VRAM_OK;
}

enum vram_status vr_machine_push_signed(struct vr_machine *machine, int64_t number);
enum vram_status vr_machine_push_unsigned(struct vr_machine *machine, uint64_t number);
enum vram_status vr_machine_push_float(struct vr_machine *machine, double number);
// A whole number that 64 bits do not hold, by its digits: no column takes it, and what is kept keeps each of them.
enum vram_status vr_machine_push_digits(struct vr_machine *machine, const char *text, size_t length);
// Must be UTF-8: BAD_INPUT.
enum vram_status vr_machine_push_string(struct vr_machine *machine, const char *bytes, size_t length);

enum vram_status vr_machine_mark(struct vr_machine *machine);
// The container below the mark takes what is above it; the mark and the items go.
enum vram_status vr_machine_appends(struct vr_machine *machine);
enum vram_status vr_machine_set_items(struct vr_machine *machine);
// The same with one item (or key and value) and no mark.
enum vram_status vr_machine_append(struct vr_machine *machine);
enum vram_status vr_machine_set_item(struct vr_machine *machine);
// A container of what is above the mark.
enum vram_status vr_machine_list(struct vr_machine *machine);
enum vram_status vr_machine_dict(struct vr_machine *machine);
enum vram_status vr_machine_tuple(struct vr_machine *machine);
enum vram_status vr_machine_frozenset(struct vr_machine *machine);
// A tuple of the uppermost `count` values, without a mark.
enum vram_status vr_machine_tuple_of(struct vr_machine *machine, size_t count);
enum vram_status vr_machine_pop(struct vr_machine *machine);
enum vram_status vr_machine_pop_mark(struct vr_machine *machine);
enum vram_status vr_machine_dup(struct vr_machine *machine);
enum vram_status vr_machine_put(struct vr_machine *machine, size_t index);
enum vram_status vr_machine_memoize(struct vr_machine *machine);
enum vram_status vr_machine_get(struct vr_machine *machine, size_t index);

// The place a reference stands for, or NULL where `value` is none.
VR_INLINE uint64_t *vr_machine_place(struct vr_machine *machine, uint64_t value) {
    enum vr_tag tag = vr_tag_of(value);
    if (tag == VR_TAG_MEMO) return &machine->memo[vr_payload(value)];
    if (tag == VR_TAG_SHARED) return &machine->shared[vr_payload(value)];
    return NULL;
}
// What `value` stands for, without references.
VR_INLINE uint64_t vr_machine_resolve(struct vr_machine *machine, uint64_t value) {
    const uint64_t *place = vr_machine_place(machine, value);
    return place == NULL ? value : *place & ~VR_USED;
}

// What a container of items is; LIST for what is none.
VR_INLINE enum vr_items vr_machine_items_of(const struct vr_machine *machine, uint64_t resolved) {
    if (vr_tag_of(resolved) == VR_TAG_NO_ITEMS) return (enum vr_items)vr_payload(resolved);
    if (vr_tag_of(resolved) == VR_TAG_PAIR) return VR_ITEMS_TUPLE;
    return vr_tag_of(resolved) == VR_TAG_LIST ? machine->nodes[vr_payload(resolved)].items_of : VR_ITEMS_LIST;
}
// The model will not say all of the file: `key` (0: no name) is where. The first loss counts.
VR_INLINE void vr_machine_lose(struct vr_machine *machine, enum vr_loss loss, uint32_t key) {
    if (machine->loss != VR_LOSS_NONE) return;
    machine->loss = loss;
    machine->lost_key = key;
}
// Rows do not say whether they were those of a list: a loss, where the value of the key was none.
void vr_machine_note_items(struct vr_machine *machine, const char *key, uint64_t resolved);
// Items of a list, tuple or set: a pointer and a count; 0 items for the empty list. False when the resolved value is no list of values.
bool vr_machine_items(const struct vr_machine *machine, uint64_t resolved, const uint64_t **items, size_t *count);
// A dictionary's keys and values by turns, counted in pairs. False when it is no dictionary.
VR_INLINE bool vr_machine_pairs(const struct vr_machine *machine, uint64_t resolved, const uint64_t **pairs, size_t *count) {
    if (vr_tag_of(resolved) == VR_TAG_NO_KEYS) {
        *pairs = NULL;
        *count = 0;
        return true;
    }
    if (vr_tag_of(resolved) != VR_TAG_DICT) return false;
    *pairs = machine->nodes[vr_payload(resolved)].items;
    *count = machine->nodes[vr_payload(resolved)].count / 2;
    return true;
}
// Forgets the items behind a value that no one will read.
void vr_machine_drop(struct vr_machine *machine, uint64_t value);
// The string keys of the dictionary `resolved`, each once, in the order of their first appearance, with their last values. Free *unique.
// Other keys count as lost. NO_HOST_MEMORY.
enum vram_status vr_machine_last_values(struct vr_machine *machine, uint64_t resolved, uint64_t **unique, size_t *unique_count);
// Frees the items of a container that nothing refers to.
void vr_machine_release_node(struct vr_machine *machine, size_t index);

// The number as two's complement, and whether it is negative. False for what is no whole number. True and false are 1 and 0.
bool vr_machine_number(const struct vr_machine *machine, uint64_t resolved, uint64_t *number, bool *negative);
// What a value is, for messages.
const char *vr_machine_what(const struct vr_machine *machine, uint64_t value);
double vr_machine_float(const struct vr_machine *machine, uint64_t resolved);

// Says in the machine's error that `status` (not OK) came up at `offset` of the input; the text is there already, or is the status's own.
void vr_machine_locate(struct vr_machine *machine, enum vram_status status, uint64_t offset);

// As vr_budget_grow(), for an array of the machine.
#define VR_MACHINE_GROW(machine, items, capacity, needed, status)                                                                          \
    do {                                                                                                                                   \
        void *items_ = (machine)->items;                                                                                                   \
        status = vr_budget_grow(&(machine)->builder.budget, &items_, &(capacity), (needed), sizeof *(machine)->items);                     \
        (machine)->items = items_;                                                                                                         \
    } while (0)

// Fails with the message and no offset.
#define VR_MACHINE_FAIL(machine, status, ...) vr_fail((machine)->error, (status), VRAM_NO_OFFSET, __VA_ARGS__)

#endif
