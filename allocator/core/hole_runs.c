#include "core/hole_runs.h"

#include "config/size_rules.h"

// Bounds for a part of the tree: see hole_runs.h.
struct run_bounds {
    uint64_t joined, last, longest;
};

// Bounds saturate here. A request this large searches one run after another.
#define MOST ((uint64_t)UINT32_MAX)

static uint64_t smaller_of(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t larger_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint32_t *root_of(struct vr_shard *shard, uint32_t hole) {
    return &shard->pool[vr_block_at(shard->device->allocator, hole)->small ? VR_SMALL : VR_LARGE].holes;
}

static uint64_t free_units(const struct vr_block *block) { return block->state == VR_FREE ? block->size / VR_MIN_BLOCK : 0; }

// Returns the previous hole of the same run, or 0 for the first. Record 0 is never a hole.
static uint32_t before_in_run(const struct vr_block *blocks, uint32_t hole) {
    uint32_t at = blocks[hole].previous;
    if (blocks[at].state == VR_FREE) at = blocks[at].previous;
    return blocks[at].state == VR_HOLE ? at : 0;
}

static uint32_t after_in_run(const struct vr_block *blocks, uint32_t hole) {
    uint32_t at = blocks[hole].next;
    if (blocks[at].state == VR_FREE) at = blocks[at].next;
    return blocks[at].state == VR_HOLE ? at : 0;
}

// Chains of sources with slots contain holes too, but do not grow by runs.
static bool is_expandable(const struct vram_allocator *allocator, uint32_t hole) {
    return vr_segment_at(allocator, vr_block_at(allocator, hole)->segment)->pages != NULL;
}

// Bounds for the hole alone: includes the free block after it and, if a run begins here, the free block before it.
static struct run_bounds bounds_of_one(const struct vram_allocator *allocator, uint32_t hole) {
    const struct vr_block *blocks = allocator->arena.blocks, *item = &blocks[hole];
    if (!is_expandable(allocator, hole)) return (struct run_bounds){0};
    const uint64_t own = item->size / VR_MIN_BLOCK + free_units(&blocks[item->next]);
    if (before_in_run(blocks, hole) != 0) return (struct run_bounds){.joined = own};
    const uint64_t run = own + free_units(&blocks[item->previous]);
    return (struct run_bounds){0, run, run};
}

static struct run_bounds bounds_at(const struct vr_block *blocks, uint32_t hole) {
    return (struct run_bounds){blocks[hole].joined, blocks[hole].last, blocks[hole].longest};
}

// Combines the bounds of two adjacent parts, `first` at the lower addresses.
static struct run_bounds bounds_of_two(struct run_bounds first, struct run_bounds second) {
    struct run_bounds both = {.joined = first.joined, .longest = larger_of(first.longest, second.longest)};
    const uint64_t met = first.last + second.joined; // the run that reaches from the first part into the second
    if (first.last == 0) both.joined += second.joined;
    if (first.last != 0) both.longest = larger_of(both.longest, met);
    both.last = second.last != 0 ? second.last : first.last != 0 ? met : 0;
    return both;
}

static struct run_bounds bounds_of_tree(const struct vram_allocator *allocator, uint32_t root) {
    const struct vr_block *blocks = allocator->arena.blocks;
    const uint32_t *child = blocks[root].child;
    const struct run_bounds left = child[0] != 0 ? bounds_at(blocks, child[0]) : (struct run_bounds){0};
    const struct run_bounds right = child[1] != 0 ? bounds_at(blocks, child[1]) : (struct run_bounds){0};
    const struct run_bounds all = bounds_of_two(bounds_of_two(left, bounds_of_one(allocator, root)), right);
    return (struct run_bounds){smaller_of(all.joined, MOST), smaller_of(all.last, MOST), smaller_of(all.longest, MOST)};
}

static void set_bounds(struct vr_block *blocks, uint32_t hole, struct run_bounds bounds) {
    blocks[hole].joined = (uint32_t)bounds.joined;
    blocks[hole].last = (uint32_t)bounds.last;
    blocks[hole].longest = (uint32_t)bounds.longest;
}

static bool bounds_cover(struct run_bounds known, struct run_bounds real) {
    return real.joined <= known.joined && real.last <= known.last && real.longest <= known.longest && (real.last == 0) == (known.last == 0);
}

// Recomputes the bounds from a hole up to its ancestor `end`, excluded (0: up to the root).
static void renew_up(const struct vram_allocator *allocator, uint32_t hole, uint32_t end) {
    struct vr_block *blocks = allocator->arena.blocks;
    for (; hole != end; hole = blocks[hole].parent) set_bounds(blocks, hole, bounds_of_tree(allocator, hole));
}

// Like renew_up() for an unchanged tree: stops at the first node whose bounds still hold, because those above then hold too.
static void raise_up(const struct vram_allocator *allocator, uint32_t hole) {
    struct vr_block *blocks = allocator->arena.blocks;
    for (; hole != 0; hole = blocks[hole].parent) {
        const struct run_bounds real = bounds_of_tree(allocator, hole);
        if (bounds_cover(bounds_at(blocks, hole), real)) return;
        set_bounds(blocks, hole, real);
    }
}

void vr_hole_runs_freed_at_hole(const struct vram_allocator *allocator, const struct vr_block *block) {
    if (vr_block_at(allocator, block->previous)->state == VR_HOLE) raise_up(allocator, block->previous);
    if (vr_block_at(allocator, block->next)->state == VR_HOLE) raise_up(allocator, block->next);
}

// The taken block had joined two holes into one run; now the second hole begins a run. While vram_malloc_at() cuts out a block, the block
// before it may be free instead of a hole.
void vr_hole_runs_taken(const struct vram_allocator *allocator, uint32_t taken) {
    const struct vr_block *block = vr_block_at(allocator, taken);
    const uint8_t before = vr_block_at(allocator, block->previous)->state;
    if (VR_LIKELY(before != VR_HOLE && before != VR_FREE)) return;
    const struct vr_block *next = vr_block_at(allocator, block->next);
    const uint32_t hole = next->state == VR_FREE ? next->next : block->next;
    if (vr_block_at(allocator, hole)->state == VR_HOLE) raise_up(allocator, hole);
}

// --- the tree ---------------------------------------------------------------------------------------------------------------------------

static uint32_t outermost_hole(const struct vr_block *blocks, uint32_t root, unsigned side) {
    while (blocks[root].child[side] != 0) root = blocks[root].child[side];
    return root;
}

// An insertion changes the tree only on the paths from the neighbours, in order, up to the new node, and from there to the root.
void vr_hole_insert(struct vr_shard *shard, uint32_t hole) {
    VR_ASSERT_LOCKED(shard->device);
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *blocks = allocator->arena.blocks;
    blocks[hole].state = VR_HOLE;
    vr_tree_insert(root_of(shard, hole), &allocator->arena, hole);
    for (unsigned side = 0; side < 2; side++) {
        const uint32_t child = blocks[hole].child[side];
        if (child != 0) renew_up(allocator, outermost_hole(blocks, child, !side), hole);
    }
    renew_up(allocator, hole, 0);
}

// A removal changes the paths from both neighbours to the root.
void vr_hole_remove(struct vr_shard *shard, uint32_t hole) {
    VR_ASSERT_LOCKED(shard->device);
    const struct vram_allocator *allocator = shard->device->allocator;
    uint32_t *root = root_of(shard, hole);
    const uint64_t address = vr_block_at(allocator, hole)->address;
    const uint32_t before = vr_tree_at_or_before(*root, &allocator->arena, address - 1), after = vr_tree_next(&allocator->arena, hole);
    vr_tree_remove(root, &allocator->arena, hole);
    renew_up(allocator, before, 0);
    renew_up(allocator, after, 0);
}

// --- the search -------------------------------------------------------------------------------------------------------------------------

// Returns the block where the run of this hole begins: the free block before it, or the hole.
static uint32_t start_of_run(const struct vr_block *blocks, uint32_t hole) {
    const uint32_t previous = blocks[hole].previous;
    return blocks[previous].state == VR_FREE ? previous : hole;
}

static bool run_reaches(const struct vr_block *blocks, uint32_t start, uint64_t rounded) {
    uint64_t sum = 0;
    for (uint32_t at = start; blocks[at].state == VR_FREE || blocks[at].state == VR_HOLE; at = blocks[at].next) {
        sum += blocks[at].size;
        if (sum >= rounded) return true;
    }
    return false;
}

// Searches hole by hole, as PyTorch does.
static uint32_t first_of_all(const struct vram_allocator *allocator, uint32_t root, uint64_t rounded) {
    const struct vr_index_arena *arena = &allocator->arena;
    for (uint32_t hole = vr_tree_first(root, arena); hole != 0; hole = vr_tree_next(arena, hole)) {
        const uint32_t start = start_of_run(arena->blocks, hole);
        if (is_expandable(allocator, hole) && run_reaches(arena->blocks, start, rounded)) return start;
    }
    return 0;
}

// Returns the hole at which the last run that begins in the tree begins. At least one run must begin there.
static uint32_t last_start(const struct vram_allocator *allocator, uint32_t root) {
    const struct vr_block *blocks = allocator->arena.blocks;
    for (;;) {
        const uint32_t right = blocks[root].child[1];
        if (right != 0 && blocks[right].last != 0) {
            root = right;
        } else if (bounds_of_one(allocator, root).last != 0) {
            return root;
        } else {
            root = blocks[root].child[0];
        }
    }
}

// The run that a search is in: its length so far, and the subtree, or the hole alone, in which it began.
struct open_run {
    uint64_t length;
    uint32_t tree, hole;
};

static bool may_reach(const struct vr_block *blocks, uint32_t root, const struct open_run *run, uint64_t wanted) {
    return root != 0 && (blocks[root].longest >= wanted || run->length + blocks[root].joined >= wanted);
}

static void go_on(struct open_run *run, struct run_bounds part, uint32_t tree, uint32_t hole) {
    if (part.last != 0) {
        *run = (struct open_run){part.last, tree, hole};
    } else {
        run->length += part.joined;
    }
}

// Finds the first hole of the first run that is long enough according to the bounds. Returns 0 if the parts do not keep what the root's
// bounds promise; *misled is then the node with wrong bounds.
static uint32_t first_by_bounds(const struct vram_allocator *allocator, uint32_t root, uint64_t wanted, uint32_t *misled) {
    const struct vr_block *blocks = allocator->arena.blocks;
    struct open_run run = {0};
    for (uint32_t at = root; may_reach(blocks, at, &run, wanted);) {
        const uint32_t left = blocks[at].child[0];
        *misled = at;
        if (may_reach(blocks, left, &run, wanted)) {
            at = left;
            continue;
        }
        if (left != 0) go_on(&run, bounds_at(blocks, left), left, 0);
        go_on(&run, bounds_of_one(allocator, at), 0, at);
        if (run.length >= wanted) return run.hole != 0 ? run.hole : last_start(allocator, run.tree);
        at = blocks[at].child[1];
    }
    return 0;
}

// Like first_by_bounds(), but corrects misleading bounds and searches again. 0 if there is no such run.
static uint32_t first_likely(const struct vram_allocator *allocator, uint32_t root, uint64_t wanted) {
    while (may_reach(allocator->arena.blocks, root, &(struct open_run){0}, wanted)) {
        uint32_t misled = 0;
        const uint32_t hole = first_by_bounds(allocator, root, wanted, &misled);
        if (hole != 0) return hole;
        renew_up(allocator, misled, 0);
    }
    return 0;
}

uint32_t vr_hole_run(const struct vr_shard *shard, bool small, uint64_t rounded) {
    VR_ASSERT_LOCKED(shard->device);
    const struct vram_allocator *allocator = shard->device->allocator;
    const struct vr_block *blocks = allocator->arena.blocks;
    const uint32_t root = shard->pool[small ? VR_SMALL : VR_LARGE].holes;
    const uint64_t wanted = rounded / VR_MIN_BLOCK;
    if (wanted >= MOST) return first_of_all(allocator, root, rounded);
    for (;;) {
        const uint32_t hole = first_likely(allocator, root, wanted);
        const uint32_t start = hole != 0 ? start_of_run(blocks, hole) : 0;
        if (hole == 0 || run_reaches(blocks, start, rounded)) {
#if VRAM_CHECK >= 3
            assert(start == first_of_all(allocator, root, rounded));
#endif
            return start;
        }
        // Takes as many steps as the request has pages, once per run until a block next to its holes is handed out again.
        for (uint32_t at = hole; at != 0; at = after_in_run(blocks, at)) renew_up(allocator, at, 0);
    }
}

// --- the check --------------------------------------------------------------------------------------------------------------------------

bool vr_hole_runs_check(const struct vram_allocator *allocator, uint32_t root) {
    for (uint32_t hole = vr_tree_first(root, &allocator->arena); hole != 0; hole = vr_tree_next(&allocator->arena, hole)) {
        if (!bounds_cover(bounds_at(allocator->arena.blocks, hole), bounds_of_tree(allocator, hole))) return false;
    }
    return true;
}
