#include "core/index.h"

VR_INLINE uint32_t priority(uint32_t block) { return (uint32_t)vr_mix64(block); }

static bool less(const struct vr_index_arena *arena, enum vr_order order, uint32_t a, uint32_t b) {
    const struct vr_block *x = &arena->blocks[a], *y = &arena->blocks[b];
    if (order != VR_BY_ADDRESS && x->size != y->size) return x->size < y->size;
    if (order == VR_BY_SIZE_AGE_ADDRESS) {
        const uint64_t age_x = arena->segments[x->segment].counter, age_y = arena->segments[y->segment].counter;
        if (age_x != age_y) return age_x < age_y;
    }
    return x->address < y->address;
}

void vr_tree_insert(uint32_t *root, const struct vr_index_arena *arena, enum vr_order order, uint32_t block) {
    struct vr_block *blocks = arena->blocks;
    uint32_t *link = root;
    if (VR_LIKELY(*link == 0)) {
        blocks[block].node.left = blocks[block].node.right = 0;
        *link = block;
        return;
    }
    const uint32_t own = priority(block);
    while (*link != 0 && priority(*link) > own) {
        link = less(arena, order, block, *link) ? &blocks[*link].node.left : &blocks[*link].node.right;
    }
    uint32_t rest = *link, *smaller = &blocks[block].node.left, *larger = &blocks[block].node.right;
    *link = block;
    while (rest != 0) {
        if (less(arena, order, rest, block)) {
            *smaller = rest;
            smaller = &blocks[rest].node.right;
            rest = *smaller;
        } else {
            *larger = rest;
            larger = &blocks[rest].node.left;
            rest = *larger;
        }
    }
    *smaller = *larger = 0;
}

void vr_tree_remove(uint32_t *root, const struct vr_index_arena *arena, enum vr_order order, uint32_t block) {
    struct vr_block *blocks = arena->blocks;
    uint32_t *link = root;
    while (*link != block) {
        assert(*link != 0);
        link = less(arena, order, block, *link) ? &blocks[*link].node.left : &blocks[*link].node.right;
    }
    uint32_t left = blocks[block].node.left, right = blocks[block].node.right;
    while (left != 0 && right != 0) {
        if (priority(left) > priority(right)) {
            *link = left;
            link = &blocks[left].node.right;
            left = *link;
        } else {
            *link = right;
            link = &blocks[right].node.left;
            right = *link;
        }
    }
    *link = left != 0 ? left : right;
}

uint32_t vr_tree_first(uint32_t root, const struct vr_index_arena *arena) {
    if (root == 0) return 0;
    while (arena->blocks[root].node.left != 0) root = arena->blocks[root].node.left;
    return root;
}

static uint32_t tree_last(uint32_t root, const struct vr_index_arena *arena) {
    if (root == 0) return 0;
    while (arena->blocks[root].node.right != 0) root = arena->blocks[root].node.right;
    return root;
}

uint32_t vr_tree_after(uint32_t root, const struct vr_index_arena *arena, enum vr_order order, uint32_t block) {
    uint32_t found = 0;
    while (root != 0) {
        if (less(arena, order, block, root)) {
            found = root;
            root = arena->blocks[root].node.left;
        } else {
            root = arena->blocks[root].node.right;
        }
    }
    return found;
}

static uint32_t tree_before(uint32_t root, const struct vr_index_arena *arena, enum vr_order order, uint32_t block) {
    uint32_t found = 0;
    while (root != 0) {
        if (less(arena, order, root, block)) {
            found = root;
            root = arena->blocks[root].node.right;
        } else {
            root = arena->blocks[root].node.left;
        }
    }
    return found;
}

static uint32_t tree_first_at_least(uint32_t root, const struct vr_index_arena *arena, uint64_t size) {
    uint32_t found = 0;
    while (root != 0) {
        if (arena->blocks[root].size >= size) {
            found = root;
            root = arena->blocks[root].node.left;
        } else {
            root = arena->blocks[root].node.right;
        }
    }
    return found;
}

VR_INLINE unsigned bin_of(uint64_t size) {
    const uint64_t units = size >> 9;
    if (VR_LIKELY(units < VR_EXACT_BINS)) return (unsigned)units;
    const unsigned log = vr_log2_floor(size);
    if (log > VR_LOG_LAST) return VR_BINS - 1;
    return VR_EXACT_BINS + (log - VR_LOG_FIRST) * 64 + (unsigned)((size >> (log - 6)) & 63);
}

VR_INLINE void mark(struct vr_index *index, unsigned bin) {
    index->bitmap[bin / 64] |= (uint64_t)1 << (bin % 64);
    index->summary[bin / 4096] |= (uint64_t)1 << (bin / 64 % 64);
}

VR_INLINE void unmark(struct vr_index *index, unsigned bin) {
    index->bitmap[bin / 64] &= ~((uint64_t)1 << (bin % 64));
    if (index->bitmap[bin / 64] == 0) index->summary[bin / 4096] &= ~((uint64_t)1 << (bin / 64 % 64));
}

