#include "core/index.h"

// Returns the bin of a size: one for each multiple of 512 up to 2 MiB, above 64 for each power of two.
static unsigned bin_of(uint64_t size) {
    const uint64_t units = size >> 9;
    if (VR_LIKELY(units < VR_EXACT_BINS)) return (unsigned)units;
    const unsigned log = 63 - (unsigned)__builtin_clzll(size);
    if (log > VR_LOG_LAST) return VR_BINS - 1;
    return VR_EXACT_BINS + (log - VR_LOG_FIRST) * 64 + (unsigned)((size >> (log - 6)) & 63);
}

VR_INLINE uint32_t priority_of_block(uint32_t block) {
    uint64_t hash = block * (uint64_t)0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(hash >> 32);
}

// The keys of a tree before the address: no key for holes, the age in a bin of one size, size and age in the other bins.
enum tree_order { BY_ADDRESS, BY_AGE, BY_SIZE };

__extension__ typedef unsigned __int128 two_words;

// A block's key in a tree. Age and address form one number, so that a comparison takes two instructions.
struct tree_key {
    uint64_t size;
    two_words age_and_address;
};

VR_INLINE struct tree_key tree_key_of(const struct vr_index_arena *arena, enum tree_order order, uint32_t block) {
    const struct vr_block *item = &arena->blocks[block];
    const uint64_t age = order != BY_ADDRESS ? item->age : 0;
    return (struct tree_key){order == BY_SIZE ? item->size : 0, (two_words)age << 64 | item->address};
}

// Has no branch: the direction of a search is unpredictable, and a misprediction would cost more than the rest of the step.
VR_INLINE unsigned is_less(struct tree_key a, struct tree_key b) {
    return (unsigned)(a.size < b.size) | ((unsigned)(a.size == b.size) & (unsigned)(a.age_and_address < b.age_and_address));
}

VR_INLINE void hang_below(struct vr_block *blocks, uint32_t *link, uint32_t parent, uint32_t block) {
    *link = block;
    blocks[block].parent = parent;
}

// Returns the new root.
VR_INLINE uint32_t insert_as(uint32_t root, const struct vr_index_arena *arena, enum tree_order order, uint32_t block) {
    struct vr_block *blocks = arena->blocks;
    const uint32_t own = blocks[block].priority = priority_of_block(block);
    const struct tree_key key = tree_key_of(arena, order, block);
    uint32_t rest = root, parent = 0;
    unsigned side = 0;
    while (blocks[rest].priority > own) { // block 0, which ends every path down, has priority 0
        parent = rest;
        side = is_less(tree_key_of(arena, order, rest), key);
        rest = blocks[rest].child[side];
    }
    blocks[block].parent = parent;
    if (parent != 0) blocks[parent].child[side] = block;
    // Split what is below: smaller blocks go to the right end of the left subtree, larger ones to the left end of the right subtree.
    uint32_t *ends[2] = {&blocks[block].child[0], &blocks[block].child[1]}, above[2] = {block, block};
    while (rest != 0) {
        const unsigned smaller = is_less(tree_key_of(arena, order, rest), key);
        hang_below(blocks, ends[!smaller], above[!smaller], rest);
        above[!smaller] = rest;
        ends[!smaller] = &blocks[rest].child[smaller];
        rest = blocks[rest].child[smaller];
    }
    *ends[0] = *ends[1] = 0;
    return parent == 0 ? block : root;
}

// Returns the new root.
VR_INLINE uint32_t remove_from(uint32_t root, const struct vr_index_arena *arena, uint32_t block) {
    struct vr_block *blocks = arena->blocks;
    const uint32_t parent = blocks[block].parent;
    uint32_t left = blocks[block].child[0], right = blocks[block].child[1], above = parent, joined = 0;
    uint32_t *link = parent == 0 ? &root : &blocks[parent].child[blocks[parent].child[1] == block];
    assert(*link == block);
    while (left != 0 && right != 0) {
        const unsigned side = blocks[left].priority > blocks[right].priority; // the side of the rising block on which the join continues
        const uint32_t up = side ? left : right;
        hang_below(blocks, link, above, up);
        above = up;
        link = &blocks[up].child[side];
        left = side ? *link : left;
        right = side ? right : *link;
    }
    joined = left | right;
    *link = joined;
    if (joined != 0) blocks[joined].parent = above;
    return root;
}

void vr_tree_insert(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole) {
    *root = insert_as(*root, arena, BY_ADDRESS, hole);
}
void vr_tree_remove(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole) { *root = remove_from(*root, arena, hole); }

