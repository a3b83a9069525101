// Maps events to rows of allocations: the row that an event concerns, the rows live after it, and the numbers in their labels.
#include "explore/tables/event_rows.h"

static int rows_by_event(const void *a, const void *b) {
    const struct vr_replaced *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

static enum vram_status find_replaced(const struct vr_lifetimes *lifetimes, struct vr_event_rows *rows) {
    for (size_t i = 0; i < lifetimes->count; i++) {
        const uint32_t death = lifetimes->death[i];
        if (death == VR_NEVER || rows->row[death] == i + 1) continue;
        VR_TRY(VR_GROW(rows, replaced, rows->replaced_count + 1));
        rows->replaced[rows->replaced_count++] = (struct vr_replaced){death, (uint32_t)i};
    }
    if (rows->replaced_count != 0) qsort(rows->replaced, rows->replaced_count, sizeof *rows->replaced, rows_by_event);
    return VRAM_OK;
}

enum vram_status vr_event_rows_build(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_event_rows *rows) {
    struct vr_event_rows made = {.row = calloc(view->history->count + 1, sizeof *made.row)};
    if (made.row == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < lifetimes->count; i++) {
        if (lifetimes->death[i] != VR_NEVER) made.row[lifetimes->death[i]] = (uint32_t)i + 1;
    }
    for (size_t i = lifetimes->start_count; i < lifetimes->count; i++) made.row[lifetimes->birth[i]] = (uint32_t)i + 1;
    const enum vram_status status = find_replaced(lifetimes, &made);
    if (status == VRAM_OK) *rows = made;
    if (status != VRAM_OK) vr_event_rows_release(&made);
    return status;
}

void vr_event_rows_release(struct vr_event_rows *rows) {
    free(rows->row);
    free(rows->replaced);
    memset(rows, 0, sizeof *rows);
}

uint32_t vr_event_replaced(const struct vr_event_rows *rows, size_t event) {
    for (size_t low = 0, high = rows->replaced_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (rows->replaced[middle].event == event) return rows->replaced[middle].row + 1;
        if (rows->replaced[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

size_t vr_other_row(const struct vr_lifetimes *from, const struct vr_lifetimes *to, size_t row) {
    assert(row < from->count);
    // Both kinds have one row per alloc event, after the rows from before the history.
    if (row >= from->start_count) return row - from->start_count + to->start_count;
    size_t found;
    VR_LOWER_BOUND(found, i, 0, to->start_count, to->address[i] < from->address[row]);
    return found < to->start_count && to->address[found] == from->address[row] ? found : SIZE_MAX;
}

// Returns whether the event of a row's birth or death refers to the row, directly or as replaced.
static bool row_names_event(const struct vr_event_rows *rows, size_t row, uint32_t event) {
    return rows->row[event] == row + 1 || vr_event_replaced(rows, event) == row + 1;
}

bool vr_event_rows_check(const struct vr_event_rows *rows, const struct vr_lifetimes *lifetimes) {
    for (size_t row = 0; row < lifetimes->count; row++) {
        if (row >= lifetimes->start_count && rows->row[lifetimes->birth[row]] != row + 1) return false;
        if (lifetimes->death[row] != VR_NEVER && !row_names_event(rows, row, lifetimes->death[row])) return false;
    }
    for (size_t i = 1; i < rows->replaced_count; i++) {
        if (rows->replaced[i].event <= rows->replaced[i - 1].event) return false;
    }
    return true;
}

// Bytes of all checkpoints together, and the least number of events between two.
enum { MOST_BYTES = 64 << 20, LEAST_EVENTS = 4096 };

struct vr_live_rows {
    const struct vr_lifetimes *lifetimes;
    size_t events;
    size_t spacing; // checkpoint c lists the rows live before event c * spacing
    uint32_t *rows; // of all checkpoints in turn, each ascending
    size_t *first;  // count + 1: offset of each checkpoint
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

// Appends the listed rows and the rows of [begin, end) that are live after `event`.
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

// Chooses the spacing: the largest number of live rows determines how many checkpoints fit.
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
    // One more than needed, so that the array exists even with nothing to list.
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

// Checks that checkpoint c lists exactly the rows live before its event, ascending.
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

enum vram_status vr_versions_count(const struct vr_address_ids *addresses, const struct vr_lifetimes *rows, uint32_t **versions) {
    uint32_t *next = calloc(addresses->count + 1, sizeof *next), *made = malloc((rows->count + 1) * sizeof *made);
    enum vram_status status = next == NULL || made == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (size_t n = 0; n < addresses->count && rows->start_count != 0 && status == VRAM_OK; n++) {
        size_t row;
        VR_LOWER_BOUND(row, i, 0, rows->start_count, rows->address[i] < addresses->address[n]);
        next[n] = row < rows->start_count && rows->address[row] == addresses->address[n];
    }
    for (size_t row = 0; row < rows->count && status == VRAM_OK; row++)
        made[row] = row < rows->start_count ? 0 : next[addresses->of_event[rows->birth[row]]]++;
    free(next);
    if (status == VRAM_OK) *versions = made;
    if (status != VRAM_OK) free(made);
    return status;
}

struct vr_segment_labels {
    uint32_t *version; // by row of the segments
    struct segment_event {
        uint32_t event;
        uint32_t row;
    } * events; // sorted by event
    size_t event_count;
};

static enum vram_status count_rows(struct vr_segment_labels *labels, const struct vr_lifetimes *rows) {
    struct vr_map counts = {0};
    enum vram_status status = VRAM_OK;
    labels->version = malloc((rows->count + 1) * sizeof *labels->version);
    if (labels->version == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < rows->count && status == VRAM_OK; row++) {
        labels->version[row] = vr_map_get(&counts, rows->address[row]);
        status = vr_map_set(&counts, rows->address[row], labels->version[row] + 1);
    }
    vr_map_release(&counts);
    return status;
}

static int labels_by_event(const void *a, const void *b) {
    const uint32_t x = ((const struct segment_event *)a)->event, y = ((const struct segment_event *)b)->event;
    return VR_ORDER(x, y);
}

// Returns whether an event concerns the row: of the rows that it begins or ends, the one at its address.
static bool is_about(const struct vr_history *history, const struct vr_lifetimes *rows, size_t row, uint32_t event, bool begins) {
    if (event == VR_NEVER || history->address[event] != rows->address[row]) return false; // VR_BEFORE_TRACE equals VR_NEVER
    const uint8_t action = history->action[event];
    return begins || action == VR_ACTION_SEGMENT_FREE || action == VR_ACTION_SEGMENT_UNMAP;
}

static enum vram_status list_events(struct vr_segment_labels *labels, const struct vr_history *history, const struct vr_lifetimes *rows) {
    labels->events = malloc((2 * rows->count + 1) * sizeof *labels->events);
    if (labels->events == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < rows->count; row++) {
        for (int end = 0; end < 2; end++) {
            const uint32_t event = end ? rows->death[row] : rows->birth[row];
            if (!is_about(history, rows, row, event, !end)) continue;
            labels->events[labels->event_count++] = (struct segment_event){event, (uint32_t)row};
        }
    }
    if (labels->event_count != 0) qsort(labels->events, labels->event_count, sizeof *labels->events, labels_by_event);
    return VRAM_OK;
}

enum vram_status vr_segment_labels_create(const struct vr_history *history, const struct vr_lifetimes *rows,
                                          struct vr_segment_labels **labels) {
    struct vr_segment_labels *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    enum vram_status status = count_rows(made, rows);
    if (status == VRAM_OK) status = list_events(made, history, rows);
    if (status == VRAM_OK) *labels = made;
    if (status != VRAM_OK) vr_segment_labels_destroy(made);
    return status;
}

void vr_segment_labels_destroy(struct vr_segment_labels *labels) {
    if (labels == NULL) return;
    free(labels->version);
    free(labels->events);
    free(labels);
}

uint32_t vr_segment_version(const struct vr_segment_labels *labels, size_t row) { return labels->version[row]; }

uint32_t vr_segment_version_of_event(const struct vr_segment_labels *labels, size_t event) {
    // Few events concern segments, so the list is short and searched.
    size_t first;
    VR_LOWER_BOUND(first, i, 0, labels->event_count, labels->events[i].event < event);
    return first < labels->event_count && labels->events[first].event == event ? labels->version[labels->events[first].row] : 0;
}

bool vr_label_find(const struct vr_lifetimes *lifetimes, char letter, const char *label, size_t *row) {
    const char *digits = *label == letter && label[1] != '\0' ? label + 1 : label;
    char *end;
    const unsigned long long address = strtoull(digits, &end, 16);
    if (end == digits || (*end != '\0' && *end != '_')) return false;
    unsigned long long version = 0;
    if (*end == '_') {
        digits = end + 1;
        version = strtoull(digits, &end, 10);
        if (end == digits || *end != '\0') return false;
    }
    for (size_t i = 0; i < lifetimes->count; i++) {
        if (lifetimes->address[i] != address || version-- != 0) continue;
        *row = i;
        return true;
    }
    return false;
}
