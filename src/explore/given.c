#include "explore/given.h"

#include "analyze/ordered.h"
#include "config/recorded_options.h"
#include "config/rounding.h"

// Requests above this, rounded, come from the large pool; a rest of up to as much is not kept apart there.
#define SMALL_LIMIT VR_MIB

// What is done in this order: addresses of large blocks are gathered from the rows, then the events are walked.
enum stage { GATHER, WALK, FINISHED };

struct vr_giving {
    struct vr_given given;
    const struct vr_event_rows *rows;
    const struct vr_segment_lives *segments;
    enum stage stage;
    size_t at;       // the next row, or event
    size_t capacity; // of place
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

static bool is_large(const struct vr_giving *pass, size_t row) {
    return rounded_size(&pass->given, pass->given.lifetimes->size_bytes[row]) > SMALL_LIMIT;
}

static enum vram_status gather(struct vr_giving *pass, size_t row) {
    const uint64_t address = pass->given.lifetimes->address[row];
    if (!is_large(pass, row) || vr_map_get(&pass->numbers, address) != 0) return VRAM_OK;
    VR_TRY(vr_map_set(&pass->numbers, address, 1));
    VR_TRY(vr_grow((void **)&pass->place, &pass->capacity, pass->place_count + 1, sizeof *pass->place));
    pass->place[pass->place_count++] = address;
    return VRAM_OK;
}

static enum vram_status number_places(struct vr_giving *pass) {
    if (pass->place_count != 0) qsort(pass->place, pass->place_count, sizeof *pass->place, vr_order_u64);
    for (size_t i = 0; i < pass->place_count; i++) VR_TRY(vr_map_set(&pass->numbers, pass->place[i], (uint32_t)i + 1));
    return vr_ordered_init(&pass->live, pass->place_count + 1);
}

// What a block that was made at `event` (-1: it was there before) took beyond its rounded size.
static uint32_t rest_of(const struct vr_giving *pass, size_t row, size_t place, int64_t event) {
    const struct vr_lifetimes *lifetimes = pass->given.lifetimes, *reserved = &pass->segments->lifetimes;
    const uint64_t address = lifetimes->address[row], rounded = rounded_size(&pass->given, lifetimes->size_bytes[row]);
    const size_t segment = vr_segment_lives_find(pass->segments, address, event);
    // Pages of expandable segments and small segments are cut to the size, whatever is left.
    if (segment == SIZE_MAX || (pass->segments->flags[segment] & VR_SEGMENT_MAPPED) != 0) return 0;
    uint64_t end = reserved->address[segment] + reserved->size_bytes[segment], used = 0;
    const size_t next = vr_ordered_next(&pass->live, place + 1);
    if (next != SIZE_MAX && pass->place[next] < end) end = pass->place[next];
    if (!vr_add_u64(address, rounded, &used) || used >= end) return 0;
    const uint64_t rest = end - used;
    const bool whole = rest <= SMALL_LIMIT || rounded >= pass->given.options.max_split_bytes;
    return whole && rest / VR_MIN_BLOCK <= UINT32_MAX ? (uint32_t)(rest / VR_MIN_BLOCK) : 0;
}

static size_t place_of(const struct vr_giving *pass, size_t row) {
    return is_large(pass, row) ? (size_t)vr_map_get(&pass->numbers, pass->given.lifetimes->address[row]) - 1 : SIZE_MAX;
}

// What lived before the recording.
static void begin_walk(struct vr_giving *pass) {
    const size_t start = pass->given.lifetimes->start_count;
    for (size_t row = 0; row < start; row++) {
        if (is_large(pass, row)) vr_ordered_add(&pass->live, place_of(pass, row));
    }
    for (size_t row = 0; row < start; row++) {
        if (is_large(pass, row) && final_block(&pass->given, row) == 0) pass->given.rest[row] = rest_of(pass, row, place_of(pass, row), -1);
    }
}

static void walk(struct vr_giving *pass, size_t event) {
    if (pass->rows->row[event] == 0) return;
    const size_t row = pass->rows->row[event] - 1, place = place_of(pass, row);
    if (pass->given.lifetimes->birth[row] != event) {
        if (place != SIZE_MAX) vr_ordered_remove(&pass->live, place);
        return;
    }
    // What was at the address before, and was never seen to go, is gone.
    const uint32_t old = vr_event_replaced(pass->rows, event);
    if (old != 0 && place == SIZE_MAX && is_large(pass, old - 1)) vr_ordered_remove(&pass->live, place_of(pass, old - 1));
    if (place == SIZE_MAX) return;
    vr_ordered_add(&pass->live, place);
    pass->given.rest[row] = rest_of(pass, row, place, (int64_t)event);
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

enum vram_status vr_giving_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                  const struct vr_segment_lives *segments, struct vr_giving **giving) {
    struct vr_giving *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *made = (struct vr_giving){.given = {.view = view, .lifetimes = lifetimes}, .rows = rows, .segments = segments};
    made->given.rest = calloc(lifetimes->count + 1, sizeof *made->given.rest);
    if (made->given.rest == NULL) {
        free(made);
        return VRAM_NO_HOST_MEMORY;
    }
    read_options(&made->given);
    if (vr_model_is_host(view->model, view->device)) made->stage = FINISHED;
    *giving = made;
    return VRAM_OK;
}

void vr_giving_destroy(struct vr_giving *giving) {
    if (giving == NULL) return;
    free(giving->place);
    vr_map_release(&giving->numbers);
    vr_ordered_release(&giving->live);
    vr_given_release(&giving->given);
    free(giving);
}

static enum vram_status next_stage(struct vr_giving *pass) {
    pass->at = 0;
    if (pass->stage++ != GATHER) return VRAM_OK;
    VR_TRY(number_places(pass));
    begin_walk(pass);
    if (pass->place_count == 0) pass->stage = FINISHED;
    return VRAM_OK;
}

enum vram_status vr_giving_go_on(struct vr_giving *giving, size_t most, double *share) {
    while (most != 0 && giving->stage != FINISHED) {
        const size_t count = giving->stage == GATHER ? giving->given.lifetimes->count : giving->given.view->history->count;
        const size_t end = count - giving->at < most ? count : giving->at + most;
        most -= end - giving->at;
        for (; giving->at < end; giving->at++) {
            if (giving->stage == WALK)
                walk(giving, giving->at);
            else
                VR_TRY(gather(giving, giving->at));
        }
        if (end == count) VR_TRY(next_stage(giving));
    }
    const double events = (double)giving->given.view->history->count + 1;
    *share = giving->stage == FINISHED ? 1 : giving->stage == GATHER ? 0 : (double)giving->at / events;
    return VRAM_OK;
}

void vr_giving_take(struct vr_giving *giving, struct vr_given *given) {
    *given = giving->given;
    giving->given.rest = NULL;
}

void vr_given_release(struct vr_given *given) {
    free(given->rest);
    given->rest = NULL;
}
