// Finds every allocation of one device with its birth and death, in two passes over its history.
#include "analyze/lifetimes.h"

#include "base/hash.h"

// Most histories have at least some hundreds of addresses; this avoids growing the tables for them.
enum { FIRST_ADDRESSES = 1024 };

// The numbers assigned so far.
struct numbering {
    struct vr_address_ids *out;
    size_t capacity;       // of out->address
    struct vr_map numbers; // address -> 1 + number
    uint64_t last_address; // most recently numbered: a free and its completion have the same address
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

void vr_lifetimes_release(struct vr_lifetimes *lifetimes) {
    free(lifetimes->address);
    free(lifetimes->size_bytes);
    free(lifetimes->birth);
    free(lifetimes->death);
    free(lifetimes->stack);
    vr_map_release(&lifetimes->final_blocks);
    *lifetimes = (struct vr_lifetimes){0};
}

// The state shared by the two passes.
struct passes {
    const struct vr_view *view;
    const struct vr_history *history;
    const struct vr_address_ids *addresses;
    struct vr_lifetimes *out;
    uint32_t *live; // by address number; 0: nothing is live there
    struct vram_report_sum total;
    uint8_t free_action; // in addition to VR_ACTION_FREE, which ends both kinds of lifetime
};

static bool is_free(const struct passes *passes, uint8_t action) { return action == passes->free_action || action == VR_ACTION_FREE; }

// Collects the live blocks of the final state. Of two blocks at one address the later one counts.
static enum vram_status collect_final(struct passes *passes, enum vr_lifetime_kind kind) {
    const struct vr_blocks *blocks = &passes->view->model->blocks;
    struct vr_lifetimes *out = passes->out;
    for (size_t i = 0; i < passes->view->block_count; i++) {
        const size_t row = passes->view->blocks[i];
        const uint8_t state = blocks->state[row];
        const bool live = kind == VR_LIFETIME_ALLOCATED ? vr_state_allocated(state) : vr_state_active(state);
        if (!live) continue;
        VR_TRY(vr_map_set(&out->final_blocks, blocks->address[row], (uint32_t)i + 1));
        // In `live`, a value up to block_count is 1 + block, and a larger one is 1 + block_count + event: where to find the size.
        passes->live[passes->addresses->of_block[i]] = (uint32_t)i + 1;
    }
    size_t at = 0;
    for (struct vr_map_slot block; vr_map_next(&out->final_blocks, &at, &block);) {
        out->final_state.count++;
        out->final_state.bytes += blocks->requested_bytes[passes->view->blocks[block.value - 1]];
    }
    return VRAM_OK;
}

// Returns the `live` entry of the event's address; NULL for an event that does not begin or end a lifetime of this kind.
static uint32_t *birth_place(const struct passes *passes, size_t event) {
    const uint8_t action = passes->history->action[event];
    return action == VR_ACTION_ALLOC || is_free(passes, action) ? &passes->live[passes->addresses->of_event[event]] : NULL;
}

static uint64_t size_of_birth(const struct passes *passes, uint32_t value) {
    const size_t blocks = passes->view->block_count;
    if (value <= blocks) return passes->view->model->blocks.requested_bytes[passes->view->blocks[value - 1]];
    return passes->history->size_bytes[value - 1 - blocks];
}

static void undo_history(struct passes *passes) {
    const struct vr_history *history = passes->history;
    uint64_t *anomalies = passes->out->anomalies;
    for (size_t i = history->count; i-- > 0;) {
        uint32_t *place = birth_place(passes, i);
        if (place == NULL) continue;
        if (history->action[i] == VR_ACTION_ALLOC) {
            if (*place == 0) {
                anomalies[VRAM_ANOMALY_UNDO_ALLOC_NOT_LIVE]++;
            } else if (size_of_birth(passes, *place) != history->size_bytes[i]) {
                anomalies[VRAM_ANOMALY_UNDO_ALLOC_SIZE_DIFFERS]++;
            }
            *place = 0;
        } else {
            anomalies[VRAM_ANOMALY_UNDO_FREE_ALREADY_LIVE] += *place != 0;
            *place = (uint32_t)(1 + passes->view->block_count + i);
        }
    }
}

struct start_row {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t number; // of the address
};

static int births_by_address(const void *a, const void *b) {
    const struct start_row *x = a, *y = b;
    return VR_ORDER(x->address, y->address);
}

enum vram_status vr_lifetimes_allocate(struct vr_lifetimes *out, size_t capacity) {
    if (capacity > SIZE_MAX / sizeof(uint64_t)) return VRAM_NO_HOST_MEMORY;
    const size_t rows = capacity == 0 ? 1 : capacity;
    out->address = malloc(rows * sizeof *out->address);
    out->size_bytes = malloc(rows * sizeof *out->size_bytes);
    out->birth = malloc(rows * sizeof *out->birth);
    out->death = malloc(rows * sizeof *out->death);
    out->stack = malloc(rows * sizeof *out->stack);
    const bool good = out->address != NULL && out->size_bytes != NULL && out->birth != NULL && out->death != NULL && out->stack != NULL;
    return good ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}

static void be_born(struct passes *passes, uint32_t number, uint64_t size_bytes, uint32_t birth, uint32_t stack) {
    struct vr_lifetimes *out = passes->out;
    const size_t row = out->count++;
    out->address[row] = passes->addresses->address[number];
    out->size_bytes[row] = size_bytes;
    out->birth[row] = birth;
    out->death[row] = VR_NEVER;
    out->stack[row] = stack;
    passes->total.count++;
    passes->total.bytes += size_bytes;
    passes->live[number] = (uint32_t)row + 1;
}

static void end_lifetime(struct passes *passes, uint32_t value, uint32_t event) {
    passes->out->death[value - 1] = event;
    passes->total.count--;
    passes->total.bytes -= passes->out->size_bytes[value - 1];
}

// Turns the entries left after the undo pass into the first rows.
static enum vram_status begin_rows(struct passes *passes) {
    size_t allocs = 0;
    for (size_t i = 0; i < passes->history->count; i++) allocs += passes->history->action[i] == VR_ACTION_ALLOC;
    const size_t numbers = passes->addresses->count;
    size_t count = 0, filled = 0;
    for (size_t n = 0; n < numbers; n++) count += passes->live[n] != 0;
    VR_TRY(vr_lifetimes_allocate(passes->out, count + allocs));
    struct start_row *rows = malloc((count == 0 ? 1 : count) * sizeof *rows);
    if (rows == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t n = 0; n < numbers; n++) {
        if (passes->live[n] != 0)
            rows[filled++] = (struct start_row){passes->addresses->address[n], size_of_birth(passes, passes->live[n]), (uint32_t)n};
    }
    qsort(rows, count, sizeof *rows, births_by_address);
    for (size_t i = 0; i < count; i++) be_born(passes, rows[i].number, rows[i].size_bytes, VR_BEFORE_TRACE, 0);
    free(rows);
    passes->out->start_count = count;
    passes->out->start = passes->out->peak = passes->total;
    passes->out->peak_event = -1;
    return VRAM_OK;
}

static void apply_history_event(struct passes *passes, size_t i) {
    const struct vr_history *history = passes->history;
    uint64_t *anomalies = passes->out->anomalies;
    uint32_t *place = birth_place(passes, i);
    if (place == NULL) return;
    const uint32_t old = *place;
    if (history->action[i] == VR_ACTION_ALLOC) {
        anomalies[VRAM_ANOMALY_ALLOC_ON_LIVE] += old != 0;
        if (old != 0) end_lifetime(passes, old, (uint32_t)i);
        be_born(passes, passes->addresses->of_event[i], history->size_bytes[i], (uint32_t)i, history->stack[i]);
        return;
    }
    if (old == 0) {
        anomalies[VRAM_ANOMALY_FREE_NOT_LIVE]++;
        return;
    }
    if (passes->out->size_bytes[old - 1] != history->size_bytes[i]) anomalies[VRAM_ANOMALY_FREE_SIZE_DIFFERS]++;
    end_lifetime(passes, old, (uint32_t)i);
    *place = 0;
}

static void walk_forward(struct passes *passes, uint64_t *totals, size_t point_count) {
    const size_t events = passes->history->count;
    struct vr_lifetimes *out = passes->out;
    for (size_t p = 0, i = 0; p < (totals == NULL ? 1 : point_count); p++) {
        const size_t next = totals == NULL ? events : vr_point_first(events, point_count, p + 1);
        uint64_t largest = passes->total.bytes;
        for (; i < next; i++) {
            apply_history_event(passes, i);
            if (passes->total.bytes > largest) largest = passes->total.bytes;
            if (passes->total.bytes > out->peak.bytes) {
                out->peak = passes->total;
                out->peak_event = (int64_t)i;
            }
        }
        if (totals != NULL) totals[p] = largest;
    }
    out->end = passes->total;
}

// Compares the end of the history with the final blocks; gives allocations that were always live the stack of their block.
static void compare_end(struct passes *passes) {
    struct vr_lifetimes *out = passes->out;
    const struct vr_blocks *blocks = &passes->view->model->blocks;
    size_t met = 0;
    for (size_t n = 0; n < passes->addresses->count; n++) {
        const uint32_t row = passes->live[n];
        if (row == 0) continue;
        const uint32_t block = vr_map_get(&out->final_blocks, passes->addresses->address[n]);
        met += block != 0;
        if (block == 0) {
            out->anomalies[VRAM_ANOMALY_END_LIVE_NOT_BLOCK]++;
        } else if (row - 1 < out->start_count) {
            out->stack[row - 1] = blocks->stack[passes->view->blocks[block - 1]];
        }
    }
    out->anomalies[VRAM_ANOMALY_END_BLOCK_NOT_LIVE] += out->final_blocks.count - met;
}

static enum vram_status run_passes(struct passes *passes, enum vr_lifetime_kind kind, uint64_t *totals, size_t point_count) {
    passes->live = calloc(passes->addresses->count + 1, sizeof *passes->live);
    if (passes->live == NULL) return VRAM_NO_HOST_MEMORY;
    VR_TRY(collect_final(passes, kind));
    undo_history(passes);
    VR_TRY(begin_rows(passes));
    walk_forward(passes, totals, point_count);
    compare_end(passes);
    return VRAM_OK;
}

enum vram_status vr_lifetimes_build_by(const struct vr_view *view, const struct vr_address_ids *addresses, enum vr_lifetime_kind kind,
                                       uint64_t *totals, size_t point_count, struct vr_lifetimes *lifetimes) {
    // 1 + block_count + event and 1 + row must fit 32 bits; there are at most blocks + 2 * events rows. vr_address_ids_build() ensures
    // that.
    assert(view->history->count <= UINT32_MAX / 4 && view->block_count <= UINT32_MAX / 4);
    struct vr_lifetimes built = {0};
    struct passes passes = {.view = view,
                            .history = view->history,
                            .addresses = addresses,
                            .out = &built,
                            .free_action = kind == VR_LIFETIME_ALLOCATED ? VR_ACTION_FREE_REQUESTED : VR_ACTION_FREE_COMPLETED};
    const enum vram_status status = run_passes(&passes, kind, totals, point_count);
    free(passes.live);
    if (status != VRAM_OK) {
        vr_lifetimes_release(&built);
        return status;
    }
    *lifetimes = built;
    return VRAM_OK;
}

enum vram_status vr_lifetimes_build(const struct vr_view *view, enum vr_lifetime_kind kind, uint64_t *totals, size_t point_count,
                                    struct vr_lifetimes *lifetimes) {
    struct vr_address_ids addresses = {0};
    VR_TRY(vr_address_ids_build(view, &addresses));
    const enum vram_status status = vr_lifetimes_build_by(view, &addresses, kind, totals, point_count, lifetimes);
    vr_address_ids_release(&addresses);
    return status;
}

// --- the check ------------------------------------------------------------------------------------------------------------------
static bool is_sum(const struct vr_lifetimes *lifetimes, int64_t event, const struct vram_report_sum *sum) {
    struct vram_report_sum found = {0};
    for (size_t i = 0; i < lifetimes->count; i++) {
        if (!vr_lifetimes_live_at(lifetimes, i, event)) continue;
        found.count++;
        found.bytes += lifetimes->size_bytes[i];
    }
    return found.count == sum->count && found.bytes == sum->bytes;
}

static bool is_ordered(const struct vr_lifetimes *lifetimes, size_t i) {
    const bool at_start = i < lifetimes->start_count;
    if (at_start != (lifetimes->birth[i] == VR_BEFORE_TRACE)) return false;
    if (i == 0 || i == lifetimes->start_count) return true;
    return at_start ? lifetimes->address[i - 1] < lifetimes->address[i] : lifetimes->birth[i - 1] < lifetimes->birth[i];
}

bool vr_lifetimes_check(const struct vr_lifetimes *lifetimes, const struct vr_view *view) {
    const struct vr_history *history = view->history;
    if (lifetimes->start_count > lifetimes->count || lifetimes->peak_event >= (int64_t)history->count) return false;
    for (size_t i = 0; i < lifetimes->count; i++) {
        const uint32_t birth = lifetimes->birth[i], death = lifetimes->death[i];
        if (!is_ordered(lifetimes, i)) return false;
        if (birth != VR_BEFORE_TRACE && (birth >= history->count || history->address[birth] != lifetimes->address[i])) return false;
        if (death == VR_NEVER) continue;
        if (death >= history->count || history->address[death] != lifetimes->address[i]) return false;
        if (birth != VR_BEFORE_TRACE && death <= birth) return false;
    }
    return is_sum(lifetimes, -1, &lifetimes->start) && is_sum(lifetimes, lifetimes->peak_event, &lifetimes->peak) &&
           is_sum(lifetimes, (int64_t)history->count - 1, &lifetimes->end) && vr_map_check(&lifetimes->final_blocks);
}
