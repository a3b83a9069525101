// The machine that builds values, with a stack, marks and a memo. It calls nothing.
#include "snapshot/pickle_vm.h"

#include <math.h>

#include "snapshot/schema.h"

static enum vram_status intern_words(struct vr_builder *builder) {
    enum { FIRST_STRINGS = 256, FIRST_STRING_BYTES = 8192 }; // enough for the names of a small file
    VR_TRY(vr_builder_expect_strings(builder, FIRST_STRINGS, FIRST_STRING_BYTES));
    for (enum vr_word word = VR_WORD_FIRST_ACTION; word < VR_WORD_COUNT; word++) {
        uint32_t id;
        VR_TRY(vr_builder_string(builder, vr_word_text(word), strlen(vr_word_text(word)), &id));
        assert(id == word);
    }
    return VRAM_OK;
}

enum vram_status vr_machine_init(struct vr_machine *machine, struct vram_error *error, uint64_t limit_bytes) {
    memset(machine, 0, sizeof *machine);
    machine->error = error;
    VR_TRY(vr_builder_init(&machine->builder, limit_bytes));
    enum vram_status status = intern_words(&machine->builder);
    if (status == VRAM_OK) status = vr_machine_grow_stack(machine);
    if (status != VRAM_OK) vr_machine_release(machine);
    return status;
}

void vr_machine_release(struct vr_machine *machine) {
    vr_builder_release(&machine->builder);
    free(machine->stack);
    free(machine->marks);
    free(machine->memo);
    free(machine->shared);
    for (size_t i = 0; i < machine->node_count; i++) free(machine->nodes[i].items);
    free(machine->nodes);
    free(machine->wide);
    free(machine->kept);
    vr_map_release(&machine->kept_of_frame);
    free(machine->formers);
    vr_columns_release(&vr_history_columns, &machine->events);
    vr_columns_release(&vr_segment_columns, &machine->segments);
    free(machine->segment_blocks);
    vr_columns_release(&vr_block_columns, &machine->blocks);
    free(machine->tenants);
    free(machine->annotations);
    memset(machine, 0, sizeof *machine);
}

// Returns the number of values above the topmost mark.
static size_t above_mark(const struct vr_machine *machine) {
    return machine->depth - (machine->mark_count == 0 ? 0 : machine->marks[machine->mark_count - 1]);
}

// Returns whether memory is too short to keep values that are not read: half of the budget is used.
static bool is_too_much(const struct vr_machine *machine) {
    return machine->builder.budget.used_bytes > machine->builder.budget.limit_bytes / 2;
}

// Discards the items read so far of a long list that is not read. Returns false if there is no such list.
static bool shed_values(struct vr_machine *machine) {
    enum { SHED_FROM = 1 << 16 }; // longer than any stack of frames
    if (!machine->skipping || !is_too_much(machine) || above_mark(machine) < SHED_FROM || above_mark(machine) == machine->depth)
        return false;
    uint64_t *slot = &machine->stack[machine->marks[machine->mark_count - 1] - 1], *place = vr_machine_place(machine, *slot);
    uint64_t *list = place == NULL ? slot : place;
    if (vr_tag_of(*list) != VR_TAG_NO_ITEMS && vr_tag_of(*list) != VR_TAG_OPAQUE) return false;
    *list = vr_value(VR_TAG_OPAQUE, 0);
    machine->depth = machine->marks[machine->mark_count - 1];
    return true;
}

enum vram_status vr_machine_grow_stack(struct vr_machine *machine) {
    enum vram_status status;
    if (shed_values(machine)) return VRAM_OK;
    VR_MACHINE_GROW(machine, stack, machine->stack_capacity, machine->depth + 1, status);
    return status;
}

void vr_machine_locate(struct vr_machine *machine, enum vram_status status, uint64_t offset) {
    if (machine->error->status == status) {
        machine->error->offset = offset;
        return;
    }
    const bool capped = machine->builder.budget.capped;
    const char *text = status != VRAM_LIMIT ? vram_status_text(status)
                       : capped             ? "it needs more memory than allowed"
                                            : "the file unpacks to far more than its size, which no real recording does";
    (void)vr_fail(machine->error, status, offset, "%s", text);
}

static enum vram_status too_few(const struct vr_machine *machine) {
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the data is damaged: an operation needs more values than the stack has");
}

static enum vram_status no_mark(const struct vr_machine *machine) {
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the data is damaged: an operation needs a mark that the stack lacks");
}

// ---- numbers and strings

