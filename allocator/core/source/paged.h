// paged.h: memory of the large pool made of pages that may be mapped at several addresses (paged:True, allocator.md §paged-memory).
//
// A page is physical memory of one shard at a time; only one that is wholly free changes hands. A window is one mapping of a page. A slot
// is an address and a size that was handed out once: a block record that stays. Physical bytes belong to at most one live block, whatever
// window shows them:
//   - a slot may be handed out while nothing blocks it: no live slot of its shard shares a physical byte with it, and no page of it is
//     another shard's. The fast way finds one by its exact size (vr_paged_find()), looks at the bits of those in its way, 64 at a time,
//     and touches no page;
//   - no run of windows without a gap shows a page twice.
// What a hand-out and a free change of pages and holes is caught up on when somebody looks (vr_paged_settle()): the slow way.
//
// What slots say of being live is guarded by the device's lock, all else by its mutex as well.
#ifndef VR_CORE_SOURCE_PAGED_H
#define VR_CORE_SOURCE_PAGED_H

#include "base/hash.h"
#include "core/pool.h"
#include "core/source/source_ops.h"

// The largest page, whatever is held; and a new one is at most this part of what is held (of a huge request: with it).
#define VR_PAGED_LARGEST (64 * VR_MIB)
enum { VR_PAGED_LADDER = 256, VR_PAGED_MOST_FRESH = 16384 };

struct vr_paged_range {
    uint64_t low, high;
};

// A hole: free bytes behind windows that lie side by side. It is in two trees, and the numbers are those of its children there.
enum vr_paged_hole_order { VR_PAGED_BY_ADDRESS, VR_PAGED_BY_LENGTH };
struct vr_paged_hole {
    struct vr_paged_range range;
    uint32_t children[2][2];
    uint32_t priority; // in both trees
};

// The holes of a shard by classes of their lengths, 16 per power of two: the root of each class's tree by length and address.
enum { VR_PAGED_CLASSES = 512 };
struct vr_paged_classes {
    uint64_t some[VR_PAGED_CLASSES / 64]; // a bit of each class that has a hole
    uint32_t roots[VR_PAGED_CLASSES];
};

// The bytes of a page that a slot shows, and those that a live one uses.
struct vr_paged_view {
    uint64_t low, high;
    uint32_t slot;
};

struct vr_paged_window {
    uint64_t address;
    struct vr_paged_shard *own;
    uint64_t last_use; // the device's count of settled uses
    uint32_t live;     // of slots in it
    bool away;         // of a page that sleeps: nothing is mapped there
    bool has_holes;    // free bytes behind it are in holes of `own`, whose page it is
};

// Where a recording has bytes of a page: each at one address at a time, that of the window through which they were handed out last.
struct vr_paged_shown {
    uint64_t low, high;
    uint64_t base; // of the window
};

// AHEAD: free, with one window, and nobody's yet: in no hole (vr_paged_claim()).
enum vr_paged_list { VR_PAGED_FULL, VR_PAGED_FREE, VR_PAGED_PARTIAL, VR_PAGED_AHEAD, VR_PAGED_LISTS };

struct vr_paged_page {
    uint64_t handle; // meaningless while size is 0: the entry is unused
    uint64_t size;
    struct vr_paged_shard *own;
    uint64_t used_bytes;
    struct vr_paged_view *used; // by address
    size_t used_count, used_capacity;
    struct vr_paged_window *windows;
    size_t window_count, windows_capacity;
    uint32_t open_count;         // of windows that have holes
    struct vr_paged_view *views; // of linked slots
    size_t view_count, views_capacity;
    uint32_t slots_made;          // on it
    uint64_t freed;               // when it became wholly free, in uses of the device
    struct vr_paged_shown *shown; // all bytes, by where they lie in the page; empty before the first window
    size_t shown_count, shown_capacity;
    uint32_t previous, next; // in its list
    uint8_t list;            // enum vr_paged_list
    size_t dropped;          // at the end: windows that are gone
    bool away;               // its pool sleeps: it has no memory, and no handle
    bool uncertain;          // its pool sleeps, and some windows are mapped still
};

