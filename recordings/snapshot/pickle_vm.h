// pickle_vm.h: the machine that all readers use. Values are pushed, and lists and dictionaries are made of the values above a mark, as in
// pickle; the JSON reader calls the same operations.
//
// A dictionary recognized by its keys (an event, a frame, a segment, a block...) becomes a table row as soon as it is complete, and a list
// of frames becomes a stack id. Reading therefore needs little more memory than the model. A container in the memo lives in its memo slot;
// the stack then has a reference to the slot.
#ifndef VR_SNAPSHOT_PICKLE_VM_H
#define VR_SNAPSHOT_PICKLE_VM_H

#include "base/hash.h"
#include "model/columns.h"
#include "snapshot/value.h"
#include "snapshot/vocabulary.h"

// Items of a batch: Python's pickler puts this many into each APPENDS or SETITEMS, so a smaller batch completes its container.
enum { VR_BATCH = 1000 };

// The items of a list, or the alternating keys and values of a dictionary.
struct vr_node {
    uint64_t *items;
    size_t count;
    size_t capacity;
    bool busy; // being read: must neither be dropped nor read again (the data may contain itself)
    enum vr_items items_of;
};

// Marks a kept value as cancelled.
#define VR_KEPT_CANCELLED UINT32_MAX

// A key without a column, or with a value that its column cannot express (struct vr_extra), on a row of this machine's tables.
struct vr_kept {
    uint64_t row;
    uint32_t key, value; // string ids
    uint32_t order;      // a later entry overrides
    uint8_t owner;       // enum vr_owner
};

// The `history` of a block.
struct vr_former {
    uint64_t block; // row of the block
    uint64_t list;  // value of its `history`
};

struct vr_machine {
    struct vr_builder builder;
    struct vram_error *error;

    uint64_t *stack;
    size_t depth, stack_capacity;
    size_t *marks; // stack depths
    size_t mark_count, mark_capacity;
    bool skipping; // inside the value of a top-level key that is not read: no rows are made, and too large values are dropped
    uint64_t *memo;
    size_t memo_size, memo_capacity; // slots; unset ones are 0
    size_t memo_used;
    uint64_t memo_generation; // number of times a slot was overwritten
    uint64_t *shared;         // containers with a second reference, made by DUP
    size_t shared_count, shared_capacity;
    struct vr_node *nodes;
    size_t node_count, node_capacity;
    bool pairs_are_lists; // the input has no pairs; lists of two numbers are read as pairs
    struct vr_kept *kept;
    size_t kept_count, kept_capacity;
    size_t kept_sorted;          // number of sorted entries, in which each key of a row is unique
    uint32_t kept_order;         // of the next entry
    enum vr_loss loss;           // the first loss of the model; writers refuse if there is one
    uint32_t lost_key;           // string id of the key with the lost value; 0: it has no name
    bool kept_known;             // some entry has a key that also has a column
    struct vr_map kept_of_frame; // frame -> index of its first entry in `kept`, plus 1
    uint64_t text_bytes;         // bytes of text made of kept values
    uint64_t *wide;              // numbers that do not fit in a payload
    size_t wide_count, wide_capacity;

    struct vr_history events; // of all devices, in file order
    size_t event_capacity, event_held;
    struct vr_segments segments; // without first_block
    uint64_t *segment_blocks;    // the value of each segment's `blocks`
    size_t segment_capacity, segment_blocks_capacity;
    struct vr_blocks blocks;
    size_t block_capacity;
    struct vr_tenant *tenants; // without `block`
    size_t tenant_count, tenant_capacity;
    struct vr_former *formers;
    size_t former_count, former_capacity;
    struct vr_annotation *annotations;
    size_t annotation_count, annotation_capacity;
};

// Initializes a machine. Failing operations fill *error without an offset, which only the reader knows. NO_HOST_MEMORY, LIMIT; nothing is
// then allocated.
enum vram_status vr_machine_init(struct vr_machine *machine, struct vram_error *error, uint64_t limit_bytes);
// Frees everything.
void vr_machine_release(struct vr_machine *machine);

// All operations return BAD_INPUT for invalid input, LIMIT, NO_HOST_MEMORY.

VR_NOINLINE enum vram_status vr_machine_grow_stack(struct vr_machine *machine);

VR_INLINE enum vram_status vr_machine_push(struct vr_machine *machine, uint64_t value) {
    if (VR_UNLIKELY(machine->depth == machine->stack_capacity)) VR_TRY(vr_machine_grow_stack(machine));
    machine->stack[machine->depth++] = value;
    return VRAM_OK;
}

enum vram_status vr_machine_push_signed(struct vr_machine *machine, int64_t number);
enum vram_status vr_machine_push_unsigned(struct vr_machine *machine, uint64_t number);
enum vram_status vr_machine_push_float(struct vr_machine *machine, double number);
// Pushes an integer of more than 64 bits by its digits: no column can hold it, but extras keep every digit.
enum vram_status vr_machine_push_digits(struct vr_machine *machine, const char *text, size_t length);
// BAD_INPUT if the bytes are not UTF-8.
enum vram_status vr_machine_push_string(struct vr_machine *machine, const char *bytes, size_t length);

