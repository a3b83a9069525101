// sim_slots.h: tables of objects behind 64-bit handles. A handle contains a slot and its generation, so a stale handle is detected and
// never reaches another object.
#ifndef VR_SIM_SIM_SLOTS_H
#define VR_SIM_SIM_SLOTS_H

#include "base/base.h"

// First member of every object in a table.
struct vr_sim_slot {
    uint32_t generation; // of the current or last use
    union {
        uint32_t next_free; // chain of free slots: index + 1
        uint32_t index;     // own index, while it holds an object
    };
    bool live;  // holds an object
    bool named; // its handle is valid; an object may outlive its handle
};

// Invariant: `live` slots hold an object, the free list contains each other slot once, and only objects have valid handles.
// vr_sim_slots_check() tests it.
struct vr_sim_slots {
    void *items;
    size_t item_bytes; // sizeof the object
    size_t capacity;
    uint32_t used;      // slots ever used
    uint32_t free_list; // index + 1 of the first free slot
    uint16_t tag;       // top bits of the table's handles: 1 to VR_SIM_SLOT_TAG_MOST
    uint32_t live;      // objects
};

// Handle: tag in bits 41..46, generation in 28..40, slot in 4..27 (16 million objects per table). NVIDIA's handles are addresses of objects
// in the process. Handles here imitate two of their properties that programs rely on: they are below 2^47, so a double holds them exactly,
// and their lowest four bits are 0, because programs store marks there.
#define VR_SIM_SLOT_BITS            24
#define VR_SIM_SLOT_SHIFT           4
#define VR_SIM_SLOT_GENERATION_BITS 13
#define VR_SIM_SLOT_GENERATION_MASK ((1u << VR_SIM_SLOT_GENERATION_BITS) - 1)
#define VR_SIM_SLOT_TAG_MOST        63

VR_INLINE struct vr_sim_slot *vr_sim_slots_item(const struct vr_sim_slots *slots, uint32_t index) {
    return (struct vr_sim_slot *)(void *)((char *)slots->items + (size_t)index * slots->item_bytes);
}

// Allocates a slot, zero except for its header. NO_HOST_MEMORY; LIMIT past 16 million.
VR_INLINE enum vram_status vr_sim_slots_take(struct vr_sim_slots *slots, uint32_t *index) {
    uint32_t taken = slots->free_list;
    if (taken != 0) {
        taken--;
        slots->free_list = vr_sim_slots_item(slots, taken)->next_free;
    } else {
        taken = slots->used;
        if (taken >> VR_SIM_SLOT_BITS != 0) return VRAM_LIMIT;
        VR_TRY(vr_grow(&slots->items, &slots->capacity, (size_t)taken + 1, slots->item_bytes));
        vr_sim_slots_item(slots, taken)->generation = 0;
        slots->used++;
    }
    struct vr_sim_slot *slot = vr_sim_slots_item(slots, taken);
    uint32_t generation = slot->generation + 1;
    memset(slot, 0, slots->item_bytes);
    *slot = (struct vr_sim_slot){.generation = generation, .index = taken, .live = true, .named = true};
    slots->live++;
    *index = taken;
    return VRAM_OK;
}

VR_INLINE void vr_sim_slots_give(struct vr_sim_slots *slots, uint32_t index) {
    struct vr_sim_slot *slot = vr_sim_slots_item(slots, index);
    assert(index < slots->used && slot->live);
    slot->live = slot->named = false;
    slot->next_free = slots->free_list;
    slots->free_list = index + 1;
    slots->live--;
}

VR_INLINE uint64_t vr_sim_slots_handle(const struct vr_sim_slots *slots, uint32_t index) {
    uint64_t generation = vr_sim_slots_item(slots, index)->generation & VR_SIM_SLOT_GENERATION_MASK;
    const uint64_t high = (uint64_t)slots->tag << VR_SIM_SLOT_GENERATION_BITS | generation;
    return (high << VR_SIM_SLOT_BITS | index) << VR_SIM_SLOT_SHIFT;
}

// Returns the object of a handle, or NULL. Borrowed until the next vr_sim_slots_take().
VR_INLINE void *vr_sim_slots_find(const struct vr_sim_slots *slots, uint64_t handle) {
    uint32_t index = (uint32_t)(handle >> VR_SIM_SLOT_SHIFT & ((1u << VR_SIM_SLOT_BITS) - 1));
    if (index >= slots->used) return NULL;
    struct vr_sim_slot *slot = vr_sim_slots_item(slots, index);
    return slot->named && vr_sim_slots_handle(slots, index) == handle ? slot : NULL;
}

// Returns the slot index of an object of the table.
VR_INLINE uint32_t vr_sim_slots_index(const struct vr_sim_slots *slots, const void *item) {
    const struct vr_sim_slot *slot = item;
    assert(slot->live && vr_sim_slots_item(slots, slot->index) == slot);
    (void)slots;
    return slot->index;
}

// Tests the invariant, in O(used).
VR_INLINE bool vr_sim_slots_check(const struct vr_sim_slots *slots) {
    uint32_t live = 0, unused = 0;
    for (uint32_t i = 0; i < slots->used; i++) {
        const struct vr_sim_slot *slot = vr_sim_slots_item(slots, i);
        if ((slot->named && !slot->live) || (slot->live && slot->index != i)) return false;
        live += slot->live;
    }
    for (uint32_t at = slots->free_list; at != 0; at = vr_sim_slots_item(slots, at - 1)->next_free)
        if (at > slots->used || vr_sim_slots_item(slots, at - 1)->live || ++unused > slots->used) return false;
    return live == slots->live && live + unused == slots->used && slots->used <= slots->capacity;
}

#endif
