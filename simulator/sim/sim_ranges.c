#include "sim/sim_ranges.h"

#define NONE 0u

void vr_sim_ranges_release(struct vr_sim_ranges *ranges) {
    free(ranges->nodes);
    *ranges = (struct vr_sim_ranges){0};
}

// Recomputes a node's summary of its subtree from its children.
static void pull_node(struct vr_sim_range *nodes, uint32_t at) {
    struct vr_sim_range *node = &nodes[at];
    node->first = node->base;
    node->last = vr_sim_range_end(node);
    node->widest_gap = 0;
    if (node->left != NONE) {
        const struct vr_sim_range *left = &nodes[node->left];
        uint64_t gap = node->base - left->last;
        node->first = left->first;
        node->widest_gap = left->widest_gap > gap ? left->widest_gap : gap;
    }
    if (node->right != NONE) {
        const struct vr_sim_range *right = &nodes[node->right];
        uint64_t gap = right->first - vr_sim_range_end(node);
        if (right->widest_gap > gap) gap = right->widest_gap;
        node->last = right->last;
        if (gap > node->widest_gap) node->widest_gap = gap;
    }
}

// Splits the subtree `at` into the ranges below `base` and the rest. Recursion is as deep as the tree, O(log n) expected.
static void split_nodes(struct vr_sim_range *nodes, uint32_t at, uint64_t base, uint32_t *below, uint32_t *above) {
    if (at == NONE) {
        *below = *above = NONE;
        return;
    }
    if (nodes[at].base < base) {
        split_nodes(nodes, nodes[at].right, base, &nodes[at].right, above);
        *below = at;
    } else {
        split_nodes(nodes, nodes[at].left, base, below, &nodes[at].left);
        *above = at;
    }
    pull_node(nodes, at);
}

static uint32_t merge_nodes(struct vr_sim_range *nodes, uint32_t below, uint32_t above) {
    if (below == NONE) return above;
    if (above == NONE) return below;
    if (nodes[below].priority > nodes[above].priority) {
        nodes[below].right = merge_nodes(nodes, nodes[below].right, above);
        pull_node(nodes, below);
        return below;
    }
    nodes[above].left = merge_nodes(nodes, below, nodes[above].left);
    pull_node(nodes, above);
    return above;
}

static uint32_t insert_below(struct vr_sim_range *nodes, uint32_t at, uint32_t fresh) {
    if (at == NONE || nodes[at].priority < nodes[fresh].priority) {
        split_nodes(nodes, at, nodes[fresh].base, &nodes[fresh].left, &nodes[fresh].right);
        pull_node(nodes, fresh);
        return fresh;
    }
    if (nodes[fresh].base < nodes[at].base)
        nodes[at].left = insert_below(nodes, nodes[at].left, fresh);
    else
        nodes[at].right = insert_below(nodes, nodes[at].right, fresh);
    pull_node(nodes, at);
    return at;
}

// Recomputes a node's summary. Returns true if it was unchanged, so that its ancestors need no update.
static bool is_settled(struct vr_sim_range *nodes, uint32_t at) {
    const uint64_t first = nodes[at].first, last = nodes[at].last, widest_gap = nodes[at].widest_gap;
    pull_node(nodes, at);
    return nodes[at].first == first && nodes[at].last == last && nodes[at].widest_gap == widest_gap;
}

static uint32_t remove_below(struct vr_sim_range *nodes, uint32_t at, uint64_t base, uint32_t *removed, bool *settled) {
    assert(at != NONE);
    if (nodes[at].base == base) {
        *removed = at;
        return merge_nodes(nodes, nodes[at].left, nodes[at].right);
    }
    uint32_t *child = base < nodes[at].base ? &nodes[at].left : &nodes[at].right;
    *child = remove_below(nodes, *child, base, removed, settled);
    if (!*settled) *settled = is_settled(nodes, at);
    return at;
}

static enum vram_status take_node(struct vr_sim_ranges *ranges, uint32_t *taken) {
    if (ranges->free_list != NONE) {
        *taken = ranges->free_list;
        ranges->free_list = ranges->nodes[*taken].left;
        return VRAM_OK;
    }
    uint32_t next = ranges->used == 0 ? 1 : ranges->used;
    if (next == UINT32_MAX) return VRAM_LIMIT;
    VR_TRY(VR_GROW(ranges, nodes, (size_t)next + 1));
    if (ranges->used == 0) ranges->nodes[0] = (struct vr_sim_range){0};
    ranges->used = next + 1;
    *taken = next;
    return VRAM_OK;
}

enum vram_status vr_sim_ranges_reserve(struct vr_sim_ranges *ranges, uint32_t more) {
    const size_t used = ranges->used == 0 ? 1 : ranges->used;
    if (more >= UINT32_MAX - used) return VRAM_LIMIT;
    if (used + more <= ranges->nodes_capacity) return VRAM_OK;
    return VR_GROW(ranges, nodes, used + more);
}

