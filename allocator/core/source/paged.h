// paged.h: memory of the large pool, made of pages that may be mapped at several addresses (paged:True, allocator.md §paged-memory).
//
// A page is physical memory that belongs to one shard at a time; only a wholly free page moves to another shard. A window is one mapping of
// a page. A slot is an address and a size that was handed out once: a block record that is kept. A physical byte belongs to at most one
// live block, whichever windows show it:
//   - A slot may be handed out if no live slot of its shard shares a physical byte with it, and all its pages belong to its shard. The fast
//     path finds one by its exact size (vr_paged_find()) and checks the bits of the slots that overlap it, 64 at a time, without touching a
//     page.
//   - No contiguous run of windows shows a page twice.
// The slow path updates pages and holes only when it needs them (vr_paged_settle()), for all slots handed out and freed since.
//
// The device's lock guards which slots are live. Everything else is also guarded by the device's mutex.
#ifndef VR_CORE_SOURCE_PAGED_H
#define VR_CORE_SOURCE_PAGED_H

#include "base/hash.h"
#include "core/pool.h"
#include "core/source/source_ops.h"

// The size of the largest page. A new page is at most 1/VR_PAGED_LADDER of the memory held (for a huge request: including it).
#define VR_PAGED_LARGEST (64 * VR_MIB)
enum { VR_PAGED_LADDER = 256, VR_PAGED_MOST_FRESH = 16384 };

struct vr_paged_range {
    uint64_t low, high;
};

// A hole: free bytes behind adjacent windows. It is in two trees; `children` are its children in each.
enum vr_paged_hole_order { VR_PAGED_BY_ADDRESS, VR_PAGED_BY_LENGTH };
struct vr_paged_hole {
    struct vr_paged_range range;
    uint32_t children[2][2];
    uint32_t priority; // in both trees
};

// A shard's holes by classes of length, 16 per power of two. Each class has a tree by length and address.
enum { VR_PAGED_CLASSES = 512 };
struct vr_paged_classes {
    uint64_t some[VR_PAGED_CLASSES / 64]; // a bit for each class that has a hole
    uint32_t roots[VR_PAGED_CLASSES];
};

// The bytes of a page that a slot shows, or that a live slot uses.
struct vr_paged_view {
    uint64_t low, high;
    uint32_t slot;
    uint32_t shard; // of a linked slot: the number of its shard
};

struct vr_paged_window {
    uint64_t address;
    struct vr_paged_shard *own;
    uint64_t last_use; // the device's count of settled uses
    uint32_t live;     // number of live slots in it
    bool away;         // its page sleeps: nothing is mapped there
    bool has_holes;    // the free bytes behind it are in holes of `own`, which also owns the page
};

// Where a recording shows bytes of a page: each byte at one address at a time, that of the window through which it was last handed out.
struct vr_paged_shown {
    uint64_t low, high;
    uint64_t base; // of the window
};

// AHEAD: free, with one window, not in use by its shard yet, and in no hole (vr_paged_claim()).
enum vr_paged_list { VR_PAGED_FULL, VR_PAGED_FREE, VR_PAGED_PARTIAL, VR_PAGED_AHEAD, VR_PAGED_LISTS };

struct vr_paged_page {
    uint64_t handle; // meaningless while size is 0, which marks an unused entry
    uint64_t size;
    struct vr_paged_shard *own;
    uint64_t used_bytes;
    struct vr_paged_view *used; // by address
    size_t used_count, used_capacity;
    struct vr_paged_window *windows;
    size_t window_count, windows_capacity;
    uint32_t open_count;         // of windows that have holes
    struct vr_paged_view *views; // views of linked slots
    size_t view_count, views_capacity;
    uint32_t slots_made;          // number of slots made on it
    uint64_t freed;               // when it became wholly free, in the device's `uses`
    struct vr_paged_shown *shown; // all its bytes, by position in the page; empty before the first window
    size_t shown_count, shown_capacity;
    uint32_t previous, next; // in its list
    uint8_t list;            // enum vr_paged_list
    size_t dropped;          // while the device is closed: number of windows dropped
    bool away;               // its pool sleeps: it has no memory and no handle
    bool uncertain;          // its pool sleeps, but some windows are still mapped
};

// A new slot is not linked: it does not know which slots overlap it, and its pages only know the bytes it uses. While it is live, it covers
// the linked slots that it overlaps, which then cannot be handed out. When its size is requested again and its windows still exist, it is
// linked: overlapping slots then know each other by bits, and the fast path finds it. So a size that is requested only once costs no links.
// Of the free slots that are not linked, the device keeps those freed last.
//
// The state of 64 slots, a bit for each. live: handed out. dirty: listed, because its pages may not show its state yet.
struct vr_paged_marks {
    uint64_t live, dirty;
};

