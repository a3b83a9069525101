// A set of disjoint address ranges as a treap, updated by splitting and merging.
#include "replay/mapped_ranges.h"

void vr_mapped_release(struct vr_mapped *ranges) {
    free(ranges->nodes);
    *ranges = (struct vr_mapped){0};
}

static struct vr_mapped_node *node_of(const struct vr_mapped *ranges, uint32_t id) { return &ranges->nodes[id]; }

static const struct vr_mapped_range *range_or_null(const struct vr_mapped *ranges, uint32_t id) {
    return id == 0 ? NULL : &node_of(ranges, id)->range;
}

// Returns the last node that starts at or before `address`, 0 if none exists.
static uint32_t node_before(const struct vr_mapped *ranges, uint64_t address) {
    uint32_t best = 0;
    for (uint32_t at = ranges->root; at != 0;) {
        const struct vr_mapped_node *node = node_of(ranges, at);
        if (node->range.start <= address) best = at;
        at = node->range.start <= address ? node->right : node->left;
    }
    return best;
}

const struct vr_mapped_range *vr_mapped_before(const struct vr_mapped *ranges, uint64_t address) {
    return range_or_null(ranges, node_before(ranges, address));
}

const struct vr_mapped_range *vr_mapped_after(const struct vr_mapped *ranges, uint64_t address) {
    uint32_t best = 0;
    for (uint32_t at = ranges->root; at != 0;) {
        const struct vr_mapped_node *node = node_of(ranges, at);
        if (node->range.start > address) best = at;
        at = node->range.start > address ? node->left : node->right;
    }
    return range_or_null(ranges, best);
}

// Splits the tree into nodes that start before `start` (left) and the others (right).
static void split_ranges(const struct vr_mapped *ranges, uint32_t root, uint64_t start, uint32_t *left, uint32_t *right) {
    while (root != 0) {
        struct vr_mapped_node *node = node_of(ranges, root);
        if (node->range.start < start) {
            *left = root;
            left = &node->right;
            root = node->right;
        } else {
            *right = root;
            right = &node->left;
            root = node->left;
        }
    }
    *left = *right = 0;
}

static uint64_t range_priority(const struct vr_mapped *ranges, uint32_t id) { return vr_mix64(id ^ ranges->secret); }

// Merges two trees; every node of left must start before every node of right.
static uint32_t merge_ranges(const struct vr_mapped *ranges, uint32_t left, uint32_t right) {
    uint32_t root = 0;
    uint32_t *slot = &root;
    while (left != 0 && right != 0) {
        if (range_priority(ranges, left) > range_priority(ranges, right)) {
            *slot = left;
            slot = &node_of(ranges, left)->right;
            left = *slot;
        } else {
            *slot = right;
            slot = &node_of(ranges, right)->left;
            right = *slot;
        }
    }
    *slot = left != 0 ? left : right;
    return root;
}

static enum vram_status new_node(struct vr_mapped *ranges, const struct vr_mapped_range *range, uint32_t *id) {
    if (ranges->spare != 0) {
        *id = ranges->spare;
        ranges->spare = node_of(ranges, *id)->left;
    } else {
        if (ranges->count == 0) ranges->count = 1;
        if (ranges->count == UINT32_MAX) return VRAM_LIMIT;
        VR_TRY(vr_grow((void **)&ranges->nodes, &ranges->capacity, (size_t)ranges->count + 1, sizeof *ranges->nodes));
        if (ranges->count == 1) ranges->secret = vr_hash_secret(ranges->nodes);
        *id = ranges->count++;
    }
    *node_of(ranges, *id) = (struct vr_mapped_node){.range = *range};
    return VRAM_OK;
}

static enum vram_status insert_range(struct vr_mapped *ranges, const struct vr_mapped_range *range) {
    uint32_t id = 0, left = 0, right = 0;
    VR_TRY(new_node(ranges, range, &id));
    split_ranges(ranges, ranges->root, range->start, &left, &right);
    ranges->root = merge_ranges(ranges, merge_ranges(ranges, left, id), right);
    return VRAM_OK;
}

