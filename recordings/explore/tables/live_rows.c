#include "explore/tables/live_rows.h"

// Bytes of all checkpoints together, and the fewest events between two.
enum { MOST_BYTES = 64 << 20, LEAST_EVENTS = 4096 };

struct vr_live_rows {
    const struct vr_lifetimes *lifetimes;
    size_t events;
    size_t spacing; // checkpoint c holds what is live before event c * spacing
    uint32_t *rows; // of all checkpoints, one after the other, each ascending
    size_t *first;  // count + 1
    size_t count;
    size_t rows_capacity;
};

size_t vr_first_born(const struct vr_lifetimes *lifetimes, size_t event) {
    size_t low = lifetimes->start_count, high = lifetimes->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (lifetimes->birth[middle] < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Appends the rows among [begin, end) and those listed that are live after `event`.
static size_t filter_live(const struct vr_lifetimes *lifetimes, const uint32_t *listed, size_t count, size_t begin, size_t end,
                          int64_t event, uint32_t *out) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (vr_lifetimes_live_at(lifetimes, listed[i], event)) out[kept++] = listed[i];
    }
    for (size_t row = begin; row < end; row++) {
        if (vr_lifetimes_live_at(lifetimes, row, event)) out[kept++] = (uint32_t)row;
    }
    return kept;
}

// The most that is live at once decides how many checkpoints fit.
static size_t spacing_for(size_t events, const struct vr_lifetimes *lifetimes) {
    const size_t most = lifetimes->peak.count + lifetimes->start.count + 1;
    const size_t checkpoints = MOST_BYTES / (most * sizeof(uint32_t)) + 1;
    const size_t spacing = events / checkpoints + 1;
    return spacing < LEAST_EVENTS ? LEAST_EVENTS : spacing;
}

static enum vram_status add_checkpoint(struct vr_live_rows *live, size_t number) {
    const struct vr_lifetimes *lifetimes = live->lifetimes;
    const size_t before = number == 0 ? 0 : (number - 1) * live->spacing, event = number * live->spacing;
    const size_t begin = number == 0 ? 0 : vr_first_born(lifetimes, before),
                 end = number == 0 ? lifetimes->start_count : vr_first_born(lifetimes, event);
    const size_t listed = number == 0 ? 0 : live->first[number] - live->first[number - 1];
    // One more than needed: with nothing to list there are rows all the same.
    VR_TRY(VR_GROW(live, rows, live->first[number] + listed + (end - begin) + 1));
    const uint32_t *list = number == 0 ? live->rows : live->rows + live->first[number - 1];
    const size_t kept = filter_live(lifetimes, list, listed, begin, end, (int64_t)event - 1, live->rows + live->first[number]);
    live->first[number + 1] = live->first[number] + kept;
    live->count = number + 1;
    return VRAM_OK;
}

enum vram_status vr_live_rows_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_live_rows **live) {
    struct vr_live_rows *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->lifetimes = lifetimes;
    made->events = view->history->count;
    made->spacing = spacing_for(made->events, lifetimes);
    const size_t count = made->events / made->spacing + 1;
    made->first = calloc(count + 1, sizeof *made->first);
    enum vram_status status = made->first == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = add_checkpoint(made, i);
    if (status == VRAM_OK) *live = made;
    if (status != VRAM_OK) vr_live_rows_destroy(made);
    return status;
}

void vr_live_rows_destroy(struct vr_live_rows *live) {
    if (live == NULL) return;
    free(live->rows);
    free(live->first);
    free(live);
}

enum vram_status vr_live_rows_at(const struct vr_live_rows *live, int64_t event, uint32_t **rows, size_t *count) {
    assert(event >= -1);
    const struct vr_lifetimes *lifetimes = live->lifetimes;
    const size_t next = event < 0 ? 0 : (size_t)event + 1 < live->events ? (size_t)event + 1 : live->events;
    const size_t checkpoint = next / live->spacing;
    const size_t listed = live->first[checkpoint + 1] - live->first[checkpoint];
    const size_t begin = checkpoint == 0 ? lifetimes->start_count : vr_first_born(lifetimes, checkpoint * live->spacing);
    const size_t end = vr_first_born(lifetimes, next);
    uint32_t *out = malloc((listed + (end - begin) + 1) * sizeof *out);
    if (out == NULL) return VRAM_NO_HOST_MEMORY;
    *count = filter_live(lifetimes, live->rows + live->first[checkpoint], listed, begin, end, (int64_t)next - 1, out);
    *rows = out;
    return VRAM_OK;
}

// Checkpoint c holds exactly what is live before its event, ascending.
static bool checkpoint_holds(const struct vr_live_rows *live, size_t c) {
    const int64_t event = (int64_t)(c * live->spacing) - 1;
    size_t at = live->first[c];
    for (size_t row = 0; row < live->lifetimes->count; row++) {
        if (!vr_lifetimes_live_at(live->lifetimes, row, event)) continue;
        if (at == live->first[c + 1] || live->rows[at++] != row) return false;
    }
    return at == live->first[c + 1];
}

bool vr_live_rows_check(const struct vr_live_rows *live) {
    if (live->first[0] != 0 || live->count != live->events / live->spacing + 1) return false;
    for (size_t c = 0; c < live->count; c++) {
        if (!checkpoint_holds(live, c)) return false;
    }
    return true;
}
