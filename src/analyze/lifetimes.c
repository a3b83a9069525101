#include "analyze/lifetimes.h"

void vr_lifetimes_release(struct vr_lifetimes *lifetimes) {
    free(lifetimes->address);
    free(lifetimes->size_bytes);
    free(lifetimes->birth);
    free(lifetimes->death);
    free(lifetimes->stack);
    vr_map_release(&lifetimes->final_blocks);
    *lifetimes = (struct vr_lifetimes){0};
}

// What the two passes share.
struct passes {
    const struct vr_view *view;
    const struct vr_history *history;
    struct vr_lifetimes *out;
    struct vr_map live;
    struct vram_report_lot total;
    uint8_t free_action; // besides VR_ACTION_FREE, which ends both notions
};

static bool is_free(const struct passes *passes, uint8_t action) { return action == passes->free_action || action == VR_ACTION_FREE; }

// The live blocks of the final state. Of two blocks at one address the later one counts.
static enum vram_status collect_final(struct passes *passes, enum vr_notion notion) {
    const struct vr_blocks *blocks = &passes->view->model->blocks;
    struct vr_lifetimes *out = passes->out;
    for (size_t i = 0; i < passes->view->block_count; i++) {
        const size_t row = passes->view->blocks[i];
        const uint8_t state = blocks->state[row];
        const bool live = notion == VR_ALLOCATED ? vr_state_allocated(state) : vr_state_active(state);
        if (live) VR_TRY(vr_map_set(&out->final_blocks, blocks->address[row], (uint32_t)i + 1));
    }
    for (size_t s = 0; out->final_blocks.slots != NULL && s <= out->final_blocks.mask; s++) {
        const struct vr_map_slot *slot = &out->final_blocks.slots[s];
        if (slot->value == 0) continue;
        out->final_state.count++;
        out->final_state.bytes += blocks->requested_bytes[passes->view->blocks[slot->value - 1]];
        // In `live` a value up to block_count is 1 + block, anything above it 1 + block_count + event: where the size is found.
        VR_TRY(vr_map_set(&passes->live, slot->address, slot->value));
    }
    return VRAM_OK;
}

static uint64_t size_of(const struct passes *passes, uint32_t value) {
    const size_t blocks = passes->view->block_count;
    if (value <= blocks) return passes->view->model->blocks.requested_bytes[passes->view->blocks[value - 1]];
    return passes->history->size_bytes[value - 1 - blocks];
}

static enum vram_status undo(struct passes *passes) {
    const struct vr_history *history = passes->history;
    uint64_t *anomalies = passes->out->anomalies;
    for (size_t i = history->count; i-- > 0;) {
        const uint64_t address = history->address[i];
        if (history->action[i] == VR_ACTION_ALLOC) {
            const uint32_t value = vr_map_take(&passes->live, address);
            if (value == 0) {
                anomalies[VRAM_ANOMALY_UNDO_ALLOC_NOT_LIVE]++;
            } else if (size_of(passes, value) != history->size_bytes[i]) {
                anomalies[VRAM_ANOMALY_UNDO_ALLOC_SIZE_DIFFERS]++;
            }
        } else if (is_free(passes, history->action[i])) {
            if (vr_map_get(&passes->live, address) != 0) anomalies[VRAM_ANOMALY_UNDO_FREE_ALREADY_LIVE]++;
            VR_TRY(vr_map_set(&passes->live, address, (uint32_t)(1 + passes->view->block_count + i)));
        }
    }
    return VRAM_OK;
}

struct start_row {
    uint64_t address;
    uint64_t size_bytes;
};