enum vram_status vr_machine_mark(struct vr_machine *machine);
// Add the values above the mark to the container below it, and remove the mark.
enum vram_status vr_machine_appends(struct vr_machine *machine);
enum vram_status vr_machine_set_items(struct vr_machine *machine);
// Add one item, or one key and value, without a mark.
enum vram_status vr_machine_append(struct vr_machine *machine);
enum vram_status vr_machine_set_item(struct vr_machine *machine);
// Make a container of the values above the mark.
enum vram_status vr_machine_list(struct vr_machine *machine);
enum vram_status vr_machine_dict(struct vr_machine *machine);
enum vram_status vr_machine_tuple(struct vr_machine *machine);
enum vram_status vr_machine_frozenset(struct vr_machine *machine);
// Makes a tuple of the topmost `count` values, without a mark.
enum vram_status vr_machine_tuple_of(struct vr_machine *machine, size_t count);
enum vram_status vr_machine_pop(struct vr_machine *machine);
enum vram_status vr_machine_pop_mark(struct vr_machine *machine);
enum vram_status vr_machine_dup(struct vr_machine *machine);
enum vram_status vr_machine_put(struct vr_machine *machine, size_t index);
enum vram_status vr_machine_memoize(struct vr_machine *machine);
enum vram_status vr_machine_get(struct vr_machine *machine, size_t index);

// Returns the slot that a reference refers to, or NULL if `value` is not a reference.
VR_INLINE uint64_t *vr_machine_place(struct vr_machine *machine, uint64_t value) {
    enum vr_tag tag = vr_tag_of(value);
    if (tag == VR_TAG_MEMO) return &machine->memo[vr_payload(value)];
    if (tag == VR_TAG_SHARED) return &machine->shared[vr_payload(value)];
    return NULL;
}
// Returns the value itself, following a reference.
VR_INLINE uint64_t vr_machine_resolve(struct vr_machine *machine, uint64_t value) {
    const uint64_t *place = vr_machine_place(machine, value);
    return place == NULL ? value : *place & ~VR_USED;
}

// Returns the kind of a container of items; LIST for other values.
VR_INLINE enum vr_items vr_machine_items_of(const struct vr_machine *machine, uint64_t resolved) {
    if (vr_tag_of(resolved) == VR_TAG_NO_ITEMS) return (enum vr_items)vr_payload(resolved);
    if (vr_tag_of(resolved) == VR_TAG_PAIR) return VR_ITEMS_TUPLE;
    return vr_tag_of(resolved) == VR_TAG_LIST ? machine->nodes[vr_payload(resolved)].items_of : VR_ITEMS_LIST;
}
// Records that the model loses the value of `key` (0: no name). Only the first loss counts.
VR_INLINE void vr_machine_lose(struct vr_machine *machine, enum vr_loss loss, uint32_t key) {
    if (machine->loss != VR_LOSS_NONE) return;
    machine->loss = loss;
    machine->lost_key = key;
}
// Records a loss if the value of `key` is a tuple or a set, because rows do not record the kind of their container.
void vr_machine_note_items(struct vr_machine *machine, const char *key, uint64_t resolved);
// Returns the items of a list, tuple or set by pointer and count; 0 items for the empty list. Returns false if the resolved value is not a
// list of values.
bool vr_machine_items(const struct vr_machine *machine, uint64_t resolved, const uint64_t **items, size_t *count);
// Returns a dictionary's alternating keys and values, counted in pairs. Returns false if the value is not a dictionary.
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
// Frees the items of a value that is not needed.
void vr_machine_drop(struct vr_machine *machine, uint64_t value);
// Collects the string keys of the dictionary `resolved`, each once, in order of first appearance, with their last values. The caller frees
// *unique. Other keys are recorded as lost. NO_HOST_MEMORY.
enum vram_status vr_machine_last_values(struct vr_machine *machine, uint64_t resolved, uint64_t **unique, size_t *unique_count);
// Frees the items of a container without references.
void vr_machine_release_node(struct vr_machine *machine, size_t index);

// Returns the number as two's complement, and whether it is negative. Returns false if the value is not an integer. True and false are 1
// and 0.
bool vr_machine_number(const struct vr_machine *machine, uint64_t resolved, uint64_t *number, bool *negative);
// Describes a value for messages.
const char *vr_machine_what(const struct vr_machine *machine, uint64_t value);
double vr_machine_float(const struct vr_machine *machine, uint64_t resolved);

// Adds to the machine's error that `status` (not OK) occurred at `offset` of the input; keeps its text, or uses the status's own.
void vr_machine_locate(struct vr_machine *machine, enum vram_status status, uint64_t offset);

// Like vr_budget_grow(), for an array of the machine.
#define VR_MACHINE_GROW(machine, items, capacity, needed, status)                                                                          \
    do {                                                                                                                                   \
        void *items_ = (machine)->items;                                                                                                   \
        status = vr_budget_grow(&(machine)->builder.budget, &items_, &(capacity), (needed), sizeof *(machine)->items);                     \
        (machine)->items = items_;                                                                                                         \
    } while (0)

// Fails with the message and no offset.
#define VR_MACHINE_FAIL(machine, status, ...) vr_fail((machine)->error, (status), VRAM_NO_OFFSET, __VA_ARGS__)

#endif