// Slots that overlap a slot: those of one word of vr_paged_device.marks.
struct vr_paged_way {
    uint64_t slots;
    uint32_t word;
};

struct vr_paged_slot {
    struct vr_paged_shard *own; // NULL: the entry is unused
    uint32_t size;              // index in its shard's sizes
    uint32_t place;             // its place in that size
    uint32_t first_waiting;     // first of the slots hidden because of it
    uint32_t next_waiting;      // next of the slots hidden because of the same one
    uint32_t blocker;           // a live slot that overlaps it, while it is hidden; 0: not hidden
    uint32_t foreign;           // number of its pages that belong to another shard
    uint32_t block;
    uint32_t way_count;
    struct vr_paged_way *ways; // overlapping slots of its shard, without itself
    size_t ways_capacity;
    uint64_t last_use;  // the device's count of settled uses
    bool applied;       // its pages show it as live
    bool linked;        // it knows the slots that overlap it
    bool covers;        // it is not linked, and was live at the last settling or since
    bool is_in_the_way; // it covers a linked slot
};

// The part of a slot that the fast path reads: its first two ways, and what is needed to hand it out.
struct vr_paged_look {
    uint64_t slots[2]; // 0: no such way
    uint32_t words[2];
    uint32_t slot;
    uint32_t block : 31;
    uint32_t more : 1; // there are further ways
};

// 64 slots of one size. A bit of `ready` is set for a slot that is not live, not hidden, and whose pages all belong to its shard. A slot
// found blocked may be hidden until the live slot that blocked it is freed. A slot found covered loses its bit until it is uncovered.
struct vr_paged_word {
    uint64_t ready;
    uint64_t used;  // the slot exists
    uint64_t fresh; // the slot is neither linked nor live
};

// The slots of one size, in order of creation.
struct vr_paged_size {
    struct vr_paged_word first;  // words[0]; most sizes have no other
    struct vr_paged_look *looks; // 64 per word
    size_t word_count;
    struct vr_paged_word *words; // words[0] is unused
    uint64_t *some;              // a bit per word except the first: the word may have a ready slot
    size_t words_capacity, some_capacity, looks_capacity;
    size_t count;       // number of slots
    size_t fresh_count; // slots neither linked nor live. While there are any, the fast path finds no slot:
                        // they are linked first, so that the lowest place is used first
    size_t full;        // the number of words at the beginning without a free place
    uint64_t period;    // in which a slot of it was made last (vr_paged_device.period)
    uint32_t next;      // next unused entry; 0: the last
};

// A size and its entry, at the position that the size gives. Most requests find their size here.
struct vr_paged_hint {
    uint64_t bytes;
    uint64_t number; // 0: the entry is empty
};
enum { VR_PAGED_HINTS = 64 };

// Reserved addresses. Windows are added at its end; an address never shows a page other than its first.
struct vr_paged_region {
    uint32_t segment;
    uint64_t address, size;
    uint64_t end;    // where the next window is mapped
    uint32_t *units; // 1 + page, at the unit where its window begins; else 0. In reserved address space, so untouched pages are zero
};

// The source's data for a shard.
struct vr_paged_shard {
    struct vr_source_kept kept; // source of its segments
    struct vr_paged_device *device;
    struct vr_shard *shard;
    struct vr_paged_shard
        *small; // pages of its small pool, a chain of blocks without slots. NULL: there is none, or this shard is that pool
    bool is_small;
    bool parked;                     // of a destroyed pool: has no pages, and `shard` is the default one of its stream
    struct vr_paged_region *regions; // the last one grows
    size_t region_count, regions_capacity;
    struct vr_paged_hole *holes;                          // free bytes behind windows, joined if adjacent; [0] is unused
    size_t hole_count, holes_capacity;                    // the capacity is larger than the count
    uint32_t holes_made;                                  // number of entries of `holes` ever used
    uint32_t spare_hole;                                  // first unused entry; 0: none
    uint32_t hole_root;                                   // of the tree by address
    struct vr_paged_classes *hole_classes;                // NULL: no hole yet
    uint32_t first[VR_PAGED_LISTS], last[VR_PAGED_LISTS]; // pages; the free ones in the order in which they became free. 0: none
    uint64_t free_bytes;                                  // bytes of wholly free pages
    struct vr_map numbers;                                // size -> its entry
    struct vr_paged_hint hints[VR_PAGED_HINTS];           // sizes requested lately
    struct vr_paged_size *sizes;                          // [0] is unused
    size_t size_count, sizes_capacity;
    uint32_t spare_size;   // first unused entry; 0: none
    uint32_t *spare_slots; // unused entries of the device's slots; all 64 of a word of marks belong to one shard
    size_t spare_slot_count, spare_slots_capacity;
    size_t entries; // number of its entries, used or unused
    uint32_t *dirty;
    size_t dirty_count, dirty_capacity;
    size_t stale;    // free slots that still cover others: the fast path waits until these are uncovered
    uint64_t passed; // its stream has finished with pages freed before this moment (vr_paged_device.uses)
    uint64_t fence;  // an event of its stream; once complete, `passed` becomes `fence_at`; 0: none
    uint64_t fence_at;
    uint64_t asked;              // the round (vr_paged_device.rounds) in which `fence` was last queried for another shard's slot
    struct vr_paged_shard *next; // the device's shard made before this one
    uint32_t number;             // its index in `numbered`
};

