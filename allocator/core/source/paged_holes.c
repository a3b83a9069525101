// Free bytes behind windows: a tree by address, and a tree for each class of lengths. A hole is found, cut and joined in a few steps,
// however many there are.
#include "core/source/paged.h"

enum { BELOW, ABOVE }; // the two sides of a hole in a tree
enum { WORDS = VR_PAGED_CLASSES / 64, STEPS = 16 /* classes per power of two */, LOG_STEPS = 4 };

static struct vr_paged_hole *hole_at(const struct vr_paged_shard *own, uint32_t number) { return &own->holes[number]; }
static uint64_t length_of(const struct vr_paged_hole *hole) { return hole->range.high - hole->range.low; }

// Longer lengths have higher classes. The last class has all very long ones.
static unsigned class_of(uint64_t length) {
    const uint64_t units = length >> 9;
    if (units < STEPS) return (unsigned)units;
    const unsigned log = vr_log2_floor(units), class = (log - LOG_STEPS + 1) * STEPS + (unsigned)(units >> (log - LOG_STEPS) & (STEPS - 1));
    return class < VR_PAGED_CLASSES ? class : VR_PAGED_CLASSES - 1;
}

// --- trees: treaps, whose priorities are a hash of the hole's number --------------------------------------------------------------------

static uint32_t priority_of(const struct vr_paged_shard *own, uint32_t number) { return own->holes[number].priority; }

static bool hole_precedes(const struct vr_paged_hole *one, const struct vr_paged_hole *other, enum vr_paged_hole_order order) {
    if (order == VR_PAGED_BY_LENGTH && length_of(one) != length_of(other)) return length_of(one) < length_of(other);
    return one->range.low < other->range.low;
}

static void tree_insert(struct vr_paged_shard *own, uint32_t *link, uint32_t number, enum vr_paged_hole_order order) {
    struct vr_paged_hole *hole = hole_at(own, number);
    while (*link != 0 && priority_of(own, *link) >= hole->priority)
        link = &hole_at(own, *link)->children[order][hole_precedes(hole_at(own, *link), hole, order) ? ABOVE : BELOW];
    uint32_t rest = *link, *links[2] = {&hole->children[order][BELOW], &hole->children[order][ABOVE]};
    *link = number;
    while (rest != 0) { // what was there is split between both sides
        struct vr_paged_hole *other = hole_at(own, rest);
        const bool below = hole_precedes(other, hole, order);
        uint32_t **side = &links[below ? BELOW : ABOVE];
        **side = rest;
        *side = &other->children[order][below ? ABOVE : BELOW];
        rest = **side;
    }
    *links[BELOW] = *links[ABOVE] = 0;
}

static void tree_remove(struct vr_paged_shard *own, uint32_t *link, uint32_t number, enum vr_paged_hole_order order) {
    const struct vr_paged_hole *hole = hole_at(own, number);
    while (*link != number) {
        assert(*link != 0);
        link = &hole_at(own, *link)->children[order][hole_precedes(hole_at(own, *link), hole, order) ? ABOVE : BELOW];
    }
    uint32_t below = hole->children[order][BELOW], above = hole->children[order][ABOVE];
    while (below != 0 && above != 0) {
        const bool first = priority_of(own, below) > priority_of(own, above);
        uint32_t *rest = first ? &below : &above;
        *link = *rest;
        link = &hole_at(own, *link)->children[order][first ? ABOVE : BELOW];
        *rest = *link;
    }
    *link = below != 0 ? below : above;
}

// --- the two orders ----------------------------------------------------------------------------------------------------------------------

static void enter_length(struct vr_paged_shard *own, uint32_t number) {
    const unsigned class = class_of(length_of(hole_at(own, number)));
    tree_insert(own, &own->hole_classes->roots[class], number, VR_PAGED_BY_LENGTH);
    own->hole_classes->some[class / 64] |= (uint64_t)1 << class % 64;
}

static void leave_length(struct vr_paged_shard *own, uint32_t number) {
    const unsigned class = class_of(length_of(hole_at(own, number)));
    uint32_t *root = &own->hole_classes->roots[class];
    tree_remove(own, root, number, VR_PAGED_BY_LENGTH);
    if (*root == 0) own->hole_classes->some[class / 64] &= ~((uint64_t)1 << class % 64);
}