static enum vram_status push_wide(struct vr_machine *machine, enum vr_tag tag, uint64_t bits) {
    enum vram_status status;
    VR_MACHINE_GROW(machine, wide, machine->wide_capacity, machine->wide_count + 1, status);
    VR_TRY(status);
    machine->wide[machine->wide_count] = bits;
    return vr_machine_push(machine, vr_value(tag, machine->wide_count++));
}

enum vram_status vr_machine_push_signed(struct vr_machine *machine, int64_t number) {
    if (vr_fits_int(number)) return vr_machine_push(machine, vr_value(VR_TAG_INT, (uint64_t)number & VR_PAYLOAD_MASK));
    return push_wide(machine, VR_TAG_WIDE, (uint64_t)number);
}

enum vram_status vr_machine_push_unsigned(struct vr_machine *machine, uint64_t number) {
    if (number <= INT64_MAX) return vr_machine_push_signed(machine, (int64_t)number);
    return push_wide(machine, VR_TAG_UNSIGNED, number);
}

enum vram_status vr_machine_push_float(struct vr_machine *machine, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return push_wide(machine, VR_TAG_FLOAT, bits);
}

enum vram_status vr_machine_push_digits(struct vr_machine *machine, const char *text, size_t length) {
    uint32_t id;
    VR_TRY(vr_builder_string(&machine->builder, text, length, &id));
    return vr_machine_push(machine, vr_value(VR_TAG_JSON, id));
}

enum vram_status vr_machine_push_string(struct vr_machine *machine, const char *bytes, size_t length) {
    uint32_t id;
    const enum vram_status status = vr_builder_text(&machine->builder, bytes, length, &id);
    if (status == VRAM_BAD_INPUT) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the data is damaged: a string is not UTF-8");
    VR_TRY(status);
    return vr_machine_push(machine, vr_value(VR_TAG_STRING, id));
}

static enum vram_status new_node(struct vr_machine *machine, enum vr_tag tag, uint64_t *value) {
    enum vram_status status;
    VR_MACHINE_GROW(machine, nodes, machine->node_capacity, machine->node_count + 1, status);
    VR_TRY(status);
    memset(&machine->nodes[machine->node_count], 0, sizeof *machine->nodes);
    *value = vr_value(tag, machine->node_count++);
    return VRAM_OK;
}

static enum vram_status reserve_node(struct vr_machine *machine, struct vr_node *node, size_t more) {
    if (node->count + more <= node->capacity) return VRAM_OK;
    // Give a container that arrives in one piece exactly the room it needs.
    size_t wanted = node->count == 0 ? more : vr_budget_next_capacity(node->capacity, node->count + more);
    VR_TRY(vr_budget_charge(&machine->builder.budget, wanted - node->capacity, sizeof *node->items));
    uint64_t *grown = realloc(node->items, wanted * sizeof *grown);
    if (grown == NULL) return VRAM_NO_HOST_MEMORY;
    node->items = grown;
    node->capacity = wanted;
    return VRAM_OK;
}

// Returns whether the rows of `next` follow directly on those of `last`.
static bool continues_run(uint64_t last, uint64_t next) {
    return (last >> VR_PAYLOAD_BITS) == (next >> VR_PAYLOAD_BITS) && vr_first_row(last) + vr_row_count(last) == vr_first_row(next) &&
           vr_row_count(last) + vr_row_count(next) <= (uint64_t)1 << VR_RUN_BITS;
}

static enum vram_status add_items(struct vr_machine *machine, size_t index, const uint64_t *items, size_t count, bool skip) {
    machine->nodes[index].busy = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = items[i];
        if (!skip) VR_TRY(vr_schema_recognise(machine, VR_TAG_DICT, &value));
        uint64_t resolved = vr_machine_resolve(machine, value);
        enum vr_tag tag = vr_tag_of(resolved);
        if (vr_is_row(tag) || tag == VR_TAG_FRAME) value = resolved;
        struct vr_node *node = &machine->nodes[index];
        if (vr_is_row(tag) && node->count != 0 && continues_run(node->items[node->count - 1], value)) {
            node->items[node->count - 1] += vr_row_count(value) << VR_ROW_BITS;
            continue;
        }
        VR_TRY(reserve_node(machine, node, node->count == 0 && !vr_is_row(tag) ? count - i : 1));
        node->items[node->count++] = value;
    }
    machine->nodes[index].busy = false;
    return VRAM_OK;
}

static bool is_frame(struct vr_machine *machine, uint64_t value) { return vr_tag_of(vr_machine_resolve(machine, value)) == VR_TAG_FRAME; }