// A new slot is not linked: it does not know which slots share bytes with it, and its pages do not know it but by the bytes that it uses.
// While it is live it covers the linked ones among them, which are not ready then. When its size is asked for again it is linked, if its
// windows are still there: they know each other by bits, and the fast way finds it. So sizes that do not come back cost no links. Of the
// slots that are free and not linked the device keeps those that were freed last.
//
// What is known of 64 slots, a bit of each: it is handed out; it is listed, because its pages may not say so.
struct vr_paged_marks {
    uint64_t live, dirty;
};

// Slots that share a byte with a slot: those of one word of vr_paged_device.marks.
struct vr_paged_way {
    uint64_t slots;
    uint32_t word;
};

struct vr_paged_slot {
    struct vr_paged_shard *own; // NULL: the entry is unused
    uint32_t size;              // of its shard's sizes
    uint32_t place;             // there
    uint32_t first_waiting;     // of those that are hidden because of it
    uint32_t next_waiting;      // of those that are hidden because of the same
    uint32_t blocker;           // a live slot in its way, while it is hidden; 0: it is not
    uint32_t foreign;           // of its pages, that are another shard's
    uint32_t block;
    uint32_t way_count;
    struct vr_paged_way *ways; // slots of its shard that share a byte with it, itself not
    size_t ways_capacity;
    uint64_t last_use;  // the device's count of settled uses
    bool applied;       // its pages say that it is live
    bool linked;        // it knows what is in its way
    bool covers;        // it is not linked, and was live when its pages were looked at last, or since
    bool is_in_the_way; // it covers a linked slot
    uint32_t covered;   // linked: by views of slots that are not, and cover it
};

// What the fast way looks at of a slot: the first two of its ways, and all that it needs to hand it out.
struct vr_paged_look {
    uint64_t slots[2]; // 0: there is no such way
    uint32_t words[2];
    uint32_t slot;
    uint32_t block : 31;
    uint32_t more : 1; // it has further ways
};

// 64 slots of one size. A bit of `ready` is set for those that are not live, whose pages are all of their shard, and that are not hidden: a
// slot that was found blocked may be, until the live slot that it was found by is freed.
struct vr_paged_word {
    uint64_t ready;
    uint64_t used;  // there is such a slot
    uint64_t fresh; // one that is not linked and not live
};

// Slots of one size, in the order in which they were made.
struct vr_paged_size {
    struct vr_paged_word first;  // words[0]; most sizes have no other
    struct vr_paged_look *looks; // 64 per word
    size_t word_count;
    struct vr_paged_word *words; // the first one is not used
    uint64_t *some;              // a bit per word but the first: it may have a ready slot
    size_t words_capacity, some_capacity, looks_capacity;
    size_t count;       // of slots
    size_t fresh_count; // of these, not linked and not live: the fast way finds none before they are linked, so that the lowest place goes
                        // first
    size_t full;        // so many words from the first have no place left
    uint64_t period;    // in which a slot of it was made last (vr_paged_device.period)
    uint32_t next;      // entry that no size has; 0: the last
};

// A size and its entry, at the place that the size gives: most requests find theirs here.
struct vr_paged_hint {
    uint64_t bytes;
    uint64_t number; // 0: the entry is empty
};
enum { VR_PAGED_HINTS = 64 };

// Reserved addresses. Windows are made at its end; an address never shows another page than its first.
struct vr_paged_region {
    uint32_t segment;
    uint64_t address, size;
    uint64_t end;    // where the next window is mapped
    uint32_t *units; // 1 + page, of the unit where its window begins; 0: none begins here. Reserved: pages of zeros
};