// In vr_paged_device.covered: the search found the slot covered, and cleared its ready bit.
#define VR_PAGED_NOT_READY ((uint32_t)1 << 31)

struct vr_paged_device {
    struct vr_source_kept kept;
    struct vr_device *device;
    struct vr_paged_shard *shards;
    struct vr_paged_shard **numbered; // the same shards by number
    size_t numbered_count, numbered_capacity;
    _Atomic uint64_t *unsettled; // a bit for each shard: it may have dirty slots. Set under the device's lock
    size_t unsettled_capacity;
    struct vr_paged_page *pages; // [0] is unused
    size_t page_count, pages_capacity;
    uint32_t *spare_pages;
    size_t spare_page_count, spare_pages_capacity;
    struct vr_paged_slot *slots;  // [0] is unused
    struct vr_paged_marks *marks; // one bit per slot
    uint32_t *covered; // of each linked slot: number of views by which slots that are not linked cover it, and VR_PAGED_NOT_READY.
                       // Apart from the slots, because each new slot changes those of many others
    size_t slot_count, slots_capacity, marks_capacity, covered_capacity;
    uint64_t unit;
    uint64_t held_bytes;
    uint64_t ahead_bytes; // of these, made ahead and not claimed yet
    uint64_t live_pages;
    uint64_t window_count;
    uint64_t period;                              // number of the present period of requests, from 1 (paged_windows.c)
    uint64_t slots_made, slots_reused, sizes_met; // in this period: new slots, uses of linked slots, different sizes of the new slots
    uint32_t few_windows;                         // number of further periods in which pages keep few windows; 0: many are kept
    uint64_t uses;
    uint64_t rounds;              // number of requests that searched for slots with other shards' pages
    size_t live_slots;            // slots that exist, whether live or not
    struct vr_paged_shard *grown; // the shard that grew last; pages are made ahead for it
    struct vr_paged_ahead *ahead; // the thread that makes them; NULL: none
    bool fills;                   // it is making them, until there are enough
    bool is_warm;                 // the option warm is satisfied
    size_t prune_at;              // number of slots at which they are pruned again (paged_slots.c)
    struct vr_paged_fresh {       // slots that were freed and are not linked, the last VR_PAGED_MOST_FRESH
        uint32_t slot;
        uint64_t last_use; // if it differs from the slot's, the slot was handed out, linked and used, or forgotten since
    } * fresh;
    uint64_t fresh_made; // number ever entered
};

// The source's data for a shard and for a device. NULL: none of its memory is made of pages.
VR_INLINE struct vr_paged_shard *vr_paged_of(const struct vr_shard *shard) { return (struct vr_paged_shard *)(void *)shard->kept; }
VR_INLINE struct vr_paged_device *vr_paged_device(const struct vr_device *device) { return (struct vr_paged_device *)(void *)device->kept; }

VR_INLINE struct vr_block *vr_paged_block_of(const struct vr_paged_slot *slot) {
    return vr_block_at(slot->own->shard->device->allocator, slot->block);
}

// --- slots: paged_sizes.c, paged_slots.c -----------------------------------------------------------------------------