// Converts a complete list of frames. Returns false if an item is not a frame.
static bool gather_frames(struct vr_machine *machine, const uint64_t *items, size_t count, uint32_t *frames) {
    uint64_t others = 0;
    for (size_t i = 0; i < count; i++) {
        others |= items[i] ^ VR_VALUE(VR_TAG_FRAME, 0);
        frames[i] = (uint32_t)items[i];
    }
    if (others <= UINT32_MAX) return true;
    for (size_t i = 0; i < count; i++) {
        uint64_t resolved = vr_machine_resolve(machine, items[i]);
        if (vr_tag_of(resolved) != VR_TAG_FRAME) return false;
        frames[i] = (uint32_t)resolved;
    }
    return true;
}

static enum vram_status stack_to_list(struct vr_machine *machine, uint64_t *target) {
    const struct vr_stacks *stacks = &machine->builder.stacks;
    uint64_t begin = stacks->offset[vr_payload(*target)], end = stacks->offset[vr_payload(*target) + 1], list;
    VR_TRY(new_node(machine, VR_TAG_LIST, &list));
    struct vr_node *node = &machine->nodes[vr_payload(list)];
    VR_TRY(reserve_node(machine, node, (size_t)(end - begin)));
    for (uint64_t i = begin; i < end; i++) node->items[node->count++] = vr_value(VR_TAG_FRAME, stacks->frame[i]);
    *target = list;
    return VRAM_OK;
}

static enum vram_status append_to(struct vr_machine *machine, uint64_t *target, const uint64_t *items, size_t count, bool skip) {
    uint32_t frames[VR_BATCH];
    const enum vr_items items_of = vr_machine_items_of(machine, *target);
    switch (vr_tag_of(*target)) {
    case VR_TAG_OPAQUE: return VRAM_OK;
    case VR_TAG_NO_ITEMS:
        if (count == 0) return VRAM_OK;
        if (items_of == VR_ITEMS_LIST && count < VR_BATCH && is_frame(machine, items[0]) && gather_frames(machine, items, count, frames)) {
            uint32_t id;
            VR_TRY(vr_builder_stack(&machine->builder, frames, count, &id));
            *target = vr_value(VR_TAG_STACK, id);
            return VRAM_OK;
        }
        if (skip && is_too_much(machine)) {
            *target = vr_value(VR_TAG_OPAQUE, 0);
            return VRAM_OK;
        }
        VR_TRY(new_node(machine, VR_TAG_LIST, target));
        machine->nodes[vr_payload(*target)].items_of = items_of;
        break;
    case VR_TAG_STACK:
        if (count == 0) return VRAM_OK;
        if (*target & VR_USED) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "a list of frames is changed after its use");
        VR_TRY(stack_to_list(machine, target));
        break;
    case VR_TAG_LIST: break;
    default:
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the data is damaged: items are appended to %s", vr_tag_text(vr_tag_of(*target)));
    }
    return add_items(machine, (size_t)vr_payload(*target), items, count, skip);
}

static enum vram_status add_pairs(struct vr_machine *machine, size_t index, const uint64_t *pairs, size_t count) {
    struct vr_node *node = &machine->nodes[index];
    VR_TRY(reserve_node(machine, node, count * 2));
    if (count != 0) memcpy(node->items + node->count, pairs, count * 2 * sizeof *pairs);
    node->count += count * 2;
    return VRAM_OK;
}

static enum vram_status set_in(struct vr_machine *machine, uint64_t *target, const uint64_t *pairs, size_t count, bool skip) {
    enum vr_tag tag = vr_tag_of(*target);
    if (tag == VR_TAG_NO_KEYS && count != 0) {
        enum vr_tag kind = vr_schema_classify(pairs, count);
        // A single key may be the first of several.
        if (count > 1 && (kind == VR_TAG_FRAME || (kind != VR_TAG_DICT && !skip)))
            return vr_schema_store(machine, kind, pairs, count, target);
        if (skip && is_too_much(machine))
            *target = vr_value(VR_TAG_OPAQUE, 0);
        else
            VR_TRY(new_node(machine, VR_TAG_DICT, target));
        tag = vr_tag_of(*target);
    }
    if (tag == VR_TAG_DICT) return add_pairs(machine, (size_t)vr_payload(*target), pairs, count);
    if (tag == VR_TAG_FRAME || vr_is_row(tag)) return vr_schema_amend(machine, *target, pairs, count);
    if (tag == VR_TAG_OPAQUE || tag == VR_TAG_NO_KEYS) return VRAM_OK;
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the data is damaged: keys are set in %s", vr_tag_text(tag));
}