// What a shard has.
struct vr_paged_shard {
    struct vr_source_kept kept; // of its segments
    struct vr_paged_device *device;
    struct vr_shard *shard;
    struct vr_paged_shard *small; // its small pool's pages, which are no slots: a chain of blocks. NULL: none, or it is that itself
    bool is_small;
    bool parked;                     // of a pool that has ended: it has no pages, and `shard` is the default one of its stream
    struct vr_paged_region *regions; // the last one grows
    size_t region_count, regions_capacity;
    struct vr_paged_hole *holes;                          // free bytes behind windows, joined where they touch; [0] is unused
    size_t hole_count, holes_capacity;                    // one more is the capacity at least
    uint32_t holes_made;                                  // so many entries of `holes` have been in use
    uint32_t spare_hole;                                  // the first of those that no hole has; 0: none
    uint32_t hole_root;                                   // of the tree by address
    struct vr_paged_classes *hole_classes;                // NULL: it has had no hole yet
    uint32_t first[VR_PAGED_LISTS], last[VR_PAGED_LISTS]; // pages; the free ones by when they became free. 0: none
    uint64_t free_bytes;                                  // of wholly free pages
    struct vr_map numbers;                                // size -> its entry
    struct vr_paged_hint hints[VR_PAGED_HINTS];           // of sizes that were asked for lately
    struct vr_paged_size *sizes;                          // [0] is unused
    size_t size_count, sizes_capacity;
    uint32_t spare_size;   // the first of those that no size has; 0: none
    uint32_t *spare_slots; // entries of the device's slots: 64 marks are of one shard
    size_t spare_slot_count, spare_slots_capacity;
    size_t entries; // that it has, in use or spare
    uint32_t *dirty;
    size_t dirty_count, dirty_capacity;
    size_t stale;    // slots that cover others and are free: the fast way waits until these know
    uint64_t passed; // its stream is done with pages that became free before this moment (vr_paged_device.uses)
    uint64_t fence;  // an event of its stream that says so of `fence_at` once it is complete; 0: none
    uint64_t fence_at;
    uint64_t asked;              // in which round (vr_paged_device.rounds) that was asked last for a slot of another
    struct vr_paged_shard *next; // of the device: made before this one
    uint32_t number;             // of those that were made before it
};

struct vr_paged_device {
    struct vr_source_kept kept;
    struct vr_device *device;
    struct vr_paged_shard *shards;
    struct vr_paged_shard **numbered; // the same, by their numbers
    size_t numbered_count, numbered_capacity;
    _Atomic uint64_t *unsettled; // a bit of each: it may have dirty slots. Set under the device's lock
    size_t unsettled_capacity;
    struct vr_paged_page *pages; // [0] is unused
    size_t page_count, pages_capacity;
    uint32_t *spare_pages;
    size_t spare_page_count, spare_pages_capacity;
    struct vr_paged_slot *slots;  // [0] is unused
    struct vr_paged_marks *marks; // a bit of each
    size_t slot_count, slots_capacity, marks_capacity;
    uint64_t unit;
    uint64_t held_bytes;
    uint64_t ahead_bytes; // of these, nobody's yet
    uint64_t live_pages;
    uint64_t window_count;
    uint64_t period;                              // of requests; it begins with 1 (paged_windows.c)
    uint64_t slots_made, slots_reused, sizes_met; // in this period: new slots, uses of linked ones, different sizes of the new ones
    uint32_t few_windows;                         // for so many more periods a page has few windows, and holes behind one alone; 0: many
    uint64_t uses;
    uint64_t rounds;              // requests that looked for slots whose pages others have
    size_t live_slots;            // slots that exist, live or not
    struct vr_paged_shard *grown; // last; pages are made ahead for it
    struct vr_paged_ahead *ahead; // the thread that does; NULL: there is none
    bool fills;                   // it is at it, until there are enough
    bool is_warm;                 // the option warm has nothing to say any more
    size_t prune_at;              // so many, before they are looked through again (paged_slots.c)
    struct vr_paged_fresh {       // slots that were freed and are not linked, the last VR_PAGED_MOST_FRESH
        uint32_t slot;
        uint64_t last_use; // another one by now: it was handed out, or linked and used, or forgotten
    } * fresh;
    uint64_t fresh_made; // so many were entered, the last one at the place below
};