static int by_address(const void *a, const void *b) {
    const struct start_row *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static enum vram_status allocate_rows(struct vr_lifetimes *out, size_t capacity) {
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

static enum vram_status be_born(struct passes *passes, uint64_t address, uint64_t size_bytes, uint32_t birth, uint32_t stack) {
    struct vr_lifetimes *out = passes->out;
    const size_t row = out->count++;
    out->address[row] = address;
    out->size_bytes[row] = size_bytes;
    out->birth[row] = birth;
    out->death[row] = VR_NEVER;
    out->stack[row] = stack;
    passes->total.count++;
    passes->total.bytes += size_bytes;
    return vr_map_set(&passes->live, address, (uint32_t)row + 1);
}

static void die(struct passes *passes, uint32_t value, uint32_t event) {
    passes->out->death[value - 1] = event;
    passes->total.count--;
    passes->total.bytes -= passes->out->size_bytes[value - 1];
}

// Turns what is left after the undo pass into the first rows.
static enum vram_status begin_rows(struct passes *passes) {
    size_t allocs = 0;
    for (size_t i = 0; i < passes->history->count; i++) allocs += passes->history->action[i] == VR_ACTION_ALLOC;
    const size_t count = passes->live.count;
    VR_TRY(allocate_rows(passes->out, count + allocs));
    struct start_row *rows = malloc((count == 0 ? 1 : count) * sizeof *rows);
    if (rows == NULL) return VRAM_NO_HOST_MEMORY;
    size_t filled = 0;
    for (size_t s = 0; passes->live.slots != NULL && s <= passes->live.mask; s++) {
        const struct vr_map_slot *slot = &passes->live.slots[s];
        if (slot->value != 0) rows[filled++] = (struct start_row){slot->address, size_of(passes, slot->value)};
    }
    qsort(rows, count, sizeof *rows, by_address);
    vr_map_clear(&passes->live);
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        status = be_born(passes, rows[i].address, rows[i].size_bytes, VR_BEFORE_TRACE, 0);
    }
    free(rows);
    passes->out->start_count = count;
    passes->out->start = passes->out->peak = passes->total;
    passes->out->peak_event = -1;
    return status;
}

static enum vram_status apply(struct passes *passes, size_t i) {
    const struct vr_history *history = passes->history;
    uint64_t *anomalies = passes->out->anomalies;
    const uint64_t address = history->address[i];
    if (history->action[i] == VR_ACTION_ALLOC) {
        const uint32_t old = vr_map_get(&passes->live, address);
        if (old != 0) {
            anomalies[VRAM_ANOMALY_ALLOC_ON_LIVE]++;
            die(passes, old, (uint32_t)i);
        }
        return be_born(passes, address, history->size_bytes[i], (uint32_t)i, history->stack[i]);
    }
    if (!is_free(passes, history->action[i])) return VRAM_OK;
    const uint32_t value = vr_map_take(&passes->live, address);
    if (value == 0) {
        anomalies[VRAM_ANOMALY_FREE_NOT_LIVE]++;
        return VRAM_OK;
    }
    if (passes->out->size_bytes[value - 1] != history->size_bytes[i]) anomalies[VRAM_ANOMALY_FREE_SIZE_DIFFERS]++;
    die(passes, value, (uint32_t)i);
    return VRAM_OK;
}

static enum vram_status forward(struct passes *passes, uint64_t *totals, size_t point_count) {
    const size_t events = passes->history->count;
    struct vr_lifetimes *out = passes->out;
    for (size_t p = 0, i = 0; p < (totals == NULL ? 1 : point_count); p++) {
        const size_t next = totals == NULL ? events : vr_point_first(events, point_count, p + 1);
        uint64_t largest = passes->total.bytes;
        for (; i < next; i++) {
            VR_TRY(apply(passes, i));
            if (passes->total.bytes > largest) largest = passes->total.bytes;
            if (passes->total.bytes > out->peak.bytes) {
                out->peak = passes->total;
                out->peak_event = (int64_t)i;
            }
        }
        if (totals != NULL) totals[p] = largest;
    }
    out->end = passes->total;
    return VRAM_OK;
}

// Compares the end of the history with the final blocks; gives what lived all the time the stack of its block.
static void compare_end(struct passes *passes) {
    struct vr_lifetimes *out = passes->out;
    const struct vr_blocks *blocks = &passes->view->model->blocks;
    for (size_t s = 0; passes->live.slots != NULL && s <= passes->live.mask; s++) {
        const struct vr_map_slot *slot = &passes->live.slots[s];
        if (slot->value == 0) continue;
        const uint32_t block = vr_map_get(&out->final_blocks, slot->address);
        if (block == 0) {
            out->anomalies[VRAM_ANOMALY_END_LIVE_NOT_BLOCK]++;
        } else if (slot->value - 1 < out->start_count) {
            out->stack[slot->value - 1] = blocks->stack[passes->view->blocks[block - 1]];
        }
    }
    for (size_t s = 0; out->final_blocks.slots != NULL && s <= out->final_blocks.mask; s++) {
        const struct vr_map_slot *slot = &out->final_blocks.slots[s];
        out->anomalies[VRAM_ANOMALY_END_BLOCK_NOT_LIVE] += slot->value != 0 && vr_map_get(&passes->live, slot->address) == 0;
    }
}

static enum vram_status run(struct passes *passes, enum vr_notion notion, uint64_t *totals, size_t point_count) {
    VR_TRY(collect_final(passes, notion));
    VR_TRY(undo(passes));
    VR_TRY(begin_rows(passes));
    VR_TRY(forward(passes, totals, point_count));
    compare_end(passes);
    return VRAM_OK;
}

enum vram_status vr_lifetimes_build(const struct vr_view *view, enum vr_notion notion, uint64_t *totals, size_t point_count,
                                    struct vr_lifetimes *lifetimes) {
    // 1 + block_count + event and 1 + row must fit 32 bits; rows are at most blocks + 2 * events.
    if (view->history->count > UINT32_MAX / 4 || view->block_count > UINT32_MAX / 4) return VRAM_LIMIT;
    struct vr_lifetimes built = {0};
    struct passes passes = {.view = view,
                            .history = view->history,
                            .out = &built,
                            .free_action = notion == VR_ALLOCATED ? VR_ACTION_FREE_REQUESTED : VR_ACTION_FREE_COMPLETED};
    const enum vram_status status = run(&passes, notion, totals, point_count);
    vr_map_release(&passes.live);
    if (status != VRAM_OK) {
        vr_lifetimes_release(&built);
        return status;
    }
    *lifetimes = built;
    return VRAM_OK;
}
