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
};

static int by_bytes(const void *a, const void *b) {
    const struct page_end *x = a, *y = b;
    return x->bytes != y->bytes ? VR_ORDER(x->bytes, y->bytes) : VR_ORDER(x->page, y->page);
}

static enum vram_status add_end(struct page_ends *ends, uint64_t bytes, uint32_t page) {
    if (bytes == 0 && page != 0) return VRAM_OK;
    VR_TRY(VR_GROW(ends, items, ends->count + 1));
    ends->items[ends->count++] = (struct page_end){bytes, page};
    return VRAM_OK;
}

static enum vram_status collect_ends(const struct vr_paged_shard *own, struct page_ends *high, struct page_ends *low) {
    VR_TRY(add_end(high, 0, 0));
    VR_TRY(add_end(low, 0, 0));
    for (uint32_t page = own->first[VR_PAGED_PARTIAL]; page != 0; page = vr_paged_page_at(own->device, page)->next) {
        const struct vr_paged_page *item = vr_paged_page_at(own->device, page);
        VR_TRY(add_end(high, item->size - item->used[item->used_count - 1].high, page));
        VR_TRY(add_end(low, item->used[0].low, page));
    }
    return VRAM_OK;
}

// Keeps only the ends with `least` to `most` bytes.
static void keep_ends(struct page_ends *ends, uint64_t least, uint64_t most) {
    size_t kept = 0;
    for (size_t i = 0; i < ends->count; i++)
        if (ends->items[i].bytes >= least && ends->items[i].bytes <= most) ends->items[kept++] = ends->items[i];
    ends->count = kept;
}

// Finds the pair, of two different pages, with the fewest bytes that has at least `need`; among equals the one with the shortest head.
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

// Moves the two longest to the end.
static void longest_last(struct page_ends *ends) {
    for (size_t place = ends->count; place-- > 0 && place + 2 >= ends->count;) {
        size_t longest = place;
        for (size_t i = 0; i < place; i++)
            if (by_bytes(&ends->items[i], &ends->items[longest]) > 0) longest = i;
        const struct page_end moved = ends->items[place];
        ends->items[place] = ends->items[longest];
        ends->items[longest] = moved;
    }
}

// Returns the most bytes that a pair of two different pages has. The two longest of each must be last.
static uint64_t most_of(const struct page_ends *high, const struct page_ends *low) {
    uint64_t most = 0;
    for (size_t i = high->count; i-- > 0 && i + 2 >= high->count;) {
        for (size_t k = low->count; k-- > 0 && k + 2 >= low->count;) {
            if (high->items[i].page == low->items[k].page && high->items[i].page != 0) continue;
            const uint64_t sum = high->items[i].bytes + low->items[k].bytes;
            if (sum > most) most = sum;
        }
    }
    return most;
}

// Keeps the ends that can be part of a pair with `need` to `most` bytes. The longest of each must be last.
static void keep_useful(struct page_ends *high, struct page_ends *low, uint64_t need, uint64_t most) {
    const uint64_t highest = high->items[high->count - 1].bytes, lowest = low->items[low->count - 1].bytes;
    keep_ends(high, need > lowest ? need - lowest : 0, most);
    keep_ends(low, need > highest ? need - highest : 0, most);
    if (low->count != 0) qsort(low->items, low->count, sizeof *low->items, by_bytes);
}

static void choose_ends(struct page_ends *high, struct page_ends *low, uint64_t size, uint64_t unit, bool few, struct vr_paged_plan *plan) {
    const uint64_t whole = vr_round_up(size, unit) / unit, most = most_of(high, low);
    struct page_end head = {0}, tail = {0};
    const uint64_t units = !few ? whole - 1 : most >= size ? 0 : vr_round_up(size - most, unit) / unit;
    const uint64_t need = size - (units < whole ? units : whole - 1) * unit;
    *plan = (struct vr_paged_plan){.units = whole};
    if (units >= whole) return;
    keep_useful(high, low, need, few ? UINT64_MAX : need + BORROW_MOST);
    if (tightest_pair(high, low, need, &head, &tail) && (few || head.bytes + tail.bytes - need <= BORROW_MOST)) {
        *plan = (struct vr_paged_plan){
            .head = head.page, .tail = tail.page, .head_bytes = head.bytes, .tail_bytes = tail.bytes, .units = units};
    }
}

enum vram_status vr_paged_plan(const struct vr_paged_shard *own, uint64_t size, bool few, struct vr_paged_plan *plan) {
    struct page_ends high = {0}, low = {0};
    const enum vram_status status = collect_ends(own, &high, &low);
    if (status == VRAM_OK) {
        longest_last(&high);
        longest_last(&low);
        choose_ends(&high, &low, size, own->device->unit, few, plan);
    }
    free(high.items);
    free(low.items);
    return status;
}