// What the source keeps for a shard and for a device; NULL: none of its memory is made of pages.
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
// Handed out, or free again: its pages do not say so yet.
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
// A slot of exactly this size that is free, and where that is noted.
struct vr_paged_found {
    uint32_t block;
    uint32_t slot;
    uint64_t *ready, bit;
};
// Whether there is one. It is handed out; it is free again.
bool vr_paged_find(const struct vr_shard *shard, uint64_t rounded, struct vr_paged_found *found);
void vr_paged_take_found(struct vr_shard *shard, const struct vr_paged_found *found);
// The same by its block; 0: none.
uint32_t vr_paged_ready(const struct vr_shard *shard, uint64_t rounded);
void vr_paged_take(struct vr_shard *shard, uint32_t block);
void vr_paged_give(struct vr_shard *shard, uint32_t block);

// Enters a slot under its size, fresh; room must be there: vr_paged_size_room(). Takes it out.
void vr_paged_slot_enter(struct vr_paged_shard *own, uint32_t slot, uint64_t size);
void vr_paged_slot_remove(struct vr_paged_shard *own, uint32_t slot);
// What is in the way of a slot that was entered has changed.
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
// The slot is not live: ready, unless something is known to be in its way.
VR_INLINE void vr_paged_ready_set_if_free(const struct vr_paged_slot *slot) {
    if (slot->linked && slot->foreign == 0 && slot->covered == 0 && slot->blocker == 0) vr_paged_ready_set(slot->own, slot);
}
// A slot that is not linked is not live, or is again.
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
// A live slot in the way of a slot; 0: none.
VR_INLINE uint32_t vr_paged_blocker(const struct vr_paged_device *device, const struct vr_paged_slot *slot) {
    const struct vr_paged_way *way = slot->ways;
    for (uint32_t i = 0; i < slot->way_count; i++) {
        const uint64_t live = device->marks[way[i].word].live & way[i].slots;
        if (live != 0) return way[i].word * 64 + (uint32_t)__builtin_ctzll(live);
    }
    return 0;
}
// A slot is not looked at again before the live one in its way is freed.
void vr_paged_hide(struct vr_paged_shard *own, uint32_t slot, uint32_t blocker);
// Nobody waits for it any more. A slot that is hidden is not.
void vr_paged_unhide_all(struct vr_paged_device *device, struct vr_paged_slot *blocker);
void vr_paged_unhide(struct vr_paged_device *device, uint32_t slot);

// A slot at a range whose bytes are all free, with its block FREE and in no index. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_paged_slot_make(struct vr_paged_shard *own, uint64_t address, uint64_t size, uint32_t *block);
// Links the slots of this size whose bytes are all free: it is asked for again. The others wait at a live one. NO_HOST_MEMORY.
enum vram_status vr_paged_link_free(struct vr_paged_shard *own, uint64_t size);
// A live slot that shares a byte with one whose windows are there; 0: none, and *foreign of its pages are another shard's.
uint32_t vr_paged_user(const struct vr_paged_shard *own, const struct vr_paged_slot *slot, uint32_t *foreign);
// Whether the windows of a slot that is not linked are still there.
bool vr_paged_is_mapped(const struct vr_paged_shard *own, const struct vr_paged_slot *slot);
// The same before a search by the slow way, which knows of no slot any more that was freed.
void vr_paged_search_fresh(struct vr_shard *shard, uint64_t size);
struct vr_paged_walk;
// A slot that is not linked is live from now on: linked slots that share a byte of this page with it are not ready. It is not any more:
// the same of all its pages.
void vr_paged_cover(struct vr_paged_shard *own, uint32_t slot, const struct vr_paged_walk *walk);
void vr_paged_uncover(struct vr_paged_shard *own, uint32_t slot);
// Forgets a slot that is neither live nor dirty.
void vr_paged_slot_forget(struct vr_paged_device *device, uint32_t slot);
// One of its pages went to another shard, or came back.
void vr_paged_slot_leave(struct vr_paged_device *device, uint32_t slot);
void vr_paged_slot_return(struct vr_paged_device *device, uint32_t slot);
// The slot was freed, and is not linked: it is kept for a while.
void vr_paged_slot_keep(struct vr_paged_device *device, uint32_t slot);
// Forgets slots that were not used for long, when there are very many.
void vr_paged_slots_prune(struct vr_paged_device *device);