// Removes the range that starts at `start`, which must exist.
static void take_out(struct vr_mapped *ranges, uint64_t start) {
    uint32_t left = 0, middle = 0, right = 0;
    split_ranges(ranges, ranges->root, start, &left, &right);
    split_ranges(ranges, right, start + 1, &middle, &right);
    assert(middle != 0);
    ranges->root = merge_ranges(ranges, left, right);
    node_of(ranges, middle)->left = ranges->spare;
    ranges->spare = middle;
}

static bool ranges_alike(const struct vr_mapped_range *a, const struct vr_mapped_range *b) {
    return a->stream == b->stream && a->pool == b->pool && a->owner == b->owner;
}

static bool range_overlaps(const struct vr_mapped *ranges, const struct vr_mapped_range *range) {
    const struct vr_mapped_range *before = vr_mapped_before(ranges, range->start);
    const struct vr_mapped_range *after = vr_mapped_after(ranges, range->start);
    return (before != NULL && before->end > range->start) || (after != NULL && after->start < range->end);
}

enum vram_status vr_mapped_add(struct vr_mapped *ranges, const struct vr_mapped_range *range) {
    if (range->start >= range->end || range_overlaps(ranges, range)) return VRAM_INVALID_ARGUMENT;
    return insert_range(ranges, range);
}

enum vram_status vr_mapped_join(struct vr_mapped *ranges, const struct vr_mapped_range *range) {
    if (range->start >= range->end || range_overlaps(ranges, range)) return VRAM_INVALID_ARGUMENT;
    struct vr_mapped_range joined = *range;
    const struct vr_mapped_range *before = vr_mapped_before(ranges, range->start);
    if (before != NULL && before->end == range->start && ranges_alike(before, range)) {
        joined.start = before->start;
        take_out(ranges, joined.start);
    }
    const struct vr_mapped_range *after = vr_mapped_after(ranges, range->start);
    if (after != NULL && after->start == range->end && ranges_alike(after, range)) {
        joined.end = after->end;
        take_out(ranges, after->start);
    }
    return insert_range(ranges, &joined);
}

void vr_mapped_settle(struct vr_mapped *ranges, uint64_t address, enum vr_mapped_pool pool) {
    const uint32_t best = node_before(ranges, address);
    struct vr_mapped_node *node = best == 0 ? NULL : node_of(ranges, best);
    if (node != NULL && address < node->range.end && node->range.pool == VR_MAPPED_UNKNOWN) node->range.pool = pool;
}

enum vram_status vr_mapped_cut(struct vr_mapped *ranges, uint64_t start, uint64_t end) {
    const struct vr_mapped_range *holder = vr_mapped_before(ranges, start);
    if (start >= end || holder == NULL || holder->end < end) return VRAM_INVALID_ARGUMENT;
    struct vr_mapped_range head = *holder, tail = *holder;
    head.end = start;
    tail.start = end;
    take_out(ranges, head.start);
    if (head.start < head.end) VR_TRY(insert_range(ranges, &head));
    return tail.start < tail.end ? insert_range(ranges, &tail) : VRAM_OK;
}

// --- the check ------------------------------------------------------------------------------------------------------------------
// Checks a subtree whose ranges must be within [from, until); adds its number of nodes to *count. Recurses to the tree's depth, a small
// multiple of its logarithm.
static bool check_below(const struct vr_mapped *ranges, uint32_t id, uint64_t from, uint64_t until, size_t *count) {
    if (id == 0) return true;
    if (id >= ranges->count) return false;
    const struct vr_mapped_node *node = node_of(ranges, id);
    const uint32_t child[] = {node->left, node->right};
    if (node->range.start >= node->range.end || node->range.start < from || node->range.end > until) return false;
    for (size_t i = 0; i < VR_COUNT_OF(child); i++) {
        if (child[i] != 0 && range_priority(ranges, child[i]) > range_priority(ranges, id)) return false;
    }
    ++*count;
    return check_below(ranges, node->left, from, node->range.start, count) &&
           check_below(ranges, node->right, node->range.end, until, count);
}

bool vr_mapped_check(const struct vr_mapped *ranges) {
    size_t count = ranges->count == 0 ? 0 : 1;
    if (!check_below(ranges, ranges->root, 0, UINT64_MAX, &count)) return false;
    for (uint32_t id = ranges->spare; id != 0 && count <= ranges->count; id = node_of(ranges, id)->left) count++;
    return count == ranges->count;
}