VR_INLINE bool vr_paged_is_live(const struct vr_paged_device *device, uint32_t slot) {
    return (device->marks[slot / 64].live >> slot % 64 & 1) != 0;
}
VR_INLINE bool vr_paged_is_dirty(const struct vr_paged_device *device, uint32_t slot) {
    return (device->marks[slot / 64].dirty >> slot % 64 & 1) != 0;
}
// Marks a slot as handed out or freed. Its pages do not show it yet.
VR_INLINE void vr_paged_mark(struct vr_paged_shard *own, uint32_t number, bool live) {
    struct vr_paged_marks *marks = &own->device->marks[number / 64];
    const uint64_t slot = (uint64_t)1 << number % 64;
    marks->live = live ? marks->live | slot : marks->live & ~slot;
    if (VR_LIKELY((marks->dirty & slot) != 0)) return;
    marks->dirty |= slot;
    if (own->dirty_count == 0) {
        _Atomic uint64_t *word = &own->device->unsettled[own->number / 64];
        const uint64_t bit = (uint64_t)1 << own->number % 64;
        if ((atomic_load_explicit(word, memory_order_relaxed) & bit) == 0) atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    }
    own->dirty[own->dirty_count++] = number;
}
// A free slot of exactly this size, and its bit in `ready`.
struct vr_paged_found {
    uint32_t block;
    uint32_t slot;
    uint64_t *ready, bit;
};
// Find such a slot, and hand it out.
bool vr_paged_find(const struct vr_shard *shard, uint64_t rounded, struct vr_paged_found *found);
void vr_paged_take_found(struct vr_shard *shard, const struct vr_paged_found *found);
// The same two by the slot's block: vr_paged_ready() returns it, or 0 if there is no such slot; vr_paged_take() hands it out.
// vr_paged_give() takes a freed block back.
uint32_t vr_paged_ready(const struct vr_shard *shard, uint64_t rounded);
void vr_paged_take(struct vr_shard *shard, uint32_t block);
void vr_paged_give(struct vr_shard *shard, uint32_t block);

// Enter a fresh slot under its size, with room from vr_paged_size_room(), and remove it.
void vr_paged_slot_enter(struct vr_paged_shard *own, uint32_t slot, uint64_t size);
void vr_paged_slot_remove(struct vr_paged_shard *own, uint32_t slot);
// Updates the fast path's copy of a slot after its overlaps changed.
void vr_paged_slot_look(const struct vr_paged_slot *slot);
enum vram_status vr_paged_size_room(struct vr_paged_shard *own, uint64_t size);
void vr_paged_sizes_free(struct vr_paged_shard *own);
VR_INLINE struct vr_paged_word *vr_paged_word_at(struct vr_paged_size *size, size_t word) {
    return VR_LIKELY(word == 0) ? &size->first : &size->words[word];
}
VR_INLINE void vr_paged_ready_set(struct vr_paged_shard *own, const struct vr_paged_slot *slot) {
    struct vr_paged_size *size = &own->sizes[slot->size];
    const uint32_t word = slot->place / 64;
    vr_paged_word_at(size, word)->ready |= (uint64_t)1 << slot->place % 64;
    if (VR_UNLIKELY(word != 0)) size->some[word / 64] |= (uint64_t)1 << word % 64;
}
// Sets the ready bit of a slot that is not live, unless it is known to be blocked.
VR_INLINE void vr_paged_ready_set_if_free(const struct vr_paged_slot *slot) {
    const struct vr_paged_device *device = slot->own->device;
    if (slot->linked && slot->foreign == 0 && slot->blocker == 0 && (device->covered[slot - device->slots] & VR_PAGED_NOT_READY) == 0)
        vr_paged_ready_set(slot->own, slot);
}
// Set and clear the fresh bit of a slot that is not linked. It is set while the slot is not live.
VR_INLINE void vr_paged_fresh_set(const struct vr_paged_slot *slot) {
    struct vr_paged_size *size = &slot->own->sizes[slot->size];
    vr_paged_word_at(size, slot->place / 64)->fresh |= (uint64_t)1 << slot->place % 64;
    size->fresh_count++;
}
VR_INLINE void vr_paged_fresh_clear(const struct vr_paged_slot *slot) {
    struct vr_paged_size *size = &slot->own->sizes[slot->size];
    vr_paged_word_at(size, slot->place / 64)->fresh &= ~((uint64_t)1 << slot->place % 64);
    size->fresh_count--;
}
VR_INLINE void vr_paged_ready_clear(struct vr_paged_shard *own, const struct vr_paged_slot *slot) {
    vr_paged_word_at(&own->sizes[slot->size], slot->place / 64)->ready &= ~((uint64_t)1 << slot->place % 64);
}
// Returns a live slot that overlaps this one, or 0.
VR_INLINE uint32_t vr_paged_blocker(const struct vr_paged_device *device, const struct vr_paged_slot *slot) {
    const struct vr_paged_way *way = slot->ways;
    for (uint32_t i = 0; i < slot->way_count; i++) {
        const uint64_t live = device->marks[way[i].word].live & way[i].slots;
        if (live != 0) return way[i].word * 64 + (uint32_t)__builtin_ctzll(live);
    }
    return 0;
}
// Hides a slot until the live slot that blocks it is freed.
void vr_paged_hide(struct vr_paged_shard *own, uint32_t slot, uint32_t blocker);
// The first unhides all slots that `blocker` hides, the second one slot.
void vr_paged_unhide_all(struct vr_paged_device *device, struct vr_paged_slot *blocker);
void vr_paged_unhide(struct vr_paged_device *device, uint32_t slot);

