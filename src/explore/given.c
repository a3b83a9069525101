#include "explore/given.h"

#include "analyze/ordered.h"
#include "analyze/recorded_conf.h"
#include "config/rounding.h"

// Requests above this, rounded, come from the large pool; a rest of up to as much is not kept apart there.
#define SMALL_LIMIT VR_MIB

struct pass {
    struct vr_given *given;
    const struct vr_segment_lives *segments;
    uint64_t *place; // addresses of large blocks, ascending, distinct
    size_t place_count;
    struct vr_map numbers; // address -> 1 + place
    struct vr_ordered live;
};

static uint64_t rounded_size(const struct vr_given *given, uint64_t asked) {
    if (asked > UINT64_MAX / 4) return asked;
    // Pinned host memory comes in powers of two.
    if (vr_model_is_host(given->view->model, given->view->device)) {
        return asked <= VR_MIN_BLOCK || vr_is_power_of_2(asked) ? asked : (uint64_t)2 << vr_log2_floor(asked);
    }
    return vr_round_request(&given->options, asked);
}

static uint32_t final_block(const struct vr_given *given, size_t row) {
    const struct vr_lifetimes *lifetimes = given->lifetimes;
    return lifetimes->death[row] == VR_NEVER ? vr_map_get(&lifetimes->final_blocks, lifetimes->address[row]) : 0;
}

uint64_t vr_given_bytes(const struct vr_given *given, size_t row, bool *estimated) {
    const uint32_t block = final_block(given, row);
    *estimated = false;
    if (block != 0) return given->view->model->blocks.size_bytes[given->view->blocks[block - 1]];
    const uint64_t rounded = rounded_size(given, given->lifetimes->size_bytes[row]);
    *estimated = row < given->lifetimes->start_count && rounded > SMALL_LIMIT;
    return rounded + (uint64_t)given->rest[row] * VR_MIN_BLOCK;
}

static bool is_large(const struct pass *pass, size_t row) {
    return rounded_size(pass->given, pass->given->lifetimes->size_bytes[row]) > SMALL_LIMIT;
}

static enum vram_status find_places(struct pass *pass) {
    const struct vr_lifetimes *lifetimes = pass->given->lifetimes;
    size_t capacity = 0;
    for (size_t row = 0; row < lifetimes->count; row++) {
        if (!is_large(pass, row) || vr_map_get(&pass->numbers, lifetimes->address[row]) != 0) continue;
        VR_TRY(vr_map_set(&pass->numbers, lifetimes->address[row], 1));
        VR_TRY(vr_grow((void **)&pass->place, &capacity, pass->place_count + 1, sizeof *pass->place));
        pass->place[pass->place_count++] = lifetimes->address[row];
    }
    if (pass->place_count != 0) qsort(pass->place, pass->place_count, sizeof *pass->place, vr_order_u64);
    for (size_t i = 0; i < pass->place_count; i++) VR_TRY(vr_map_set(&pass->numbers, pass->place[i], (uint32_t)i + 1));
    return vr_ordered_init(&pass->live, pass->place_count + 1);
}

// What a block that was made at `event` (-1: it was there before) took beyond its rounded size.
static uint32_t rest_of(const struct pass *pass, size_t row, size_t place, int64_t event) {
    const struct vr_lifetimes *lifetimes = pass->given->lifetimes, *reserved = &pass->segments->lifetimes;
    const uint64_t address = lifetimes->address[row], rounded = rounded_size(pass->given, lifetimes->size_bytes[row]);
    const size_t segment = vr_segment_lives_find(pass->segments, address, event);
    // Pages of expandable segments and small segments are cut to the size, whatever is left.
    if (segment == SIZE_MAX || (pass->segments->flags[segment] & VR_SEGMENT_MAPPED) != 0) return 0;
    uint64_t end = reserved->address[segment] + reserved->size_bytes[segment], used = 0;
    const size_t next = vr_ordered_next(&pass->live, place + 1);
    if (next != SIZE_MAX && pass->place[next] < end) end = pass->place[next];
    if (!vr_add_u64(address, rounded, &used) || used >= end) return 0;
    const uint64_t rest = end - used;
    const bool whole = rest <= SMALL_LIMIT || rounded >= pass->given->options.max_split_bytes;
    return whole && rest / VR_MIN_BLOCK <= UINT32_MAX ? (uint32_t)(rest / VR_MIN_BLOCK) : 0;
}

static size_t place_of(const struct pass *pass, size_t row) {
    return is_large(pass, row) ? (size_t)vr_map_get(&pass->numbers, pass->given->lifetimes->address[row]) - 1 : SIZE_MAX;
}

static void walk(struct pass *pass, const struct vr_event_rows *rows) {
    const struct vr_lifetimes *lifetimes = pass->given->lifetimes;
    uint32_t *rest = pass->given->rest;
    for (size_t row = 0; row < lifetimes->start_count; row++) {
        if (is_large(pass, row)) vr_ordered_add(&pass->live, place_of(pass, row));
    }
    for (size_t row = 0; row < lifetimes->start_count; row++) {
        if (is_large(pass, row) && final_block(pass->given, row) == 0) rest[row] = rest_of(pass, row, place_of(pass, row), -1);
    }
    for (size_t event = 0; event < pass->given->view->history->count; event++) {
        if (rows->row[event] == 0) continue;
        const size_t row = rows->row[event] - 1, place = place_of(pass, row);
        if (lifetimes->birth[row] != event) {
            if (place != SIZE_MAX) vr_ordered_remove(&pass->live, place);
            continue;
        }
        // What was at the address before, and was never seen to go, is gone.
        const uint32_t old = vr_event_replaced(rows, event);
        if (old != 0 && place == SIZE_MAX && is_large(pass, old - 1)) vr_ordered_remove(&pass->live, place_of(pass, old - 1));
        if (place == SIZE_MAX) continue;
        vr_ordered_add(&pass->live, place);
        rest[row] = rest_of(pass, row, place, (int64_t)event);
    }
}

static void read_options(struct vr_given *given) {
    struct vr_text conf = {0};
    vr_options_init(&given->options);
    vr_recorded_conf(given->view->model, &conf);
    // A recording whose settings say nothing that is known ran, as far as anybody can tell, with the defaults.
    if (vr_text_status(&conf) == VRAM_OK && vr_options_parse(&given->options, vr_text_string(&conf), NULL) != VRAM_OK)
        vr_options_init(&given->options);
    vr_text_release(&conf);
}

enum vram_status vr_given_build(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                const struct vr_segment_lives *segments, struct vr_given *given) {
    struct vr_given made = {.view = view, .lifetimes = lifetimes, .rest = calloc(lifetimes->count + 1, sizeof *made.rest)};
    if (made.rest == NULL) return VRAM_NO_HOST_MEMORY;
    read_options(&made);
    struct pass pass = {.given = &made, .segments = segments};
    const enum vram_status status = vr_model_is_host(view->model, view->device) ? VRAM_OK : find_places(&pass);
    if (status == VRAM_OK && pass.place_count != 0) walk(&pass, rows);
    free(pass.place);
    vr_map_release(&pass.numbers);
    vr_ordered_release(&pass.live);
    if (status == VRAM_OK) *given = made;
    if (status != VRAM_OK) vr_given_release(&made);
    return status;
}

void vr_given_release(struct vr_given *given) {
    free(given->rest);
    given->rest = NULL;
}
