#include "explore/tables/labels.h"

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
    } * events; // by event
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

// Whether the row is the one that an event is about: of those that it began or ended, the one at its address.
static bool is_about(const struct vr_history *history, const struct vr_lifetimes *rows, size_t row, uint32_t event, bool begins) {
    if (event == VR_NEVER || history->address[event] != rows->address[row]) return false; // VR_BEFORE_TRACE is VR_NEVER
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
    // Most events are of no segment: the list is short, and searched.
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