// Makes a slot at a range whose bytes are all free. Its block is FREE and in no index. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_paged_slot_make(struct vr_paged_shard *own, uint64_t address, uint64_t size, uint32_t *block);
// Links the fresh slots of this size whose bytes are all free, because the size is requested again. Hides the others until a live slot is
// freed. NO_HOST_MEMORY.
enum vram_status vr_paged_link_free(struct vr_paged_shard *own, uint64_t size);
// Returns a live slot that shares a byte with this one, whose windows must exist. If there is none, returns 0, and *foreign is the number
// of its pages that belong to other shards.
uint32_t vr_paged_user(const struct vr_paged_shard *own, const struct vr_paged_slot *slot, uint32_t *foreign);
// Returns whether the windows of a slot that is not linked still exist.
bool vr_paged_is_mapped(const struct vr_paged_shard *own, const struct vr_paged_slot *slot);
// Links fresh slots before a search by the slow path, and first uncovers what freed slots still cover.
void vr_paged_search_fresh(struct vr_shard *shard, uint64_t size);
struct vr_paged_walk;
// vr_paged_cover(): a slot that is not linked became live: linked slots that share a byte of this page with it cannot be handed out.
// vr_paged_uncover() reverses it for all its pages.
void vr_paged_cover(struct vr_paged_shard *own, uint32_t slot, const struct vr_paged_walk *walk);
void vr_paged_uncover(struct vr_paged_shard *own, uint32_t slot);
// Forgets a slot that is neither live nor dirty.
void vr_paged_slot_forget(struct vr_paged_device *device, uint32_t slot);
// One of the slot's pages moved to another shard, or came back.
void vr_paged_slot_leave(struct vr_paged_device *device, uint32_t slot);
void vr_paged_slot_return(struct vr_paged_device *device, uint32_t slot);
// Keeps a freed slot that is not linked for a while.
void vr_paged_slot_keep(struct vr_paged_device *device, uint32_t slot);
// Forgets slots that were not used for long, if there are very many.
void vr_paged_slots_prune(struct vr_paged_device *device);

// --- pages: paged_pages.c -------------------------------------------------------------------------------------------------------------

VR_INLINE struct vr_paged_page *vr_paged_page_at(const struct vr_paged_device *device, uint32_t page) { return &device->pages[page]; }
// Updates pages and holes for the slots handed out and freed since. NO_HOST_MEMORY changes nothing.
enum vram_status vr_paged_settle(struct vr_paged_device *device);
// Takes an entry for a page, in no list yet. NO_HOST_MEMORY.
enum vram_status vr_paged_page_take(struct vr_paged_device *device, uint32_t *page);
void vr_paged_page_give(struct vr_paged_device *device, uint32_t page);
void vr_paged_list_append(struct vr_paged_device *device, uint32_t page, enum vr_paged_list list);
void vr_paged_list_remove(struct vr_paged_device *device, uint32_t page);
// Moves a wholly free page to another shard. NO_HOST_MEMORY changes nothing.
enum vram_status vr_paged_page_move(struct vr_paged_device *device, uint32_t page, struct vr_paged_shard *to);

// --- what a recording shows: paged_shown.c ---------------------------------------------------------------------------------------------

// Reserves room for any change by the page's slots, with `views` of them linked. NO_HOST_MEMORY.
enum vram_status vr_paged_shown_room(struct vr_paged_page *page, size_t views);
// Shows bytes of a page at the window that begins at `base` from now on. Reports them as unmapped at the old addresses and mapped there.
void vr_paged_show(struct vr_paged_page *page, uint64_t low, uint64_t high, uint64_t base);
// Before a window is removed: shows its bytes at another window, or nowhere if it is the last.
void vr_paged_show_elsewhere(struct vr_paged_page *page, size_t window);

// --- holes: paged_holes.c -------------------------------------------------------------------------------------------------------------

