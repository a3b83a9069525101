// Plans a new window: whole pages, and at its ends the free ends of partly used pages.
#include "core/source/paged.h"

#define BORROW_MOST (2 * VR_MIB) // bytes of borrowed ends that may be wasted while whole pages are free

// A free end of a page.
struct page_end {
    uint64_t bytes;
    uint32_t page;
};

struct page_ends {
    struct page_end *items;
    size_t count, items_capacity;
    struct page_end longest[2]; // the longest first
};

static int by_bytes(const void *a, const void *b) {
    const struct page_end *x = a, *y = b;
    return x->bytes != y->bytes ? VR_ORDER(x->bytes, y->bytes) : VR_ORDER(x->page, y->page);
}

static enum vram_status add_end(struct page_ends *ends, uint64_t bytes, uint32_t page) {
    VR_TRY(VR_GROW(ends, items, ends->count + 1));
    ends->items[ends->count++] = (struct page_end){bytes, page};
    if (bytes <= ends->longest[1].bytes) return VRAM_OK;
    const bool is_longest = bytes > ends->longest[0].bytes;
    if (is_longest) ends->longest[1] = ends->longest[0];
    ends->longest[is_longest ? 0 : 1] = (struct page_end){bytes, page};
    return VRAM_OK;
}

// Those of at most `most` bytes.
static enum vram_status collect_ends(const struct vr_paged_shard *own, uint64_t most, struct page_ends *high, struct page_ends *low) {
    VR_TRY(add_end(high, 0, 0));
    VR_TRY(add_end(low, 0, 0));
    for (uint32_t page = own->first[VR_PAGED_PARTIAL]; page != 0; page = vr_paged_page_at(own->device, page)->next) {
        const struct vr_paged_page *item = vr_paged_page_at(own->device, page);
        const uint64_t above = item->size - item->used[item->used_count - 1].high, below = item->used[0].low;
        if (above != 0 && above <= most) VR_TRY(add_end(high, above, page));
        if (below != 0 && below <= most) VR_TRY(add_end(low, below, page));
    }
    return VRAM_OK;
}

// Keeps only the ends with at least `least` bytes.
static void keep_ends(struct page_ends *ends, uint64_t least) {
    size_t kept = 0;
    for (size_t i = 0; i < ends->count; i++)
        if (ends->items[i].bytes >= least) ends->items[kept++] = ends->items[i];
    ends->count = kept;
}

// Finds a head and a tail in two different pages that together have at least `need` bytes, and as few as possible; among equal sums, the
// pair with the shortest head.
// Returns false if no pair is long enough. `low` must be sorted by length.
static bool tightest_pair(const struct page_ends *high, const struct page_ends *low, uint64_t need, struct page_end *head,
                          struct page_end *tail) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < high->count; i++) {
        const struct page_end *one = &high->items[i];
        size_t at; // the first that is enough
        VR_LOWER_BOUND(at, k, 0, low->count, one->bytes + low->items[k].bytes < need);
        if (at < low->count && one->page != 0 && low->items[at].page == one->page) at++;
        if (at == low->count || one->bytes + low->items[at].bytes > least) continue;
        if (one->bytes + low->items[at].bytes == least && by_bytes(one, head) > 0) continue;
        least = one->bytes + low->items[at].bytes;
        *head = *one;
        *tail = low->items[at];
    }
    return least != UINT64_MAX;
}

// Returns the most bytes that a pair of two different pages has.
static uint64_t most_of(const struct page_ends *high, const struct page_ends *low) {
    uint64_t most = 0;
    for (size_t i = 0; i < 4; i++) {
        const struct page_end *head = &high->longest[i / 2], *tail = &low->longest[i % 2];
        if (head->page == tail->page && head->page != 0) continue;
        if (head->bytes + tail->bytes > most) most = head->bytes + tail->bytes;
    }
    return most;
}

// Keeps only the ends that can be part of a pair with at least `need` bytes.
static void keep_useful(struct page_ends *high, struct page_ends *low, uint64_t need) {
    const uint64_t highest = high->longest[0].bytes, lowest = low->longest[0].bytes;
    keep_ends(high, need > lowest ? need - lowest : 0);
    keep_ends(low, need > highest ? need - highest : 0);
    if (low->count != 0) qsort(low->items, low->count, sizeof *low->items, by_bytes);
}

static void choose_ends(struct page_ends *high, struct page_ends *low, uint64_t size, uint64_t unit, bool few, struct vr_paged_plan *plan) {
    const uint64_t whole = vr_round_up(size, unit) / unit, most = most_of(high, low);
    struct page_end head = {0}, tail = {0};
    const uint64_t units = !few ? whole - 1 : most >= size ? 0 : vr_round_up(size - most, unit) / unit;
    *plan = (struct vr_paged_plan){.units = whole};
    if (units >= whole) return;
    const uint64_t need = size - units * unit;
    keep_useful(high, low, need);
    if (tightest_pair(high, low, need, &head, &tail) && (few || head.bytes + tail.bytes - need <= BORROW_MOST)) {
        *plan = (struct vr_paged_plan){
            .head = head.page, .tail = tail.page, .head_bytes = head.bytes, .tail_bytes = tail.bytes, .units = units};
    }
}

enum vram_status vr_paged_plan(const struct vr_paged_shard *own, uint64_t size, bool few, struct vr_paged_plan *plan) {
    struct page_ends high = {0}, low = {0};
    const uint64_t unit = own->device->unit, rest = size - (vr_round_up(size, unit) - unit);
    const enum vram_status status = collect_ends(own, few ? UINT64_MAX : rest + BORROW_MOST, &high, &low);
    if (status == VRAM_OK) choose_ends(&high, &low, size, unit, few, plan);
    free(high.items);
    free(low.items);
    return status;
}
