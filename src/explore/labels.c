#include "explore/labels.h"

struct vr_labels {
    uint32_t *version; // by row
    struct segment_event {
        uint32_t event;
        uint32_t version;
    } * segment; // by event
    size_t segment_count;
    size_t segment_capacity;
};

// The version at an address; `begins`: of a new one.
static enum vram_status count(struct vr_map *seen, uint64_t address, bool begins, uint32_t *version) {
    const uint32_t before = vr_map_get(seen, address);
    *version = begins || before == 0 ? before : before - 1;
    return begins ? vr_map_set(seen, address, before + 1) : VRAM_OK;
}

static enum vram_status count_segments(struct vr_labels *labels, const struct vr_history *history, struct vr_map *seen) {
    for (size_t i = 0; i < history->count; i++) {
        const uint8_t action = history->action[i];
        const bool begins = action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_MAP;
        if (!begins && action != VR_ACTION_SEGMENT_FREE && action != VR_ACTION_SEGMENT_UNMAP) continue;
        VR_TRY(vr_grow((void **)&labels->segment, &labels->segment_capacity, labels->segment_count + 1, sizeof *labels->segment));
        struct segment_event *at = &labels->segment[labels->segment_count++];
        at->event = (uint32_t)i;
        VR_TRY(count(seen, history->address[i], begins, &at->version));
    }
    return VRAM_OK;
}

static enum vram_status count_all(struct vr_labels *labels, const struct vr_view *view, const struct vr_lifetimes *lifetimes,
                                  struct vr_map *seen) {
    labels->version = malloc((lifetimes->count + 1) * sizeof *labels->version);
    if (labels->version == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < lifetimes->count; row++) VR_TRY(count(seen, lifetimes->address[row], true, &labels->version[row]));
    vr_map_clear(seen);
    return count_segments(labels, view->history, seen);
}

enum vram_status vr_labels_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_labels **labels) {
    struct vr_labels *made = calloc(1, sizeof *made);
    struct vr_map seen = {0};
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    const enum vram_status status = count_all(made, view, lifetimes, &seen);
    vr_map_release(&seen);
    if (status == VRAM_OK) *labels = made;
    if (status != VRAM_OK) vr_labels_destroy(made);
    return status;
}

void vr_labels_destroy(struct vr_labels *labels) {
    if (labels == NULL) return;
    free(labels->version);
    free(labels->segment);
    free(labels);
}

uint32_t vr_label_of_row(const struct vr_labels *labels, size_t row) { return labels->version[row]; }

uint32_t vr_label_of_segment_event(const struct vr_labels *labels, size_t event) {
    size_t low = 0, high = labels->segment_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (labels->segment[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low < labels->segment_count && labels->segment[low].event == event ? labels->segment[low].version : 0;
}

enum vram_status vr_seen_labels(struct vr_seen_device *device, const struct vr_labels **labels) {
    if (device->labels == NULL) {
        const struct vr_lifetimes *lifetimes = NULL;
        VR_TRY(vr_seen_lifetimes(device, VR_ALLOCATED, &lifetimes));
        VR_TRY(vr_labels_create(device->view, lifetimes, &device->labels));
    }
    *labels = device->labels;
    return VRAM_OK;
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