// Reserves room for `more` holes than exist. NO_HOST_MEMORY.
enum vram_status vr_paged_hole_room(struct vr_paged_shard *own, size_t more);
void vr_paged_holes_free(struct vr_paged_shard *own);
// Cut a range out of the hole that contains it; add a range that overlaps no hole. Room must be reserved.
void vr_paged_hole_cut(struct vr_paged_shard *own, uint64_t low, uint64_t high);
void vr_paged_hole_add(struct vr_paged_shard *own, uint64_t low, uint64_t high);
// Ranges of successive pages to be cut out of the holes behind their windows, or added. Adjacent ranges are merged into runs: a run is cut
// out or added as a whole once a page does not continue it. Zeroed except `own` and `cuts`: empty.
enum { VR_PAGED_MOST_RUNS = 16 };
struct vr_paged_runs {
    struct vr_paged_shard *own;
    bool cuts;
    uint32_t count, pages;
    struct vr_paged_run {
        struct vr_paged_range range;
        uint32_t page; // the page that last continued it
    } items[VR_PAGED_MOST_RUNS];
};
void vr_paged_runs_add(struct vr_paged_runs *runs, const struct vr_paged_page *page, uint64_t low, uint64_t high);
// Cuts out or adds the run that is still open. Call it after the last page.
void vr_paged_runs_flush(struct vr_paged_runs *runs);
// vr_paged_change_holes() adds the free ranges of a page behind a window to the holes, or cuts them out. vr_paged_close_holes() cuts out
// all of them, before the page leaves its shard. vr_paged_open_holes() adds those behind windows of the page's shard. Room must be
// reserved.
void vr_paged_change_holes(struct vr_paged_page *page, struct vr_paged_window *window, bool has_holes);
void vr_paged_close_holes(struct vr_paged_page *page);
void vr_paged_open_holes(struct vr_paged_page *page);
// Returns the shortest hole of at least `size` bytes, the lowest if there are several, or NULL.
const struct vr_paged_range *vr_paged_hole_fit(const struct vr_paged_shard *own, uint64_t size);
// Returns the hole that ends at `address`, or NULL.
const struct vr_paged_range *vr_paged_hole_before(const struct vr_paged_shard *own, uint64_t address);
// Returns the first hole that begins above `address`, or NULL.
const struct vr_paged_range *vr_paged_hole_above(const struct vr_paged_shard *own, uint64_t address);

// --- regions: paged_regions.c ---------------------------------------------------------------------------------------------------------

// Gets addresses for windows of `size` bytes, from the last region or a new one. gap: leaves a gap before them. OUT_OF_MEMORY, DRIVER,
// NO_HOST_MEMORY.
enum vram_status vr_paged_addresses(struct vr_paged_shard *own, uint64_t size, bool gap, uint64_t *address);
// Returns the length of the table of a region of `size` bytes: a power of two, as for expandable segments (expandable.c).
size_t vr_paged_table_bytes(const struct vr_paged_device *device, uint64_t size);
// Returns the page whose window contains the address, or 0. *base: where the window begins.
uint32_t vr_paged_page_of(const struct vr_paged_device *device, const struct vr_paged_region *region, uint64_t address, uint64_t *base);
// Returns the shard's region that contains the address, or NULL.
struct vr_paged_region *vr_paged_region_of(const struct vr_paged_shard *own, uint64_t address);
// Walks the pages that a range of a region's addresses shows. The range must have no gap. Pages may move to other shards meanwhile.
struct vr_paged_walk {
    const struct vr_paged_device *device;
    const struct vr_paged_region *region;
    uint64_t at, end; // the rest of the range
    uint32_t number;
    struct vr_paged_page *page;
    uint64_t base;      // where the page's window begins, possibly before the range
    uint64_t low, high; // the part of the page within the range
};
VR_INLINE bool vr_paged_walk_next(struct vr_paged_walk *walk) {
    const struct vr_paged_region *region = walk->region;
    if (walk->at >= walk->end) return false;
    const uint64_t unit = (walk->at - region->address) / walk->device->unit;
    if (VR_LIKELY(region->units[unit] != 0)) { // every window except perhaps the first is entered at its beginning
        walk->number = region->units[unit] - 1;
        walk->base = region->address + unit * walk->device->unit;
    } else {
        walk->number = vr_paged_page_of(walk->device, region, walk->at, &walk->base);
    }
    assert(walk->number != 0);
    walk->page = vr_paged_page_at(walk->device, walk->number);
    const uint64_t top = walk->base + walk->page->size, stop = top < walk->end ? top : walk->end;
    walk->low = walk->at - walk->base;
    walk->high = stop - walk->base;
    walk->at = stop;
    return true;
}
VR_INLINE struct vr_paged_walk vr_paged_walk_range(const struct vr_paged_shard *own, const struct vr_paged_region *region, uint64_t low,
                                                   uint64_t high) {
    return (struct vr_paged_walk){.device = own->device, .region = region, .at = low, .end = high};
}
VR_INLINE struct vr_paged_walk vr_paged_walk_block(const struct vr_paged_shard *own, const struct vr_block *item) {
    return vr_paged_walk_range(own, vr_paged_region_of(own, item->address), item->address, item->address + item->size);
}
// Returns the region of a segment of pages. *own: the region's shard.
struct vr_paged_region *vr_paged_region_of_segment(const struct vr_device *device, const struct vr_segment *segment,
                                                   struct vr_paged_shard **own);