static void insert_hole(struct vr_paged_shard *own, uint64_t low, uint64_t high) {
    uint32_t number = own->spare_hole;
    if (number != 0) {
        own->spare_hole = hole_at(own, number)->children[VR_PAGED_BY_ADDRESS][BELOW];
    } else {
        number = ++own->holes_made;
        assert(number < own->holes_capacity);
        hole_at(own, number)->priority = (uint32_t)vr_mix64(number);
    }
    hole_at(own, number)->range = (struct vr_paged_range){low, high};
    tree_insert(own, &own->hole_root, number, VR_PAGED_BY_ADDRESS);
    enter_length(own, number);
    own->hole_count++;
}

static void erase_hole(struct vr_paged_shard *own, uint32_t number) {
    leave_length(own, number);
    tree_remove(own, &own->hole_root, number, VR_PAGED_BY_ADDRESS);
    hole_at(own, number)->children[VR_PAGED_BY_ADDRESS][BELOW] = own->spare_hole;
    own->spare_hole = number;
    own->hole_count--;
}

// Resizes a hole without changing its position among its neighbours.
static void resize_hole(struct vr_paged_shard *own, uint32_t number, uint64_t low, uint64_t high) {
    leave_length(own, number);
    hole_at(own, number)->range = (struct vr_paged_range){low, high};
    enter_length(own, number);
}

// Finds the last hole that begins at or below `address`, and the first above; 0: none.
static void find_around(const struct vr_paged_shard *own, uint64_t address, uint32_t *below, uint32_t *above) {
    *below = *above = 0;
    for (uint32_t at = own->hole_root; at != 0;) {
        const bool is_below = hole_at(own, at)->range.low <= address;
        *(is_below ? below : above) = at;
        at = hole_at(own, at)->children[VR_PAGED_BY_ADDRESS][is_below ? ABOVE : BELOW];
    }
}

// --- for other files ---------------------------------------------------------------------------------------------------------------------

enum vram_status vr_paged_hole_room(struct vr_paged_shard *own, size_t more) {
    if (own->hole_classes == NULL) own->hole_classes = calloc(1, sizeof *own->hole_classes);
    return own->hole_classes == NULL ? VRAM_NO_HOST_MEMORY : VR_GROW(own, holes, own->hole_count + more + 1);
}

void vr_paged_holes_free(struct vr_paged_shard *own) {
    free(own->holes);
    free(own->hole_classes);
}

void vr_paged_hole_cut(struct vr_paged_shard *own, uint64_t low, uint64_t high) {
    uint32_t number, above;
    find_around(own, low, &number, &above);
    assert(number != 0 && high <= hole_at(own, number)->range.high);
    const struct vr_paged_range before = hole_at(own, number)->range;
    if (before.low == low && before.high == high) {
        erase_hole(own, number);
    } else if (before.low == low) {
        resize_hole(own, number, high, before.high);
    } else {
        resize_hole(own, number, before.low, low);
        if (before.high != high) insert_hole(own, high, before.high);
    }
}

void vr_paged_hole_add(struct vr_paged_shard *own, uint64_t low, uint64_t high) {
    uint32_t below, above;
    find_around(own, low, &below, &above);
    assert((below == 0 || hole_at(own, below)->range.high <= low) && (above == 0 || high <= hole_at(own, above)->range.low));
    const bool joins_below = below != 0 && hole_at(own, below)->range.high == low;
    const bool joins_above = above != 0 && hole_at(own, above)->range.low == high;
    if (joins_below && joins_above) {
        const uint64_t end = hole_at(own, above)->range.high;
        erase_hole(own, above);
        resize_hole(own, below, hole_at(own, below)->range.low, end);
    } else if (joins_below) {
        resize_hole(own, below, hole_at(own, below)->range.low, high);
    } else if (joins_above) {
        resize_hole(own, above, low, hole_at(own, above)->range.high);
    } else {
        insert_hole(own, low, high);
    }
}

// --- runs -------------------------------------------------------------------------------------------------------------------------------

static void flush_run(const struct vr_paged_runs *runs, struct vr_paged_range range) {
    if (range.low == range.high) return;
    (runs->cuts ? vr_paged_hole_cut : vr_paged_hole_add)(runs->own, range.low, range.high);
}

static void flush_ended(struct vr_paged_runs *runs) {
    for (uint32_t i = runs->count; i-- > 0;) {
        if (runs->items[i].page == runs->pages) continue; // the last page continued it
        flush_run(runs, runs->items[i].range);
        runs->items[i] = runs->items[--runs->count];
    }
}