// --- pages: paged_pages.c -------------------------------------------------------------------------------------------------------------

VR_INLINE struct vr_paged_page *vr_paged_page_at(const struct vr_paged_device *device, uint32_t page) { return &device->pages[page]; }
// Brings pages and holes up to date with what was handed out and freed. NO_HOST_MEMORY leaves it as it was.
enum vram_status vr_paged_settle(struct vr_paged_device *device);
// An entry for a page, in no list yet. NO_HOST_MEMORY.
enum vram_status vr_paged_page_take(struct vr_paged_device *device, uint32_t *page);
void vr_paged_page_give(struct vr_paged_device *device, uint32_t page);
void vr_paged_list_append(struct vr_paged_device *device, uint32_t page, enum vr_paged_list list);
void vr_paged_list_remove(struct vr_paged_device *device, uint32_t page);
// A wholly free page changes hands. Room for `holes` more holes must be there: vr_paged_move_room().
enum vram_status vr_paged_page_move(struct vr_paged_device *device, uint32_t page, struct vr_paged_shard *to);

// --- what a recording shows: paged_shown.c ---------------------------------------------------------------------------------------------

// Room for whatever the slots that the page will have can change. NO_HOST_MEMORY.
enum vram_status vr_paged_shown_room(struct vr_paged_page *page, size_t views);
// Bytes of a page are at the window that begins at `base` from now on: tells that they are unmapped where they were and mapped there.
void vr_paged_show(struct vr_paged_page *page, uint64_t low, uint64_t high, uint64_t base);
// The window goes: what is shown there is shown at another one, or nowhere if it is the last.
void vr_paged_show_elsewhere(struct vr_paged_page *page, size_t window);

// --- holes: paged_holes.c -------------------------------------------------------------------------------------------------------------

// Room for `more` holes than there are. NO_HOST_MEMORY.
enum vram_status vr_paged_hole_room(struct vr_paged_shard *own, size_t more);
void vr_paged_holes_free(struct vr_paged_shard *own);
// Cuts a range out of the hole that contains it; adds a range that no hole touches. Room must be there.
void vr_paged_hole_cut(struct vr_paged_shard *own, uint64_t low, uint64_t high);
void vr_paged_hole_add(struct vr_paged_shard *own, uint64_t low, uint64_t high);
// Ranges of pages, one page after the other, that are cut out of the holes behind their windows, or added: those that touch are one. An
// empty one is all-zero but for `own` and `cuts`.
enum { VR_PAGED_MOST_RUNS = 16 };
struct vr_paged_runs {
    struct vr_paged_shard *own;
    bool cuts;
    uint32_t count, pages;
    struct vr_paged_run {
        struct vr_paged_range range;
        uint32_t page; // that continued it last
    } items[VR_PAGED_MOST_RUNS];
};
void vr_paged_runs_add(struct vr_paged_runs *runs, const struct vr_paged_page *page, uint64_t low, uint64_t high);
void vr_paged_runs_close(struct vr_paged_runs *runs);
// Adds the free ranges of a page behind a window to the holes, or cuts them out; all of them, as the page leaves its shard; those behind
// windows of its shard, as it has it now. Room must be there.
void vr_paged_change_holes(struct vr_paged_page *page, struct vr_paged_window *window, bool has_holes);
void vr_paged_close_holes(struct vr_paged_page *page);
void vr_paged_open_holes(struct vr_paged_page *page);
// The shortest hole of at least `size` bytes, the lowest of these; NULL: none.
const struct vr_paged_range *vr_paged_hole_fit(const struct vr_paged_shard *own, uint64_t size);
// The hole that ends at `address`; NULL: none.
const struct vr_paged_range *vr_paged_hole_before(const struct vr_paged_shard *own, uint64_t address);
// The first hole that begins above `address`; NULL: none.
const struct vr_paged_range *vr_paged_hole_above(const struct vr_paged_shard *own, uint64_t address);