// --- windows: paged_windows.c ---------------------------------------------------------------------------------------------------------

// Maps pages in sequence, from `address` at the end of the last region, and gives the devices access. All or nothing.
enum vram_status vr_paged_map(struct vr_paged_shard *own, const uint32_t *pages, size_t count, uint64_t address);
// Enters an existing mapping into the tables. Room must be reserved. (For vr_paged_map(), and for pages made ahead.)
void vr_paged_window_add(struct vr_paged_shard *own, uint32_t page, uint64_t address);
// Unmaps one window of a page. It must show no live slot. Forgets the slots that it shows.
enum vram_status vr_paged_unmap(struct vr_paged_device *device, uint32_t page, size_t window);
// Unmaps windows that are not needed, if there are very many. Waits for the streams. Settle first.
enum vram_status vr_paged_evict(struct vr_paged_device *device);
// vr_paged_may_wait() returns whether the host may wait for all streams with windows; vr_paged_wait() waits. DRIVER.
bool vr_paged_may_wait(const struct vr_paged_device *device);
enum vram_status vr_paged_wait(const struct vr_paged_device *device);

// --- planning a new window: paged_plan.c -----------------------------------------------------------------------------------------------

// A range of `size` bytes: the high end of a partly used page, whole units, and the low end of another page. 0: no such page.
struct vr_paged_plan {
    uint32_t head, tail;
    uint64_t head_bytes, tail_bytes;
    uint64_t units;
};
// few: plans as few units as possible, whatever remains of the ends, because units must be made or are scarce. NO_HOST_MEMORY.
enum vram_status vr_paged_plan(const struct vr_paged_shard *own, uint64_t size, bool few, struct vr_paged_plan *plan);

// --- growth ahead: paged_ahead.c --------------------------------------------------------------------------------------------------------

// Called after the shard had to grow. The thread of the option grow_ahead, which is started with the first growth, then makes more pages
// ahead.
void vr_paged_ahead_wake(struct vr_paged_shard *own);
// Makes a batch of pages ahead. Returns false if there are enough, or none can be made. Call it without locks. For the thread, and for
// tests that count.
bool vr_paged_ahead_step(struct vr_device *device);
// Makes the pages that the option warm requests, on this thread, if there is no thread for it.
void vr_paged_warm(struct vr_paged_shard *own);
// Turns the oldest page that was made ahead (*page; 0: there was none), or all of them, into ordinary free memory of the shard.
// NO_HOST_MEMORY.
enum vram_status vr_paged_claim(struct vr_paged_shard *own, uint32_t *page);
enum vram_status vr_paged_claim_all(struct vr_paged_shard *own);
// Ends the thread. Call it without locks.
void vr_paged_ahead_end(struct vr_device *device);

// --- the small pool: paged_small.c ------------------------------------------------------------------------------------------------------

// Returns the address at which the shard's small pool shows a page, or 0.
uint64_t vr_paged_small_window(const struct vr_paged_shard *own, uint32_t page);
// Turns a wholly free page with such a window into free memory of the small pool. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_paged_small_take(struct vr_paged_shard *own, uint32_t page);
// Take back all pages that lie in free blocks of the small pool. The second one works while the pool sleeps.
enum vram_status vr_paged_small_return(struct vr_paged_shard *own);
enum vram_status vr_paged_small_return_asleep(struct vr_paged_shard *own);

// --- pages change shards: paged_moves.c ------------------------------------------------------------------------------------------------

// Takes free pages from other shards until `own` has `enough` wholly free bytes. wait: makes its stream (never the host) wait for streams
// that have not finished with them. Pages of another pool on its own stream need no wait.
enum vram_status vr_paged_take_from_others(struct vr_paged_shard *own, uint64_t enough, bool wait);
// Takes the pages that other shards have of a slot of this size, if that needs no wait. The slot is then ready, and nothing need be mapped.
enum vram_status vr_paged_take_for_slot(struct vr_paged_shard *own, uint64_t size);

// For a private pool: takes a page for its small pool, if possible one that this pool shows already.
enum vram_status vr_paged_take_for_small(struct vr_paged_shard *own);

// --- private pools: paged_source.c -----------------------------------------------------------------------------------------

