#include "explore/tables/block_sizes.h"

#include "analyze/segment_lives.h"
#include "config/recorded_options.h"
#include "config/size_rules.h"

// Requests that round to more than this come from the large pool, which does not split off a remainder of up to this size.
#define SMALL_LIMIT VR_MIB

// The stages in order: gather the addresses of large blocks from the rows, then walk the events.
enum sizing_stage { GATHER, WALK, FINISHED };

struct vr_block_sizing {
    struct vr_block_sizes sizes;
    const struct vr_event_rows *rows;
    const struct vr_segment_lives *segments;
    enum sizing_stage stage;
    size_t at;       // the next row or event
    uint64_t *place; // addresses of large blocks, ascending, distinct
    size_t place_count, place_capacity;
    struct vr_map numbers; // address -> 1 + index in `place`
    struct vr_ordered live;
};

static uint64_t rounded_size(const struct vr_block_sizes *sizes, uint64_t requested) {
    if (requested > UINT64_MAX / 4) return requested;
    // Pinned host memory comes in powers of two.
    if (vr_model_is_host(sizes->view->model, sizes->view->device)) {
        return requested <= VR_MIN_BLOCK || vr_is_power_of_2(requested) ? requested : (uint64_t)2 << vr_log2_floor(requested);
    }
    return vr_round_request(&sizes->options, requested);
}

static uint32_t final_block(const struct vr_block_sizes *sizes, size_t row) {
    const struct vr_lifetimes *lifetimes = sizes->lifetimes;
    return lifetimes->death[row] == VR_NEVER ? vr_map_get(&lifetimes->final_blocks, lifetimes->address[row]) : 0;
}

uint64_t vr_block_size_at(const struct vr_block_sizes *sizes, size_t row, bool *estimated) {
    assert(row < sizes->lifetimes->count && sizes->rest != NULL);
    const uint32_t block = final_block(sizes, row);
    *estimated = false;
    if (block != 0) return sizes->view->model->blocks.size_bytes[sizes->view->blocks[block - 1]];
    const uint64_t rounded = rounded_size(sizes, sizes->lifetimes->size_bytes[row]);
    *estimated = row < sizes->lifetimes->start_count && rounded > SMALL_LIMIT;
    return rounded + (uint64_t)sizes->rest[row] * VR_MIN_BLOCK;
}

static bool is_large(const struct vr_block_sizing *pass, size_t row) {
    return rounded_size(&pass->sizes, pass->sizes.lifetimes->size_bytes[row]) > SMALL_LIMIT;
}

static enum vram_status gather_size(struct vr_block_sizing *pass, size_t row) {
    const uint64_t address = pass->sizes.lifetimes->address[row];
    if (!is_large(pass, row) || vr_map_get(&pass->numbers, address) != 0) return VRAM_OK;
    VR_TRY(vr_map_set(&pass->numbers, address, 1));
    VR_TRY(VR_GROW(pass, place, pass->place_count + 1));
    pass->place[pass->place_count++] = address;
    return VRAM_OK;
}

static enum vram_status number_places(struct vr_block_sizing *pass) {
    if (pass->place_count != 0) qsort(pass->place, pass->place_count, sizeof *pass->place, vr_order_u64);
    for (size_t i = 0; i < pass->place_count; i++) VR_TRY(vr_map_set(&pass->numbers, pass->place[i], (uint32_t)i + 1));
    return vr_ordered_init(&pass->live, pass->place_count + 1);
}

// Returns how much a block made at `event` (-1: before event 0) took beyond its rounded size.
static uint32_t rest_of(const struct vr_block_sizing *pass, size_t row, size_t place, int64_t event) {
    const struct vr_lifetimes *lifetimes = pass->sizes.lifetimes, *reserved = &pass->segments->lifetimes;
    const uint64_t address = lifetimes->address[row], rounded = rounded_size(&pass->sizes, lifetimes->size_bytes[row]);
    const size_t segment = vr_segment_lives_find(pass->segments, address, event);
    // In expandable segments and small segments, a block is always split to its rounded size.
    if (segment == SIZE_MAX || (pass->segments->flags[segment] & VR_SEGMENT_MAPPED) != 0) return 0;
    uint64_t end = reserved->address[segment] + reserved->size_bytes[segment], used = 0;
    const size_t next = vr_ordered_next(&pass->live, place + 1);
    if (next != SIZE_MAX && pass->place[next] < end) end = pass->place[next];
    if (!vr_add_u64(address, rounded, &used) || used >= end) return 0;
    const uint64_t rest = end - used;
    const bool whole = rest <= SMALL_LIMIT || rounded >= pass->sizes.options.max_split_bytes;
    return whole && rest / VR_MIN_BLOCK <= UINT32_MAX ? (uint32_t)(rest / VR_MIN_BLOCK) : 0;
}