// Returns the outermost block of a side: 0 the first, 1 the last.
VR_INLINE uint32_t end_of(uint32_t root, const struct vr_index_arena *arena, unsigned side) {
    if (root == 0) return 0;
    while (arena->blocks[root].child[side] != 0) root = arena->blocks[root].child[side];
    return root;
}

uint32_t vr_tree_first(uint32_t root, const struct vr_index_arena *arena) { return end_of(root, arena, 0); }

// Returns the neighbour of a block in its tree's order: the next one on side 1, the previous one on side 0.
VR_INLINE uint32_t neighbour_in_tree(const struct vr_index_arena *arena, uint32_t block, unsigned side) {
    const struct vr_block *blocks = arena->blocks;
    if (blocks[block].child[side] != 0) return end_of(blocks[block].child[side], arena, !side);
    uint32_t parent = blocks[block].parent;
    while (parent != 0 && blocks[parent].child[side] == block) block = parent, parent = blocks[block].parent;
    return parent;
}

uint32_t vr_tree_at_or_before(uint32_t root, const struct vr_index_arena *arena, uint64_t address) {
    uint32_t found = 0;
    while (root != 0) {
        const unsigned reached = arena->blocks[root].address <= address;
        found = reached ? root : found;
        root = arena->blocks[root].child[reached];
    }
    return found;
}

uint32_t vr_tree_next(const struct vr_index_arena *arena, uint32_t record) { return neighbour_in_tree(arena, record, 1); }

VR_INLINE uint32_t tree_first_at_least(uint32_t root, const struct vr_index_arena *arena, uint64_t size) {
    uint32_t found = 0;
    while (root != 0) {
        const unsigned smaller = arena->blocks[root].size < size;
        found = smaller ? found : root;
        root = arena->blocks[root].child[smaller];
    }
    return found;
}