// Returns whether a graph may contain addresses of the shard's pool. The pool then keeps its pages and windows.
VR_INLINE bool vr_paged_is_kept(const struct vr_paged_shard *own) { return own->shard->owner != NULL && own->shard->owner->captured; }
// Adds (1) or subtracts (-1) a page of the shard's pool, which exists as long as it has pages.
VR_INLINE void vr_paged_count_page(const struct vr_paged_shard *own, int sign) {
    if (own->shard->owner != NULL) own->shard->owner->segments += (uint32_t)sign;
}
// Gives the shard of a private pool the data of a destroyed pool, or returns NULL if there is none.
struct vr_paged_shard *vr_paged_unpark(struct vr_shard *shard);
// Parks the data of a shard whose pool is destroyed. It must have no pages, and the default shard of its stream must exist.
void vr_paged_park(struct vr_shard *shard);
// Moves the free memory of a pool without references to the default pools of the same streams. What cannot move stays.
void vr_paged_hand_over(struct vram_pool *pool);
// Releases free pages of the pool like vr_paged_release(). Those of a pool without references go to the default pools instead.
enum vram_status vr_paged_release_pool(struct vram_pool *pool);

// --- sleep: paged_sleep.c ---------------------------------------------------------------------------------------------------------------

// vacate() and populate() of both sources (source_ops.h).
void vr_paged_vacate(struct vr_device *device, struct vr_segment *segment, uint64_t *held);
enum vram_status vr_paged_populate(struct vr_device *device, struct vr_segment *segment, uint64_t address, uint64_t size);
// Returns whether the page mapped at an address belongs to the segment's pool. *end: where its window ends.
bool vr_paged_is_own(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t *end);
// Removes the memory of every page of the pool (NULL: the default pools) behind all its windows, or counts it in *held.
void vr_paged_vacate_pages(struct vr_device *device, const struct vram_pool *pool, uint64_t *held);
// Provides memory for the pool's pages that only other pools' windows show.
enum vram_status vr_paged_populate_rest(struct vr_device *device, const struct vram_pool *pool);
// Returns whether every page of the pool has its memory behind all its windows.
bool vr_paged_all_there(const struct vr_device *device, const struct vram_pool *pool);
// Forgets free pages of a sleeping pool (NULL: the default pools). They need no memory, and no block uses what the driver kept.
void vr_paged_asleep_trim(struct vr_device *device, const struct vram_pool *pool);

// --- growth: paged.c ---------------------------------------------------------------------------------------------------------------------

// Get memory for a request of the large pool, or of the small one (at most one unit), like grow() of a source.
enum vram_status vr_paged_grow_large(struct vr_paged_shard *own, uint64_t size, uint32_t *block);
enum vram_status vr_paged_grow_small(struct vr_paged_shard *own, uint64_t size, uint32_t *block);

// --- the source: paged_source.c, paged_windows.c ---------------------------------------------------------------------------------------

// Gets the source's data for the shard, made with its first request. NO_HOST_MEMORY.
enum vram_status vr_paged_shard_of(struct vr_shard *shard, struct vr_paged_shard **own);
// Returns one wholly free page to the driver. DRIVER if the driver keeps a window: the page then stays free, with the windows that are
// left, and a later release tries again.
enum vram_status vr_paged_page_release(struct vr_paged_device *device, uint32_t page);
// Destroys a page without windows whose memory is no longer counted, or never was.
void vr_paged_page_destroy(struct vr_paged_device *device, uint32_t page);
// Returns wholly free pages of the device to the driver, those that became free first, until `enough` bytes are returned. Waits for their
// streams. DRIVER if the driver refuses some. Under all locks, with the context current.
enum vram_status vr_paged_release(struct vr_device *device, uint64_t enough);
// Returns whether the free memory in the device's pages cannot serve a request of the large pool. Under all locks.
bool vr_paged_must_grow(struct vr_shard *shard, uint64_t size);
// Lists the mapped part of a segment as blocks by address: live blocks, and FREE ones between them, whose bytes may be in use at another
// address. The caller frees *blocks. NO_HOST_MEMORY.
enum vram_status vr_paged_blocks(const struct vr_device *device, const struct vr_segment *segment, struct vr_block **blocks, size_t *count);
// count_held() and each_slot() of the source.
void vr_paged_count_held(const struct vr_device *device, const struct vram_pool *only, struct vr_held_bytes *held);
enum vram_status vr_paged_each_slot(const struct vr_device *device, const struct vram_pool *only, vr_slot_visitor visit, void *user);
// Adds the bytes of unused pages, and raises *largest to the longest free range.
void vr_paged_cached(struct vr_device *device, uint64_t *bytes, uint64_t *largest);
// Checks the invariants, recomputed from the live blocks. MISMATCH, NO_HOST_MEMORY. Under all locks.
enum vram_status vr_paged_check(struct vr_device *device, struct vram_error *error);
// Frees the tables. Only when the device is closed, after the segments were dropped.
void vr_paged_close(struct vr_device *device);

#endif