// --- regions: paged_regions.c ---------------------------------------------------------------------------------------------------------

// Of the last region, or a new one: addresses for windows of `size` bytes, after a gap where wanted. OUT_OF_MEMORY, DRIVER, NO_HOST_MEMORY.
enum vram_status vr_paged_addresses(struct vr_paged_shard *own, uint64_t size, bool gap, uint64_t *address);
// The length of the table of a region of `size` bytes: a power of two, as of expandable segments (expandable.c).
size_t vr_paged_table_bytes(const struct vr_paged_device *device, uint64_t size);
// The page whose window contains the address, and where that begins; 0: none.
uint32_t vr_paged_page_of(const struct vr_paged_device *device, const struct vr_paged_region *region, uint64_t address, uint64_t *base);
// The region of the shard that contains the address; NULL: none.
struct vr_paged_region *vr_paged_region_of(const struct vr_paged_shard *own, uint64_t address);
// The pages that a range of a region's addresses shows, one after the other. The range has no gap. Pages may move to others meanwhile.
struct vr_paged_walk {
    const struct vr_paged_device *device;
    const struct vr_paged_region *region;
    uint64_t at, end; // what is left of the range
    uint32_t number;
    struct vr_paged_page *page;
    uint64_t base;      // where the page begins, before the range perhaps
    uint64_t low, high; // what of the page is in the range
};
VR_INLINE bool vr_paged_walk_next(struct vr_paged_walk *walk) {
    const struct vr_paged_region *region = walk->region;
    if (walk->at >= walk->end) return false;
    const uint64_t unit = (walk->at - region->address) / walk->device->unit;
    if (VR_LIKELY(region->units[unit] != 0)) { // all but the first begin at a window's beginning
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
// That of a segment of pages, and whose it is.
struct vr_paged_region *vr_paged_region_of_segment(const struct vr_device *device, const struct vr_segment *segment,
                                                   struct vr_paged_shard **own);

// --- windows: paged_windows.c ---------------------------------------------------------------------------------------------------------

// Maps pages one after the other, from `address` at the end of the last region, and opens them. All or nothing.
enum vram_status vr_paged_map(struct vr_paged_shard *own, const uint32_t *pages, size_t count, uint64_t address);
// The books of a mapping that there is. Room must be there. (Of vr_paged_map(), and of pages that are made ahead.)
void vr_paged_window_add(struct vr_paged_shard *own, uint32_t page, uint64_t address);
// Takes one window of a page down. It shows no live slot; the slots that it shows are forgotten.
enum vram_status vr_paged_unmap(struct vr_paged_device *device, uint32_t page, size_t window);
// Takes windows down that nobody needs, when there are very many.
// Waits for the streams. Settled.
enum vram_status vr_paged_evict(struct vr_paged_device *device);
// Whether the host may wait for all streams that have windows; does it. DRIVER.
bool vr_paged_may_wait(const struct vr_paged_device *device);
enum vram_status vr_paged_wait(const struct vr_paged_device *device);

// --- what a new window is made of: paged_plan.c ----------------------------------------------------------------------------------------

// A range of `size` bytes: the high end of a page that is partly used, whole units, the low end of another one. 0: none.
struct vr_paged_plan {
    uint32_t head, tail;
    uint64_t head_bytes, tail_bytes;
    uint64_t units;
};
// few: as few units as possible, whatever is left over of the ends: units must be made, or could hardly be. NO_HOST_MEMORY.
enum vram_status vr_paged_plan(const struct vr_paged_shard *own, uint64_t size, bool few, struct vr_paged_plan *plan);

// --- growth ahead: paged_ahead.c --------------------------------------------------------------------------------------------------------

// The shard had to grow: more is made ahead by the thread of the option grow_ahead, which is started with the first growth.
void vr_paged_ahead_wake(struct vr_paged_shard *own);
// Makes a batch of pages ahead. False when there are enough, or could be none. Without any lock; for the thread, and for those who count.
bool vr_paged_ahead_step(struct vr_device *device);
// What the option warm asks for, here and now, where no thread does it.
void vr_paged_warm(struct vr_paged_shard *own);
// The oldest page that was made ahead is ordinary free memory of the shard; *page 0: there is none. All of them. NO_HOST_MEMORY.
enum vram_status vr_paged_claim(struct vr_paged_shard *own, uint32_t *page);
enum vram_status vr_paged_claim_all(struct vr_paged_shard *own);
// Ends the thread. Without any lock.
void vr_paged_ahead_end(struct vr_device *device);

// --- the small pool: paged_small.c ------------------------------------------------------------------------------------------------------

// The address at which the shard's small pool shows a page; 0: nowhere.
uint64_t vr_paged_small_window(const struct vr_paged_shard *own, uint32_t page);
// A wholly free page that has such a window becomes free memory of the small pool. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_paged_small_take(struct vr_paged_shard *own, uint32_t page);
// The reverse, for all pages that lie in free blocks; the same while the pool sleeps.
enum vram_status vr_paged_small_return(struct vr_paged_shard *own);
enum vram_status vr_paged_small_return_asleep(struct vr_paged_shard *own);

// --- pages change hands: paged_moves.c ------------------------------------------------------------------------------------------------

// Until `own` has `enough` wholly free bytes. wait: its stream waits for the others where they are not done; never the host. Pages of its
// own stream, of another pool, come in the order in which it uses them.
enum vram_status vr_paged_take_from_others(struct vr_paged_shard *own, uint64_t enough, bool wait);
// The pages of a slot of this size that others have now, where they can be had without waiting: nothing need be mapped then. The slot is
// ready afterwards.
enum vram_status vr_paged_take_for_slot(struct vr_paged_shard *own, uint64_t size);

// Of a private pool: a page for its small pool, one that this shows already where there is one.
enum vram_status vr_paged_take_for_small(struct vr_paged_shard *own);

// --- private pools: paged_source.c -----------------------------------------------------------------------------------------

// Whether a graph may know addresses of the shard's pool: its pages are its own then, and its windows stay.
VR_INLINE bool vr_paged_is_kept(const struct vr_paged_shard *own) { return own->shard->owner != NULL && own->shard->owner->captured; }
// Counts a page of the shard in (1) or out (-1): a pool with pages is not gone.
VR_INLINE void vr_paged_count_page(const struct vr_paged_shard *own, int sign) {
    if (own->shard->owner != NULL) own->shard->owner->segments += (uint32_t)sign;
}
// What the shard of a private pool goes on with: what a pool that has ended had. NULL: nothing.
struct vr_paged_shard *vr_paged_unpark(struct vr_shard *shard);
// The shard's pool ends; it has no pages any more, and the default shard of its stream is there.
void vr_paged_park(struct vr_shard *shard);
// Nobody holds the pool any more: what is free in it goes to the default pools of the same stream. What cannot go stays.
void vr_paged_hand_over(struct vram_pool *pool);
// Gives free pages of the pool back to the driver, as vr_paged_release(); those of a pool that nobody holds go to the default pools.
enum vram_status vr_paged_release_pool(struct vram_pool *pool);

// --- sleep: paged_sleep.c ---------------------------------------------------------------------------------------------------------------

// vacate() and populate() of both sources (source_ops.h).
void vr_paged_vacate(struct vr_device *device, struct vr_segment *segment, uint64_t *held);
enum vram_status vr_paged_populate(struct vr_device *device, struct vr_segment *segment, uint64_t address, uint64_t size);
// Whether the page that is mapped at an address is one of the pool that the segment belongs to, and where its window ends.
bool vr_paged_is_own(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t *end);
// Every page of the pool (NULL: of the default pools) gives its memory away behind all its windows, or is counted in *held.
void vr_paged_vacate_pages(struct vr_device *device, const struct vram_pool *pool, uint64_t *held);
// Memory for those pages of it that only other pools have windows of.
enum vram_status vr_paged_populate_rest(struct vr_device *device, const struct vram_pool *pool);
// Whether every page of the pool has its memory behind all its windows.
bool vr_paged_all_there(const struct vr_device *device, const struct vram_pool *pool);
// Forgets free pages of a pool that sleeps (NULL: of the default pools): they need no memory, and nobody uses what the driver kept.
void vr_paged_asleep_trim(struct vr_device *device, const struct vram_pool *pool);

// --- growth: paged.c ---------------------------------------------------------------------------------------------------------------------

// Memory for a request of the large pool, and of the small one (at most one unit): as grow() of a source.
enum vram_status vr_paged_grow_large(struct vr_paged_shard *own, uint64_t size, uint32_t *block);
enum vram_status vr_paged_grow_small(struct vr_paged_shard *own, uint64_t size, uint32_t *block);

// --- the source: paged_source.c, paged_windows.c
// ----------------------------------------------------------------------------------------------

// What the shard has, made with the first request. NO_HOST_MEMORY.
enum vram_status vr_paged_shard_of(struct vr_shard *shard, struct vr_paged_shard **own);
// Gives one wholly free page back. DRIVER.
enum vram_status vr_paged_page_release(struct vr_paged_device *device, uint32_t page);
// The rest of it: a page without windows, whose memory is booked as gone or never was.
void vr_paged_page_destroy(struct vr_paged_device *device, uint32_t page);
// Gives wholly free pages of the device back to the driver, those that became free first, until `enough` bytes are. Waits for their
// streams. DRIVER when it refuses some. Under all locks, context current.
enum vram_status vr_paged_release(struct vr_device *device, uint64_t enough);
// Whether a request of the large pool could not be served by what the device's pages have free. Under all locks.
bool vr_paged_must_grow(struct vr_shard *shard, uint64_t size);
// What is mapped of a segment as blocks in the order of their addresses, which the caller frees: live ones, and FREE what lies between, be
// its bytes free or in use at another address. NO_HOST_MEMORY.
enum vram_status vr_paged_blocks(const struct vr_device *device, const struct vr_segment *segment, struct vr_block **blocks, size_t *count);
// count_held() and each_slot() of the source.
void vr_paged_count_held(const struct vr_device *device, const struct vram_pool *only, struct vr_held_bytes *held);
enum vram_status vr_paged_each_slot(const struct vr_device *device, const struct vram_pool *only, vr_slot_visitor visit, void *user);
// Bytes of unused pages, and the longest free range.
void vr_paged_cached(struct vr_device *device, uint64_t *bytes, uint64_t *largest);
// What must hold, found anew from the live blocks. MISMATCH, NO_HOST_MEMORY. Under all locks.
enum vram_status vr_paged_check(struct vr_device *device, struct vram_error *error);
// Frees the books. At the end only, after the segments were dropped.
void vr_paged_close(struct vr_device *device);

#endif
