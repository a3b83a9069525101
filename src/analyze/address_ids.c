#include "analyze/address_ids.h"

enum { FIRST_SLOTS = 1024 };

// Open addressing with linear probing over the numbers given so far. Keyed by where it lies, so that a file cannot be made to collide.
struct numbering {
    struct vr_address_ids *out;
    size_t capacity; // of out->address
    uint32_t *slots; // number + 1, 0: free; at most half of them are used
    size_t mask;
    uint64_t key;
    uint64_t last_address; // what was numbered last: a free and its completion are one address
    uint32_t last;
};

void vr_address_ids_release(struct vr_address_ids *addresses) {
    free(addresses->of_event);
    free(addresses->of_block);
    free(addresses->address);
    memset(addresses, 0, sizeof *addresses);
}

static size_t home(const struct numbering *numbering, uint64_t address) {
    return (size_t)vr_mix64(address ^ numbering->key) & numbering->mask;
}

static enum vram_status resize(struct numbering *numbering, size_t slot_count) {
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL) return VRAM_NO_HOST_MEMORY;
    free(numbering->slots);
    numbering->slots = slots;
    numbering->mask = slot_count - 1;
    numbering->key = vr_mix64((uint64_t)(uintptr_t)slots);
    for (size_t i = 0; i < numbering->out->count; i++) {
        size_t at = home(numbering, numbering->out->address[i]);
        while (slots[at] != 0) at = (at + 1) & numbering->mask;
        slots[at] = (uint32_t)i + 1;
    }
    return VRAM_OK;
}

// Room for one more.
static enum vram_status reserve(struct numbering *numbering) {
    struct vr_address_ids *out = numbering->out;
    VR_TRY(vr_grow((void **)&out->address, &numbering->capacity, out->count + 1, sizeof *out->address));
    if (numbering->slots != NULL && (out->count + 1) * 2 <= numbering->mask + 1) return VRAM_OK;
    return resize(numbering, numbering->slots == NULL ? FIRST_SLOTS : (numbering->mask + 1) * 2);
}

static enum vram_status number(struct numbering *numbering, uint64_t address, uint32_t *result) {
    struct vr_address_ids *out = numbering->out;
    if (address != numbering->last_address || out->count == 0) {
        VR_TRY(reserve(numbering));
        size_t at = home(numbering, address);
        while (numbering->slots[at] != 0 && out->address[numbering->slots[at] - 1] != address) at = (at + 1) & numbering->mask;
        if (numbering->slots[at] == 0) {
            out->address[out->count++] = address;
            numbering->slots[at] = (uint32_t)out->count;
        }
        numbering->last_address = address;
        numbering->last = numbering->slots[at] - 1;
    }
    *result = numbering->last;
    return VRAM_OK;
}

static bool is_of_allocation(uint8_t action) {
    return action == VR_ACTION_ALLOC || action == VR_ACTION_FREE_REQUESTED || action == VR_ACTION_FREE_COMPLETED ||
           action == VR_ACTION_FREE;
}

static enum vram_status number_all(struct numbering *numbering, const struct vr_view *view) {
    const struct vr_history *history = view->history;
    for (size_t i = 0; i < view->block_count; i++)
        VR_TRY(number(numbering, view->model->blocks.address[view->blocks[i]], &numbering->out->of_block[i]));
    for (size_t i = 0; i < history->count; i++) {
        numbering->out->of_event[i] = VR_NO_ADDRESS;
        if (is_of_allocation(history->action[i])) VR_TRY(number(numbering, history->address[i], &numbering->out->of_event[i]));
    }
    return VRAM_OK;
}

enum vram_status vr_address_ids_build(const struct vr_view *view, struct vr_address_ids *addresses) {
    const size_t events = view->history->count, blocks = view->block_count;
    if (events > UINT32_MAX / 4 || blocks > UINT32_MAX / 4) return VRAM_LIMIT;
    struct vr_address_ids built = {.of_event = malloc((events + 1) * sizeof *built.of_event),
                                   .of_block = malloc((blocks + 1) * sizeof *built.of_block)};
    struct numbering numbering = {.out = &built};
    enum vram_status status = built.of_event == NULL || built.of_block == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) status = number_all(&numbering, view);
    free(numbering.slots);
    if (status == VRAM_OK)
        *addresses = built;
    else
        vr_address_ids_release(&built);
    return status;
}