static void continue_run(struct vr_paged_runs *runs, uint64_t low, uint64_t high) {
    uint32_t at = 0;
    while (at < runs->count && runs->items[at].range.high != low) at++;
    if (at == VR_PAGED_MOST_RUNS) {
        flush_run(runs, (struct vr_paged_range){low, high});
        return;
    }
    if (at == runs->count) runs->items[runs->count++].range.low = low;
    runs->items[at].range.high = high;
    runs->items[at].page = runs->pages;
}

void vr_paged_runs_add(struct vr_paged_runs *runs, const struct vr_paged_page *page, uint64_t low, uint64_t high) {
    runs->pages++;
    const struct vr_paged_window *window = page->windows + page->window_count;
    for (uint32_t left = page->open_count; left != 0;) {
        if (!(--window)->has_holes) continue;
        continue_run(runs, window->address + low, window->address + high);
        left--;
    }
    flush_ended(runs);
}

void vr_paged_runs_flush(struct vr_paged_runs *runs) {
    for (uint32_t i = 0; i < runs->count; i++) flush_run(runs, runs->items[i].range);
    runs->count = 0;
}

// Returns the shortest hole of a class with at least `size` bytes, the lowest if there are several.
static uint32_t fit_in(const struct vr_paged_shard *own, unsigned class, uint64_t size) {
    uint32_t best = 0;
    for (uint32_t at = own->hole_classes->roots[class]; at != 0;) {
        const bool fits = length_of(hole_at(own, at)) >= size;
        if (fits) best = at;
        at = hole_at(own, at)->children[VR_PAGED_BY_LENGTH][fits ? BELOW : ABOVE];
    }
    return best;
}

const struct vr_paged_range *vr_paged_hole_fit(const struct vr_paged_shard *own, uint64_t size) {
    if (own->hole_classes == NULL) return NULL;
    const unsigned class = class_of(size);
    uint32_t best = fit_in(own, class, size);
    uint64_t left = own->hole_classes->some[class / 64] & ~(uint64_t)1 << class % 64;
    for (unsigned word = class / 64; best == 0 && word < WORDS; left = ++word < WORDS ? own->hole_classes->some[word] : 0) {
        if (left != 0) best = fit_in(own, word * 64 + (unsigned)__builtin_ctzll(left), size);
    }
    return best == 0 ? NULL : &hole_at(own, best)->range;
}

const struct vr_paged_range *vr_paged_hole_before(const struct vr_paged_shard *own, uint64_t address) {
    uint32_t below, above;
    if (address == 0) return NULL;
    find_around(own, address - 1, &below, &above);
    return below != 0 && hole_at(own, below)->range.high == address ? &hole_at(own, below)->range : NULL;
}

const struct vr_paged_range *vr_paged_hole_above(const struct vr_paged_shard *own, uint64_t address) {
    uint32_t below, above;
    find_around(own, address, &below, &above);
    return above == 0 ? NULL : &hole_at(own, above)->range;
}

// --- the free ranges of a page ----------------------------------------------------------------------------------------------------------

void vr_paged_change_holes(struct vr_paged_page *page, struct vr_paged_window *window, bool has_holes) {
    uint64_t low = 0;
    if (window->has_holes == has_holes) return;
    for (size_t i = 0; i <= page->used_count; i++) {
        const uint64_t high = i < page->used_count ? page->used[i].low : page->size;
        if (high > low) (has_holes ? vr_paged_hole_add : vr_paged_hole_cut)(window->own, window->address + low, window->address + high);
        low = i < page->used_count ? page->used[i].high : page->size;
    }
    window->has_holes = has_holes;
    page->open_count += has_holes ? 1 : UINT32_MAX;
}

void vr_paged_close_holes(struct vr_paged_page *page) {
    for (size_t i = 0; i < page->window_count; i++) vr_paged_change_holes(page, &page->windows[i], false);
}

void vr_paged_open_holes(struct vr_paged_page *page) {
    bool is_open = page->own->is_small;
    for (size_t i = page->window_count; i-- > 0 && !is_open;) {
        if (page->windows[i].own != page->own) continue;
        vr_paged_change_holes(page, &page->windows[i], true);
        is_open = page->own->device->few_windows != 0;
    }
}