// Returns where the container in a stack slot is: in a memo slot, or in the stack slot itself.
static uint64_t *container_at(struct vr_machine *machine, size_t slot) {
    uint64_t *place = vr_machine_place(machine, machine->stack[slot]);
    return place == NULL ? &machine->stack[slot] : place;
}

static bool is_dict(struct vr_machine *machine, uint64_t value) {
    enum vr_tag tag = vr_tag_of(vr_machine_resolve(machine, value));
    return tag == VR_TAG_NO_KEYS || tag == VR_TAG_DICT;
}

// Returns the top-level key whose value is open. Keys and values alternate above the mark; above the value is its only item, which comes
// without a mark. With many keys, only the value itself is looked at.
enum { MOST_KEYS = 128 };
static uint64_t open_key(const struct vr_machine *machine) {
    const uint64_t *above = machine->stack + machine->marks[0];
    const size_t count = above_mark(machine);
    size_t key = 0;
    if (count > MOST_KEYS) return count % 2 == 0 ? above[count - 2] : 0;
    while (key + 3 < count && vr_tag_of(above[key + 2]) == VR_TAG_STRING) key += 2;
    return above[key];
}

// Returns whether the mark about to be set opens the value of a top-level key that is not read.
static bool opens_unread(struct vr_machine *machine) {
    if (machine->mark_count != 1 || machine->marks[0] != 1 || above_mark(machine) < 2) return false;
    const uint64_t key = open_key(machine);
    if (vr_tag_of(key) != VR_TAG_STRING || !is_dict(machine, machine->stack[0])) return false;
    return vr_payload(key) < VR_WORD_FIRST_TOP || vr_payload(key) > VR_WORD_LAST_TOP;
}

enum vram_status vr_machine_mark(struct vr_machine *machine) {
    enum vram_status status;
    if (VR_UNLIKELY(machine->mark_count == machine->mark_capacity)) {
        VR_MACHINE_GROW(machine, marks, machine->mark_capacity, machine->mark_count + 1, status);
        VR_TRY(status);
    }
    if (machine->mark_count == 1) machine->skipping = opens_unread(machine);
    machine->marks[machine->mark_count++] = machine->depth;
    return VRAM_OK;
}

// The values above a mark: their stack slots, and whether the mark was in a skipped value.
struct above {
    size_t begin;
    size_t count;
    bool skip;
};

// Removes the mark; the values above it stay readable above the new depth.
static enum vram_status take_mark(struct vr_machine *machine, struct above *above) {
    if (machine->mark_count == 0) return no_mark(machine);
    above->begin = machine->marks[--machine->mark_count];
    above->count = machine->depth - above->begin;
    above->skip = machine->skipping;
    machine->depth = above->begin;
    if (machine->mark_count <= 1) machine->skipping = false;
    return VRAM_OK;
}

enum vram_status vr_machine_appends(struct vr_machine *machine) {
    struct above above = {0};
    VR_TRY(take_mark(machine, &above));
    if (above_mark(machine) < 1) return too_few(machine);
    return append_to(machine, container_at(machine, above.begin - 1), machine->stack + above.begin, above.count, above.skip);
}

enum vram_status vr_machine_set_items(struct vr_machine *machine) {
    struct above above = {0};
    VR_TRY(take_mark(machine, &above));
    if (above_mark(machine) < 1 || above.count % 2 != 0) return too_few(machine);
    return set_in(machine, container_at(machine, above.begin - 1), machine->stack + above.begin, above.count / 2, above.skip);
}

enum vram_status vr_machine_append(struct vr_machine *machine) {
    if (above_mark(machine) < 2) return too_few(machine);
    machine->depth--;
    const bool skip = machine->skipping || opens_unread(machine); // a value's only item comes after the last mark is gone
    return append_to(machine, container_at(machine, machine->depth - 1), machine->stack + machine->depth, 1, skip);
}

enum vram_status vr_machine_set_item(struct vr_machine *machine) {
    if (above_mark(machine) < 3) return too_few(machine);
    machine->depth -= 2;
    return set_in(machine, container_at(machine, machine->depth - 1), machine->stack + machine->depth, 1, machine->skipping);
}

static enum vram_status gather_items(struct vr_machine *machine, enum vr_items items_of) {
    struct above above = {0};
    VR_TRY(take_mark(machine, &above));
    uint64_t value = vr_value(VR_TAG_NO_ITEMS, items_of);
    VR_TRY(append_to(machine, &value, machine->stack + above.begin, above.count, above.skip));
    return vr_machine_push(machine, value);
}

enum vram_status vr_machine_list(struct vr_machine *machine) { return gather_items(machine, VR_ITEMS_LIST); }