// The first non-empty bin from `bin` on, or VR_BINS.
static unsigned next_bin(const struct vr_index *index, unsigned bin) {
    if (bin >= VR_BINS) return VR_BINS;
    unsigned word = bin / 64;
    uint64_t bits = index->bitmap[word] >> (bin % 64);
    if (bits != 0) return bin + (unsigned)__builtin_ctzll(bits);
    if (++word >= VR_BIN_WORDS) return VR_BINS;
    for (unsigned top = word / 64; top < VR_SUMMARY_WORDS; top++) {
        bits = index->summary[top];
        if (top == word / 64) bits = bits >> (word % 64) << (word % 64);
        if (bits == 0) continue;
        word = top * 64 + (unsigned)__builtin_ctzll(bits);
        return word * 64 + (unsigned)__builtin_ctzll(index->bitmap[word]);
    }
    return VR_BINS;
}

// The last non-empty bin up to `bin`, or VR_BINS.
static unsigned previous_bin(const struct vr_index *index, unsigned bin) {
    unsigned word = bin / 64;
    uint64_t bits = index->bitmap[word] << (63 - bin % 64);
    if (bits != 0) return bin - (unsigned)__builtin_clzll(bits);
    while (word-- > 0) {
        if (index->bitmap[word] != 0) return word * 64 + 63 - (unsigned)__builtin_clzll(index->bitmap[word]);
    }
    return VR_BINS;
}

void vr_index_insert(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    const unsigned bin = bin_of(arena->blocks[block].size);
    if (index->root[bin] == 0) mark(index, bin);
    vr_tree_insert(&index->root[bin], arena, arena->order, block);
}

void vr_index_remove(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    const unsigned bin = bin_of(arena->blocks[block].size);
    vr_tree_remove(&index->root[bin], arena, arena->order, block);
    if (index->root[bin] == 0) unmark(index, bin);
}

uint32_t vr_index_first_at_least(const struct vr_index *index, const struct vr_index_arena *arena, uint64_t size) {
    unsigned bin = bin_of(size);
    if (index->root[bin] != 0) {
        const uint32_t found = tree_first_at_least(index->root[bin], arena, size);
        if (found != 0) return found;
    }
    bin = next_bin(index, bin + 1);
    return bin == VR_BINS ? 0 : vr_tree_first(index->root[bin], arena);
}

uint32_t vr_index_next(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    unsigned bin = bin_of(arena->blocks[block].size);
    const uint32_t found = vr_tree_after(index->root[bin], arena, arena->order, block);
    if (found != 0) return found;
    bin = next_bin(index, bin + 1);
    return bin == VR_BINS ? 0 : vr_tree_first(index->root[bin], arena);
}

uint32_t vr_index_previous(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    unsigned bin = VR_BINS;
    if (block != 0) {
        bin = bin_of(arena->blocks[block].size);
        const uint32_t found = tree_before(index->root[bin], arena, arena->order, block);
        if (found != 0) return found;
        if (bin == 0) return 0;
    }
    bin = previous_bin(index, bin - 1);
    return bin == VR_BINS ? 0 : tree_last(index->root[bin], arena);
}

// --- the check ----------------------------------------------------------------------------------------------------------------

// Whether the tree is ordered, its blocks lie between `low` and `high` (0: open), and no child's priority is above its parent's.
static bool check_tree(const struct vr_index_arena *arena, uint32_t root, uint32_t low, uint32_t high, size_t *count) {
    if (root == 0) return true;
    const struct vr_block *block = &arena->blocks[root];
    const uint32_t left = block->node.left, right = block->node.right;
    if ((low != 0 && !less(arena, arena->order, low, root)) || (high != 0 && !less(arena, arena->order, root, high))) return false;
    if ((left != 0 && priority(left) > priority(root)) || (right != 0 && priority(right) > priority(root))) return false;
    ++*count;
    return block->state == VR_FREE && check_tree(arena, left, low, root, count) && check_tree(arena, right, root, high, count);
}

bool vr_index_check(const struct vr_index *index, const struct vr_index_arena *arena, size_t *count) {
    *count = 0;
    for (unsigned bin = 0; bin < VR_BINS; bin++) {
        const uint32_t root = index->root[bin];
        if ((index->bitmap[bin / 64] >> (bin % 64) & 1) != (root != 0)) return false;
        if (root == 0) continue;
        const uint32_t first = vr_tree_first(root, arena), last = tree_last(root, arena);
        if (bin_of(arena->blocks[first].size) != bin || bin_of(arena->blocks[last].size) != bin) return false;
        if (!check_tree(arena, root, 0, 0, count)) return false;
    }
    for (unsigned word = 0; word < VR_BIN_WORDS; word++)
        if ((index->summary[word / 64] >> (word % 64) & 1) != (index->bitmap[word] != 0)) return false;
    return true;
}

void vr_index_clear(struct vr_index *index) {
    for (unsigned word = 0; word < VR_BIN_WORDS; word++) {
        for (uint64_t left = index->bitmap[word]; left != 0; left &= left - 1) index->root[word * 64 + (unsigned)__builtin_ctzll(left)] = 0;
        index->bitmap[word] = 0;
    }
    memset(index->summary, 0, sizeof index->summary);
}
