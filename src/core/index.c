#include "core/index.h"

VR_INLINE uint32_t priority(uint32_t block) {
    uint64_t hash = block * (uint64_t)0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(hash >> 32);
}

// Where a block stands in a tree: by size, age and address, or (holes) by address alone.
struct tree_key {
    uint64_t size, age, address;
};

VR_INLINE struct tree_key key_of(const struct vr_index_arena *arena, bool sized, uint32_t block) {
    const struct vr_block *item = &arena->blocks[block];
    return (struct tree_key){sized ? item->size : 0, sized ? item->age : 0, item->address};
}

VR_INLINE uint64_t age_of(const struct vr_index_arena *arena, const struct vr_block *block) {
    if (VR_LIKELY(arena->order == VR_BY_SIZE_AGE_ADDRESS)) return arena->segments[block->segment].counter;
    return arena->order == VR_BY_SIZE_NUMBER ? arena->numbers[block - arena->blocks] : 0;
}

// Without a branch: which way a search goes is not to be foreseen, and each wrong guess would cost more than the rest of the step.
VR_INLINE unsigned is_less(struct tree_key a, struct tree_key b) {
    return (unsigned)(a.size < b.size) |
           ((unsigned)(a.size == b.size) & ((unsigned)(a.age < b.age) | ((unsigned)(a.age == b.age) & (unsigned)(a.address < b.address))));
}

VR_INLINE void insert_as(uint32_t *root, const struct vr_index_arena *arena, bool sized, uint32_t block) {
    struct vr_block *blocks = arena->blocks;
    uint32_t *link = root;
    if (VR_LIKELY(*link == 0)) {
        blocks[block].child[0] = blocks[block].child[1] = 0;
        *link = block;
        return;
    }
    const uint32_t own = priority(block);
    const struct tree_key key = key_of(arena, sized, block);
    while (*link != 0 && priority(*link) > own) link = &blocks[*link].child[is_less(key_of(arena, sized, *link), key)];
    // What is below is cut in two: the smaller ones hang from the last of their right ends, the larger ones from that of their left ends.
    uint32_t rest = *link, *ends[2] = {&blocks[block].child[0], &blocks[block].child[1]};
    *link = block;
    while (rest != 0) {
        const unsigned smaller = is_less(key_of(arena, sized, rest), key);
        *ends[!smaller] = rest;
        ends[!smaller] = &blocks[rest].child[smaller];
        rest = blocks[rest].child[smaller];
    }
    *ends[0] = *ends[1] = 0;
}

VR_INLINE void remove_as(uint32_t *root, const struct vr_index_arena *arena, bool sized, uint32_t block) {
    struct vr_block *blocks = arena->blocks;
    uint32_t *link = root, left = blocks[block].child[0], right = blocks[block].child[1];
    const struct tree_key key = key_of(arena, sized, block);
    while (*link != block) {
        assert(*link != 0);
        link = &blocks[*link].child[is_less(key_of(arena, sized, *link), key)];
    }
    while (left != 0 && right != 0) {
        if (priority(left) > priority(right)) {
            *link = left;
            link = &blocks[left].child[1];
            left = *link;
        } else {
            *link = right;
            link = &blocks[right].child[0];
            right = *link;
        }
    }
    *link = left != 0 ? left : right;
}

void vr_tree_insert(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole) { insert_as(root, arena, false, hole); }
void vr_tree_remove(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole) { remove_as(root, arena, false, hole); }

// The outermost block of a side: 0 the first, 1 the last.
VR_INLINE uint32_t end_of(uint32_t root, const struct vr_index_arena *arena, unsigned side) {
    if (root == 0) return 0;
    while (arena->blocks[root].child[side] != 0) root = arena->blocks[root].child[side];
    return root;
}

uint32_t vr_tree_first(uint32_t root, const struct vr_index_arena *arena) { return end_of(root, arena, 0); }

// The neighbour of the block in order: on side 1 the one after it, on side 0 the one before it.
VR_INLINE uint32_t beside(uint32_t root, const struct vr_index_arena *arena, bool sized, uint32_t block, unsigned side) {
    const struct tree_key key = key_of(arena, sized, block);
    uint32_t found = 0;
    while (root != 0) {
        const struct tree_key other = key_of(arena, sized, root);
        const unsigned beyond = side == 1 ? is_less(key, other) : is_less(other, key);
        found = beyond ? root : found;
        root = arena->blocks[root].child[beyond ? !side : side];
    }
    return found;
}