enum vram_status vr_machine_frozenset(struct vr_machine *machine) { return gather_items(machine, VR_ITEMS_FROZENSET); }

enum vram_status vr_machine_dict(struct vr_machine *machine) {
    struct above above = {0};
    VR_TRY(take_mark(machine, &above));
    if (above.count % 2 != 0) return too_few(machine);
    uint64_t value = vr_value(VR_TAG_NO_KEYS, 0);
    VR_TRY(set_in(machine, &value, machine->stack + above.begin, above.count / 2, above.skip));
    return vr_machine_push(machine, value);
}

enum vram_status vr_machine_tuple_of(struct vr_machine *machine, size_t count) {
    if (above_mark(machine) < count) return too_few(machine);
    machine->depth -= count;
    const uint64_t *items = machine->stack + machine->depth;
    if (count == 2 && vr_fits_pair(items[0]) && vr_fits_pair(items[1])) {
        return vr_machine_push(machine, vr_value(VR_TAG_PAIR, vr_payload(items[0]) | vr_payload(items[1]) << VR_PAIR_BITS));
    }
    uint64_t value = vr_value(VR_TAG_NO_ITEMS, VR_ITEMS_TUPLE);
    VR_TRY(append_to(machine, &value, items, count, machine->skipping));
    return vr_machine_push(machine, value);
}

enum vram_status vr_machine_tuple(struct vr_machine *machine) {
    struct above above = {0};
    VR_TRY(take_mark(machine, &above));
    machine->depth = above.begin + above.count;
    return vr_machine_tuple_of(machine, above.count);
}

enum vram_status vr_machine_pop(struct vr_machine *machine) {
    // As in Python, POP removes the mark if there is nothing above it.
    if (above_mark(machine) == 0) return vr_machine_pop_mark(machine);
    machine->depth--;
    return VRAM_OK;
}

enum vram_status vr_machine_pop_mark(struct vr_machine *machine) {
    struct above above = {0};
    return take_mark(machine, &above);
}

// ---- references

enum vram_status vr_machine_dup(struct vr_machine *machine) {
    if (above_mark(machine) < 1) return too_few(machine);
    uint64_t *top = &machine->stack[machine->depth - 1];
    if (vr_is_mutable(*top)) {
        enum vram_status status;
        VR_MACHINE_GROW(machine, shared, machine->shared_capacity, machine->shared_count + 1, status);
        VR_TRY(status);
        machine->shared[machine->shared_count] = *top;
        *top = vr_value(VR_TAG_SHARED, machine->shared_count++);
    }
    return vr_machine_push(machine, *top);
}

static enum vram_status machine_grow_memo(struct vr_machine *machine, size_t size) {
    enum vram_status status;
    VR_MACHINE_GROW(machine, memo, machine->memo_capacity, size, status);
    VR_TRY(status);
    memset(machine->memo + machine->memo_size, 0, (size - machine->memo_size) * sizeof *machine->memo);
    machine->memo_size = size;
    return VRAM_OK;
}

enum vram_status vr_machine_put(struct vr_machine *machine, size_t index) {
    if (above_mark(machine) < 1) return too_few(machine);
    if (index >= machine->memo_size) {
        if (index < machine->memo_capacity) {
            memset(machine->memo + machine->memo_size, 0, (index + 1 - machine->memo_size) * sizeof *machine->memo);
            machine->memo_size = index + 1;
        } else {
            VR_TRY(machine_grow_memo(machine, index + 1));
        }
    }
    uint64_t *slot = &machine->memo[index], *top = &machine->stack[machine->depth - 1];
    if (*top == vr_value(VR_TAG_MEMO, index)) return VRAM_OK;
    if (*slot == 0) {
        machine->memo_used++;
    } else if (vr_is_mutable(*slot)) {
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the data is damaged: memo %zu is set twice", index);
    } else {
        machine->memo_generation++;
    }
    *slot = *top;
    if (vr_is_mutable(*top)) *top = vr_value(VR_TAG_MEMO, index);
    return VRAM_OK;
}

enum vram_status vr_machine_memoize(struct vr_machine *machine) { return vr_machine_put(machine, machine->memo_used); }

enum vram_status vr_machine_get(struct vr_machine *machine, size_t index) {
    uint64_t value = index < machine->memo_size ? machine->memo[index] : 0;
    if (value == 0) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the data is damaged: memo %zu is read before it is set", index);
    if (vr_is_mutable(value)) value = vr_value(VR_TAG_MEMO, index);
    return vr_machine_push(machine, value);
}