// Returns the first non-empty bin from `bin` on, or VR_BINS.
VR_INLINE unsigned next_bin(const struct vr_index *index, unsigned bin) {
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

// Returns the last non-empty bin up to `bin`, or VR_BINS.
static unsigned previous_bin(const struct vr_index *index, unsigned bin) {
    unsigned word = bin / 64;
    uint64_t bits = index->bitmap[word] << (63 - bin % 64);
    if (bits != 0) return bin - (unsigned)__builtin_clzll(bits);
    while (word-- > 0) {
        if (index->bitmap[word] != 0) return word * 64 + 63 - (unsigned)__builtin_clzll(index->bitmap[word]);
    }
    return VR_BINS;
}

// --- bins -----------------------------------------------------------------------------------------------------------------------

VR_NOINLINE static void insert_by_age(struct vr_bin *bin, const struct vr_index_arena *arena, uint32_t block) {
    bin->head = insert_as(bin->head, arena, BY_AGE, block);
}

VR_NOINLINE static void insert_by_size(struct vr_bin *bin, const struct vr_index_arena *arena, uint32_t block) {
    bin->head = insert_as(bin->head, arena, BY_SIZE, block);
}

VR_INLINE void insert_into_tree(struct vr_bin *bin, const struct vr_index_arena *arena, uint32_t block) {
    if (arena->blocks[block].bin < VR_EXACT_BINS) {
        insert_by_age(bin, arena, block);
    } else {
        insert_by_size(bin, arena, block);
    }
}

static void make_tree(struct vr_bin *bin, const struct vr_index_arena *arena) {
    uint32_t at = bin->head, next;
    for (*bin = (struct vr_bin){0, VR_BIN_TREE}; at != 0; at = next) {
        next = arena->blocks[at].child[1];
        insert_into_tree(bin, arena, at);
    }
}

VR_NOINLINE static void remove_from_tree(struct vr_bin *bin, const struct vr_index_arena *arena, uint32_t block) {
    const uint32_t root = remove_from(bin->head, arena, block);
    bin->head = root;
    if ((arena->blocks[root].child[0] | arena->blocks[root].child[1]) == 0) bin->length = 1; // a tree has at least two blocks
}

// Returns whether `one` precedes `other` in a list.
VR_INLINE bool is_before(const struct vr_block *one, const struct vr_block *other) {
    if (one->size != other->size) return one->size < other->size;
    return one->age != other->age ? one->age < other->age : one->address < other->address;
}

// Inserts into a list that is not empty, keeping its order.
VR_NOINLINE static void insert_into_list(struct vr_bin *bin, const struct vr_index_arena *arena, uint32_t block) {
    struct vr_block *blocks = arena->blocks;
    if (VR_UNLIKELY(bin->length == VR_MOST_LISTED)) {
        make_tree(bin, arena);
        insert_into_tree(bin, arena, block);
        return;
    }
    uint32_t before = 0, after = bin->head;
    while (after != 0 && is_before(&blocks[after], &blocks[block])) before = after, after = blocks[after].child[1];
    blocks[block].child[0] = before;
    blocks[block].child[1] = after;
    if (after != 0) blocks[after].child[0] = block;
    if (before != 0) blocks[before].child[1] = block;
    *bin = (struct vr_bin){before != 0 ? bin->head : block, bin->length + 1u};
}

void vr_index_insert(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    struct vr_block *item = &arena->blocks[block];
    const unsigned number = bin_of(item->size);
    struct vr_bin *bin = &index->bins[number];
    item->bin = (uint16_t)number;
    item->age = VR_UNLIKELY(arena->numbers != NULL) ? arena->numbers[block] : arena->ages[item->segment];
    if (bin->head == 0) {
        index->bitmap[number / 64] |= (uint64_t)1 << (number % 64);
        index->summary[number / 4096] |= (uint64_t)1 << (number / 64 % 64);
        *bin = (struct vr_bin){block, 1};
        item->child[0] = item->child[1] = 0;
    } else if (bin->length == VR_BIN_TREE) {
        insert_into_tree(bin, arena, block);
    } else {
        insert_into_list(bin, arena, block);
    }
}

void vr_index_remove(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    struct vr_block *blocks = arena->blocks;
    const unsigned number = blocks[block].bin;
    struct vr_bin *bin = &index->bins[number];
    if (bin->length == 1) {
        assert(bin->head == block);
        *bin = (struct vr_bin){0, 0};
        index->bitmap[number / 64] &= ~((uint64_t)1 << (number % 64));
        if (index->bitmap[number / 64] == 0) index->summary[number / 4096] &= ~((uint64_t)1 << (number / 64 % 64));
    } else if (bin->length == VR_BIN_TREE) {
        remove_from_tree(bin, arena, block);
    } else {
        const uint32_t before = blocks[block].child[0], after = blocks[block].child[1];
        if (after != 0) blocks[after].child[0] = before;
        if (before != 0) blocks[before].child[1] = after;
        *bin = (struct vr_bin){before != 0 ? bin->head : after, bin->length - 1u};
    }
}

// Returns the outermost block of a non-empty bin: 0 the first, 1 the last.
VR_INLINE uint32_t end_of_bin(struct vr_bin bin, const struct vr_index_arena *arena, unsigned side) {
    return side == 0 && bin.length != VR_BIN_TREE ? bin.head : end_of(bin.head, arena, side);
}

// Returns the neighbour of a block in its bin, or 0.
VR_INLINE uint32_t neighbour_in_bin(struct vr_bin bin, const struct vr_index_arena *arena, uint32_t block, unsigned side) {
    return bin.length == VR_BIN_TREE ? neighbour_in_tree(arena, block, side) : arena->blocks[block].child[side];
}

VR_INLINE uint32_t list_first_at_least(uint32_t at, const struct vr_index_arena *arena, uint64_t size) {
    while (at != 0 && arena->blocks[at].size < size) at = arena->blocks[at].child[1];
    return at;
}

// A bin of one size needs no search, because its first block fits. Only the other bins are searched.
uint32_t vr_index_first_at_least(const struct vr_index *index, const struct vr_index_arena *arena, uint64_t size) {
    const unsigned number = bin_of(size);
    unsigned at = next_bin(index, number);
    if (at == number && number >= VR_EXACT_BINS) {
        const struct vr_bin bin = index->bins[number];
        const uint32_t found =
            bin.length == VR_BIN_TREE ? tree_first_at_least(bin.head, arena, size) : list_first_at_least(bin.head, arena, size);
        if (found != 0) return found;
        at = next_bin(index, number + 1);
    }
    if (at == VR_BINS) return 0;
    const struct vr_bin bin = index->bins[at];
    return bin.length == VR_BIN_TREE ? end_of(bin.head, arena, 0) : bin.head;
}

bool vr_index_may_have(const struct vr_index *index, uint64_t size) {
    const unsigned word = bin_of(size) / 64;
    uint64_t any = index->summary[word / 64] >> word % 64;
    for (unsigned i = word / 64 + 1; i < VR_SUMMARY_WORDS; i++) any |= index->summary[i];
    return any != 0;
}

uint32_t vr_index_next(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    unsigned number = arena->blocks[block].bin;
    const uint32_t found = neighbour_in_bin(index->bins[number], arena, block, 1);
    if (found != 0) return found;
    number = next_bin(index, number + 1);
    return number == VR_BINS ? 0 : end_of_bin(index->bins[number], arena, 0);
}

uint32_t vr_index_previous(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block) {
    unsigned number = VR_BINS;
    if (block != 0) {
        number = arena->blocks[block].bin;
        const uint32_t found = neighbour_in_bin(index->bins[number], arena, block, 0);
        if (found != 0) return found;
        if (number == 0) return 0;
    }
    number = previous_bin(index, number - 1);
    return number == VR_BINS ? 0 : end_of_bin(index->bins[number], arena, 1);
}

// --- the check ----------------------------------------------------------------------------------------------------------------

// Returns whether a block of the index is free, and was entered by its size and age.
static bool is_entered(const struct vr_index_arena *arena, uint32_t block) {
    const struct vr_block *item = &arena->blocks[block];
    const uint64_t age = arena->numbers != NULL ? arena->numbers[block] : arena->ages[item->segment];
    return item->state == VR_FREE && item->age == age && item->bin == bin_of(item->size);
}

// Returns whether the tree is in order, its blocks lie between `low` and `high` (0: open), and no child's priority exceeds its parent's.
static bool check_tree(const struct vr_index_arena *arena, uint32_t root, uint32_t parent, uint32_t low, uint32_t high, size_t *count) {
    if (root == 0) return true;
    const struct vr_block *block = &arena->blocks[root];
    const struct tree_key key = tree_key_of(arena, BY_SIZE, root);
    if ((low != 0 && !is_less(tree_key_of(arena, BY_SIZE, low), key)) || (high != 0 && !is_less(key, tree_key_of(arena, BY_SIZE, high))))
        return false;
    if (block->parent != parent || block->priority != priority_of_block(root)) return false;
    if (parent != 0 && block->priority > arena->blocks[parent].priority) return false;
    if (!is_entered(arena, root)) return false;
    ++*count;
    return check_tree(arena, block->child[0], root, low, root, count) && check_tree(arena, block->child[1], root, root, high, count);
}

// Returns whether a list is in order, linked both ways, and as long as its bin says.
static bool check_list(const struct vr_index_arena *arena, struct vr_bin bin, size_t *count) {
    uint32_t before = 0, length = 0;
    for (uint32_t at = bin.head; at != 0; before = at, at = arena->blocks[at].child[1]) {
        if (arena->blocks[at].child[0] != before || !is_entered(arena, at)) return false;
        if (before != 0 && !is_less(tree_key_of(arena, BY_SIZE, before), tree_key_of(arena, BY_SIZE, at))) return false;
        if (++length > VR_MOST_LISTED) return false;
    }
    *count += length;
    return length == bin.length;
}

bool vr_index_check(const struct vr_index *index, const struct vr_index_arena *arena, size_t *count) {
    *count = 0;
    if (arena->blocks[0].priority != 0) return false; // insert_as() ends its descent at this priority
    for (unsigned number = 0; number < VR_BINS; number++) {
        const struct vr_bin bin = index->bins[number];
        if ((index->bitmap[number / 64] >> (number % 64) & 1) != (bin.head != 0)) return false;
        if (bin.head == 0) continue;
        if (!(bin.length == VR_BIN_TREE ? check_tree(arena, bin.head, 0, 0, 0, count) : check_list(arena, bin, count))) return false;
        const uint32_t first = end_of_bin(bin, arena, 0), last = end_of_bin(bin, arena, 1);
        if (bin_of(arena->blocks[first].size) != number || bin_of(arena->blocks[last].size) != number) return false;
    }
    for (unsigned word = 0; word < VR_BIN_WORDS; word++)
        if ((index->summary[word / 64] >> (word % 64) & 1) != (index->bitmap[word] != 0)) return false;
    return true;
}

void vr_index_clear(struct vr_index *index) {
    for (unsigned word = 0; word < VR_BIN_WORDS; word++) {
        for (uint64_t left = index->bitmap[word]; left != 0; left &= left - 1)
            index->bins[word * 64 + (unsigned)__builtin_ctzll(left)] = (struct vr_bin){0, 0};
        index->bitmap[word] = 0;
    }
    memset(index->summary, 0, sizeof index->summary);
}