uint32_t vr_tree_after(uint32_t root, const struct vr_index_arena *arena, uint32_t hole) { return beside(root, arena, false, hole, 1); }

VR_INLINE uint32_t tree_first_at_least(uint32_t root, const struct vr_index_arena *arena, uint64_t size) {
    uint32_t found = 0;
    while (root != 0) {
        const unsigned smaller = arena->blocks[root].size < size;
        found = smaller ? found : root;
        root = arena->blocks[root].child[smaller];
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
    struct vr_block *item = &arena->blocks[block];
    const unsigned bin = bin_of(item->size);
    item->age = age_of(arena, item);
    if (index->root[bin] == 0) mark(index, bin);
    insert_as(&index->root[bin], arena, true, block);
}

void vr_index_remove(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    const unsigned bin = bin_of(arena->blocks[block].size);
    remove_as(&index->root[bin], arena, true, block);
    if (index->root[bin] == 0) unmark(index, bin);
}

void vr_index_move(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block, uint64_t address, uint64_t size) {
    struct vr_block *item = &arena->blocks[block];
    const unsigned bin = bin_of(item->size);
    const bool alone = index->root[bin] == block && (item->child[0] | item->child[1]) == 0;
    const bool stays = alone && bin == bin_of(size);
    if (!stays) vr_index_remove(index, arena, block);
    item->address = address;
    item->size = size;
    if (!stays) vr_index_insert(index, arena, block);
}

bool vr_index_is_before(const struct vr_index_arena *arena, const struct vr_block *candidate, uint64_t size, uint32_t block) {
    return is_less((struct tree_key){size, age_of(arena, candidate), candidate->address}, key_of(arena, true, block));
}

uint32_t vr_index_first_at_least(const struct vr_index *index, const struct vr_index_arena *arena, uint64_t size) {
    unsigned bin = bin_of(size);
    if (index->root[bin] != 0) {
        const uint32_t found = tree_first_at_least(index->root[bin], arena, size);
        if (found != 0) return found;
    }
    bin = next_bin(index, bin + 1);
    return bin == VR_BINS ? 0 : end_of(index->root[bin], arena, 0);
}

uint32_t vr_index_next(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    unsigned bin = bin_of(arena->blocks[block].size);
    const bool last = index->root[bin] == block && arena->blocks[block].child[1] == 0;
    const uint32_t found = last ? 0 : beside(index->root[bin], arena, true, block, 1);
    if (found != 0) return found;
    bin = next_bin(index, bin + 1);
    return bin == VR_BINS ? 0 : end_of(index->root[bin], arena, 0);
}

uint32_t vr_index_previous(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    unsigned bin = VR_BINS;
    if (block != 0) {
        bin = bin_of(arena->blocks[block].size);
        const uint32_t found = beside(index->root[bin], arena, true, block, 0);
        if (found != 0) return found;
        if (bin == 0) return 0;
    }
    bin = previous_bin(index, bin - 1);
    return bin == VR_BINS ? 0 : end_of(index->root[bin], arena, 1);
}

// --- the check ----------------------------------------------------------------------------------------------------------------

// Whether the tree is ordered, its blocks lie between `low` and `high` (0: open), and no child's priority is above its parent's.
static bool check_tree(const struct vr_index_arena *arena, uint32_t root, uint32_t low, uint32_t high, size_t *count) {
    if (root == 0) return true;
    const struct vr_block *block = &arena->blocks[root];
    const uint32_t left = block->child[0], right = block->child[1];
    const struct tree_key key = key_of(arena, true, root);
    if ((low != 0 && !is_less(key_of(arena, true, low), key)) || (high != 0 && !is_less(key, key_of(arena, true, high)))) return false;
    if ((left != 0 && priority(left) > priority(root)) || (right != 0 && priority(right) > priority(root))) return false;
    if (block->age != age_of(arena, block)) return false;
    ++*count;
    return block->state == VR_FREE && check_tree(arena, left, low, root, count) && check_tree(arena, right, root, high, count);
}

bool vr_index_check(const struct vr_index *index, const struct vr_index_arena *arena, size_t *count) {
    *count = 0;
    for (unsigned bin = 0; bin < VR_BINS; bin++) {
        const uint32_t root = index->root[bin];
        if ((index->bitmap[bin / 64] >> (bin % 64) & 1) != (root != 0)) return false;
        if (root == 0) continue;
        const uint32_t first = end_of(root, arena, 0), last = end_of(root, arena, 1);
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
