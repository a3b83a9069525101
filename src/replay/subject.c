// subject.c: see subject.h.
#include "replay/subject.h"

#include "replay/addresses.h"

static const struct vr_history no_history;

static bool is_private_row(const struct vr_segments *segments, size_t row) {
    return segments->pool_first[row] != 0 || segments->pool_second[row] != 0;
}

enum vram_status vr_subject_devices(const struct vr_model *model, uint32_t **devices, size_t *count) {
    bool seen[VRAM_MAX_DEVICES] = {false};
    for (size_t row = 0; row < model->segments.count; row++) {
        if (model->segments.device[row] < VRAM_MAX_DEVICES) seen[model->segments.device[row]] = true;
    }
    for (size_t device = 0; device < model->history_count && device < VRAM_MAX_DEVICES; device++) {
        if (model->histories[device].count > 0) seen[device] = true;
    }
    uint32_t *list = calloc(VRAM_MAX_DEVICES, sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    *count = 0;
    for (uint32_t device = 0; device < VRAM_MAX_DEVICES; device++) {
        if (seen[device]) list[(*count)++] = device;
    }
    *devices = list;
    return VRAM_OK;
}

// Segment rows are sorted through their addresses; a struct carries both because qsort() has no context.
struct keyed_row {
    uint64_t address;
    uint32_t row;
};

static int by_address(const void *left, const void *right) {
    const uint64_t a = ((const struct keyed_row *)left)->address, b = ((const struct keyed_row *)right)->address;
    return (a > b) - (a < b);
}

static int by_start(const void *left, const void *right) {
    const uint64_t a = ((const struct vr_span *)left)->start, b = ((const struct vr_span *)right)->start;
    return (a > b) - (a < b);
}

static enum vram_status collect_rows(struct vr_subject *subject, struct keyed_row *keyed) {
    const struct vr_segments *segments = &subject->model->segments;
    size_t count = 0;
    for (size_t row = 0; row < segments->count; row++) {
        if (segments->device[row] != subject->device) continue;
        if (is_private_row(segments, row)) {
            const uint64_t start = segments->address[row];
            uint64_t end = UINT64_MAX;
            (void)vr_add_u64(start, segments->total_bytes[row], &end);
            subject->private_spans[subject->private_count++] = (struct vr_span){start, end};
        } else {
            keyed[count++] = (struct keyed_row){segments->address[row], (uint32_t)row};
        }
    }
    qsort(keyed, count, sizeof *keyed, by_address);
    if (subject->private_count > 1) qsort(subject->private_spans, subject->private_count, sizeof *subject->private_spans, by_start);
    for (size_t i = 0; i < count; i++) subject->segments[i] = keyed[i].row;
    subject->segment_count = count;
    return VRAM_OK;
}

static int by_value(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static enum vram_status add_stream(struct vr_subject *subject, struct vr_addresses *seen, size_t *capacity, uint64_t stream) {
    if (vr_addresses_get(seen, stream) != VR_ABSENT) return VRAM_OK;
    VR_TRY(vr_addresses_put(seen, stream, 0));
    VR_TRY(vr_grow((void **)&subject->streams, capacity, subject->stream_count + 1, sizeof *subject->streams));
    subject->streams[subject->stream_count++] = stream;
    return VRAM_OK;
}

static enum vram_status collect_streams(struct vr_subject *subject, struct vr_addresses *seen) {
    const struct vr_history *history = subject->history;
    size_t capacity = 0;
    VR_TRY(add_stream(subject, seen, &capacity, 0));
    for (size_t i = 0; i < subject->segment_count; i++) {
        VR_TRY(add_stream(subject, seen, &capacity, subject->model->segments.stream[subject->segments[i]]));
    }
    for (size_t event = 0; event < history->count; event++) {
        if (event > 0 && history->stream[event] == history->stream[event - 1]) continue;
        VR_TRY(add_stream(subject, seen, &capacity, history->stream[event]));
    }
    qsort(subject->streams, subject->stream_count, sizeof *subject->streams, by_value);
    return VRAM_OK;
}

enum vram_status vr_subject_init(struct vr_subject *subject, const struct vr_model *model, const struct vr_options *options,
                                 uint32_t device, struct vram_error *error) {
    *subject = (struct vr_subject){.model = model, .options = options, .device = device, .history = &no_history};
    if (device < model->history_count) subject->history = &model->histories[device];
    if (subject->history->count >= UINT32_MAX - 1 || model->segments.count >= UINT32_MAX - 1) {
        return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "device %u has more events or segments than a replay can number", device);
    }
    const size_t rows = model->segments.count + 1;
    struct keyed_row *keyed = malloc(rows * sizeof *keyed);
    subject->segments = malloc(rows * sizeof *subject->segments);
    subject->private_spans = malloc(rows * sizeof *subject->private_spans);
    enum vram_status status = VRAM_NO_HOST_MEMORY;
    if (keyed != NULL && subject->segments != NULL && subject->private_spans != NULL) status = collect_rows(subject, keyed);
    free(keyed);
    struct vr_addresses seen = {0};
    if (status == VRAM_OK) status = collect_streams(subject, &seen);
    vr_addresses_release(&seen);
    if (status != VRAM_OK) vr_subject_release(subject);
    return status;
}

void vr_subject_release(struct vr_subject *subject) {
    free(subject->segments);
    free(subject->private_spans);
    free(subject->streams);
    *subject = (struct vr_subject){0};
}

static bool in_private_span(const struct vr_subject *subject, uint64_t address) {
    size_t low = 0, high = subject->private_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (subject->private_spans[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && address < subject->private_spans[low - 1].end;
}

bool vr_subject_is_private(const struct vr_subject *subject, size_t event) {
    const struct vr_history *history = subject->history;
    if ((history->has[event] & VR_HAS_POOL_ID) != 0) return history->pool_first[event] != 0 || history->pool_second[event] != 0;
    if (subject->private_count == 0 || history->action[event] == VR_ACTION_OOM) return false;
    return in_private_span(subject, history->address[event]);
}

bool vr_action_is_ignored(enum vr_action action) {
    switch (action) {
    case VR_ACTION_ALLOC:
    case VR_ACTION_FREE_REQUESTED:
    case VR_ACTION_FREE_COMPLETED:
    case VR_ACTION_FREE:
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_MAP:
    case VR_ACTION_SEGMENT_UNMAP:
    case VR_ACTION_OOM: return false;
    default: return true;
    }
}
