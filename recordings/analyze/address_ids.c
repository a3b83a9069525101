#include "analyze/address_ids.h"

#include "base/map.h"

// Most histories have some hundreds of addresses at least: what that takes is not grown into.
enum { FIRST_ADDRESSES = 1024 };

// The numbers given so far.
struct numbering {
    struct vr_address_ids *out;
    size_t capacity;       // of out->address
    struct vr_map numbers; // address -> 1 + number
    uint64_t last_address; // what was numbered last: a free and its completion are one address
    uint32_t last;
};

void vr_address_ids_release(struct vr_address_ids *addresses) {
    free(addresses->of_event);
    free(addresses->of_block);
    free(addresses->address);
    memset(addresses, 0, sizeof *addresses);
}

static enum vram_status number_address(struct numbering *numbering, uint64_t address, uint32_t *result) {
    struct vr_address_ids *out = numbering->out;
    if (address != numbering->last_address || out->count == 0) {
        uint64_t found = vr_map_get(&numbering->numbers, address);
        if (found == 0) {
            VR_TRY(vr_grow((void **)&out->address, &numbering->capacity, out->count + 1, sizeof *out->address));
            VR_TRY(vr_map_set(&numbering->numbers, address, out->count + 1));
            out->address[out->count++] = address;
            found = out->count;
        }
        numbering->last_address = address;
        numbering->last = (uint32_t)found - 1;
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
    const size_t most = history->count + view->block_count;
    VR_TRY(vr_map_reserve(&numbering->numbers, most < FIRST_ADDRESSES ? most : FIRST_ADDRESSES));
    for (size_t i = 0; i < view->block_count; i++)
        VR_TRY(number_address(numbering, view->model->blocks.address[view->blocks[i]], &numbering->out->of_block[i]));
    for (size_t i = 0; i < history->count; i++) {
        numbering->out->of_event[i] = VR_NO_ADDRESS;
        if (is_of_allocation(history->action[i])) VR_TRY(number_address(numbering, history->address[i], &numbering->out->of_event[i]));
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
    vr_map_release(&numbering.numbers);
    if (status == VRAM_OK)
        *addresses = built;
    else
        vr_address_ids_release(&built);
    return status;
}