static size_t size_place(const struct vr_block_sizing *pass, size_t row) {
    return is_large(pass, row) ? (size_t)vr_map_get(&pass->numbers, pass->sizes.lifetimes->address[row]) - 1 : SIZE_MAX;
}

// Adds the blocks from before the history.
static void begin_walk(struct vr_block_sizing *pass) {
    const size_t start = pass->sizes.lifetimes->start_count;
    for (size_t row = 0; row < start; row++) {
        if (is_large(pass, row)) vr_ordered_add(&pass->live, size_place(pass, row));
    }
    for (size_t row = 0; row < start; row++) {
        if (is_large(pass, row) && final_block(&pass->sizes, row) == 0)
            pass->sizes.rest[row] = rest_of(pass, row, size_place(pass, row), -1);
    }
}

static void walk_sizes(struct vr_block_sizing *pass, size_t event) {
    if (pass->rows->row[event] == 0) return;
    const size_t row = pass->rows->row[event] - 1, place = size_place(pass, row);
    if (pass->sizes.lifetimes->birth[row] != event) {
        if (place != SIZE_MAX) vr_ordered_remove(&pass->live, place);
        return;
    }
    // A block that was at this address before, without a recorded free, is gone.
    const uint32_t old = vr_event_replaced(pass->rows, event);
    if (old != 0 && place == SIZE_MAX && is_large(pass, old - 1)) vr_ordered_remove(&pass->live, size_place(pass, old - 1));
    if (place == SIZE_MAX) return;
    vr_ordered_add(&pass->live, place);
    pass->sizes.rest[row] = rest_of(pass, row, place, (int64_t)event);
}

static void read_size_options(struct vr_block_sizes *sizes) {
    struct vr_text conf = {0};
    vr_options_init(&sizes->options);
    (void)vr_recorded_conf(sizes->view->model, &conf);
    // If the settings are not understood, assume the defaults.
    if (vr_text_status(&conf) == VRAM_OK && vr_options_parse(&sizes->options, vr_text_string(&conf), NULL) != VRAM_OK)
        vr_options_init(&sizes->options);
    vr_text_release(&conf);
}

enum vram_status vr_block_sizing_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                        const struct vr_segment_lives *segments, struct vr_block_sizing **sizing) {
    struct vr_block_sizing *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *made = (struct vr_block_sizing){.sizes = {.view = view, .lifetimes = lifetimes}, .rows = rows, .segments = segments};
    made->sizes.rest = calloc(lifetimes->count + 1, sizeof *made->sizes.rest);
    if (made->sizes.rest == NULL) {
        free(made);
        return VRAM_NO_HOST_MEMORY;
    }
    read_size_options(&made->sizes);
    if (vr_model_is_host(view->model, view->device)) made->stage = FINISHED;
    *sizing = made;
    return VRAM_OK;
}

void vr_block_sizing_destroy(struct vr_block_sizing *sizing) {
    if (sizing == NULL) return;
    free(sizing->place);
    vr_map_release(&sizing->numbers);
    vr_ordered_release(&sizing->live);
    vr_block_sizes_release(&sizing->sizes);
    free(sizing);
}

static enum vram_status next_stage(struct vr_block_sizing *pass) {
    pass->at = 0;
    if (pass->stage++ != GATHER) return VRAM_OK;
    VR_TRY(number_places(pass));
    begin_walk(pass);
    if (pass->place_count == 0) pass->stage = FINISHED;
    return VRAM_OK;
}

enum vram_status vr_block_sizing_go_on(struct vr_block_sizing *sizing, size_t most, double *share) {
    while (most != 0 && sizing->stage != FINISHED) {
        const size_t count = sizing->stage == GATHER ? sizing->sizes.lifetimes->count : sizing->sizes.view->history->count;
        const size_t end = count - sizing->at < most ? count : sizing->at + most;
        most -= end - sizing->at;
        for (; sizing->at < end; sizing->at++) {
            if (sizing->stage == WALK)
                walk_sizes(sizing, sizing->at);
            else
                VR_TRY(gather_size(sizing, sizing->at));
        }
        if (end == count) VR_TRY(next_stage(sizing));
    }
    const double events = (double)sizing->sizes.view->history->count + 1;
    *share = sizing->stage == FINISHED ? 1 : sizing->stage == GATHER ? 0 : (double)sizing->at / events;
    return VRAM_OK;
}

void vr_block_sizing_take(struct vr_block_sizing *sizing, struct vr_block_sizes *sizes) {
    assert(sizing->stage == FINISHED && sizing->sizes.rest != NULL);
    *sizes = sizing->sizes;
    sizing->sizes.rest = NULL;
}

void vr_block_sizes_release(struct vr_block_sizes *sizes) {
    free(sizes->rest);
    sizes->rest = NULL;
}