enum vram_status vr_sim_ranges_insert(struct vr_sim_ranges *ranges, const struct vr_sim_range *value) {
    assert(value->span > 0 && value->size_bytes <= value->span && value->base <= UINT64_MAX - value->span);
#if VRAM_CHECK >= 2
    assert(value->span > 0 && vr_sim_ranges_overlap(ranges, value->base, value->span) == NULL);
#endif
    uint32_t fresh;
    VR_TRY(take_node(ranges, &fresh));
    ranges->nodes[fresh] = *value;
    ranges->nodes[fresh].serial = ++ranges->seed;
    ranges->nodes[fresh].priority = (uint32_t)vr_mix64(ranges->seed);
    ranges->root = insert_below(ranges->nodes, ranges->root, fresh);
    ranges->count++;
    return VRAM_OK;
}

void vr_sim_ranges_remove(struct vr_sim_ranges *ranges, uint64_t base) {
    uint32_t removed = NONE;
    bool settled = false;
    ranges->root = remove_below(ranges->nodes, ranges->root, base, &removed, &settled);
    ranges->nodes[removed].left = ranges->free_list;
    ranges->free_list = removed;
    ranges->count--;
}

// Returns the highest range whose base is at or below `address`.
static struct vr_sim_range *floor_of(const struct vr_sim_ranges *ranges, uint64_t address) {
    struct vr_sim_range *best = NULL;
    for (uint32_t at = ranges->root; at != NONE;) {
        struct vr_sim_range *node = &ranges->nodes[at];
        if (node->base <= address) {
            best = node;
            at = node->right;
        } else {
            at = node->left;
        }
    }
    return best;
}

struct vr_sim_range *vr_sim_ranges_at(const struct vr_sim_ranges *ranges, uint64_t base) {
    struct vr_sim_range *range = floor_of(ranges, base);
    return range != NULL && range->base == base ? range : NULL;
}

struct vr_sim_range *vr_sim_ranges_holding(const struct vr_sim_ranges *ranges, uint64_t address) {
    struct vr_sim_range *range = floor_of(ranges, address);
    return range != NULL && address - range->base < range->span ? range : NULL;
}

struct vr_sim_range *vr_sim_ranges_overlap(const struct vr_sim_ranges *ranges, uint64_t base, uint64_t span) {
    struct vr_sim_range *range = floor_of(ranges, base + (span - 1));
    return range != NULL && vr_sim_range_end(range) > base ? range : NULL;
}

struct vr_sim_range *vr_sim_ranges_next(const struct vr_sim_ranges *ranges, uint64_t address) {
    struct vr_sim_range *best = NULL;
    for (uint32_t at = ranges->root; at != NONE;) {
        struct vr_sim_range *node = &ranges->nodes[at];
        if (node->base >= address) {
            best = node;
            at = node->left;
        } else {
            at = node->right;
        }
    }
    return best;
}

// Walks the subtree in order and raises *address past obstacles. Returns true once [*address, *address + span) is known to end before the
// rest of the tree. Skips whole subtrees that are below or have no gap wide enough.
static bool find_gap(const struct vr_sim_range *nodes, uint32_t at, uint64_t span, uint64_t alignment, uint64_t *address) {
    if (at == NONE) return false;
    const struct vr_sim_range *node = &nodes[at];
    if (node->last <= *address) return false;
    if (node->first > *address && node->first - *address >= span) return true;
    if (node->widest_gap < span) {
        *address = vr_round_up(node->last, alignment);
        return false;
    }
    if (find_gap(nodes, node->left, span, alignment, address)) return true;
    if (node->base > *address && node->base - *address >= span) return true;
    if (vr_sim_range_end(node) > *address) *address = vr_round_up(vr_sim_range_end(node), alignment);
    return find_gap(nodes, node->right, span, alignment, address);
}

uint64_t vr_sim_ranges_lowest_gap(const struct vr_sim_ranges *ranges, uint64_t from, uint64_t limit, uint64_t span, uint64_t alignment) {
    uint64_t address = vr_round_up(from, alignment);
    (void)find_gap(ranges->nodes, ranges->root, span, alignment, &address);
    return address < limit && limit - address >= span ? address : UINT64_MAX;
}

// Adds the number of nodes of a subtree to *count. Returns false if its invariant is broken.
static bool check_below(const struct vr_sim_ranges *ranges, uint32_t at, uint64_t *count) {
    if (at == NONE) return true;
    const struct vr_sim_range *node = &ranges->nodes[at], *left = &ranges->nodes[node->left], *right = &ranges->nodes[node->right];
    if (at >= ranges->used || node->span == 0) return false;
    uint64_t first = node->base, last = vr_sim_range_end(node), widest_gap = 0;
    if (node->left != NONE) {
        if (left->last > node->base || left->priority > node->priority) return false;
        first = left->first;
        widest_gap = node->base - left->last;
        if (left->widest_gap > widest_gap) widest_gap = left->widest_gap;
    }
    if (node->right != NONE) {
        if (right->first < last || right->priority > node->priority) return false;
        if (right->first - last > widest_gap) widest_gap = right->first - last;
        if (right->widest_gap > widest_gap) widest_gap = right->widest_gap;
        last = right->last;
    }
    ++*count;
    return node->first == first && node->last == last && node->widest_gap == widest_gap && check_below(ranges, node->left, count) &&
           check_below(ranges, node->right, count);
}

bool vr_sim_ranges_check(const struct vr_sim_ranges *ranges) {
    uint64_t count = 0;
    return check_below(ranges, ranges->root, &count) && count == ranges->count;
}
