#include "explore/tables/curve.h"

// Events per bucket of the lowest level, and buckets per bucket of the next higher one.
enum { BUCKET = VR_CURVE_BUCKET, FAN = 8, MOST_LEVELS = 16 };

struct extreme {
    int64_t low, high;
};

struct vr_curve {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes; // NULL: the curve of reserved bytes
    const struct vr_event_rows *rows;
    int64_t start;
    int64_t *before;                    // by bucket of the lowest level: the total before its first event
    struct extreme *level[MOST_LEVELS]; // level 0: buckets of BUCKET events
    size_t length[MOST_LEVELS];
    size_t levels;
};

static int64_t event_delta(const struct vr_curve *curve, size_t event) {
    if (curve->lifetimes == NULL) return (int64_t)vr_reserved_delta(curve->view->history, event);
    const uint32_t row = curve->rows->row[event];
    if (row == 0) return 0;
    const int64_t size = (int64_t)curve->lifetimes->size_bytes[row - 1];
    if (curve->lifetimes->birth[row - 1] != event) return -size;
    const uint32_t replaced = curve->rows->replaced_count == 0 ? 0 : vr_event_replaced(curve->rows, event);
    return replaced == 0 ? size : size - (int64_t)curve->lifetimes->size_bytes[replaced - 1];
}

static int64_t reserved_start(const struct vr_view *view) {
    uint64_t total = 0;
    for (size_t i = 0; i < view->segment_count; i++) total += view->model->segments.total_bytes[view->segments[i]];
    for (size_t i = 0; i < view->history->count; i++) total -= vr_reserved_delta(view->history, i);
    return (int64_t)total;
}

static void widen_extreme(struct extreme *extreme, int64_t low, int64_t high) {
    if (low < extreme->low) extreme->low = low;
    if (high > extreme->high) extreme->high = high;
}

static void fill_lowest(struct vr_curve *curve) {
    const size_t events = curve->view->history->count;
    int64_t total = curve->start;
    for (size_t i = 0; i < events; i++) {
        struct extreme *bucket = &curve->level[0][i / BUCKET];
        if (i % BUCKET == 0) curve->before[i / BUCKET] = total;
        total = (int64_t)((uint64_t)total + (uint64_t)event_delta(curve, i));
        if (i % BUCKET == 0) *bucket = (struct extreme){total, total};
        widen_extreme(bucket, total, total);
    }
}

static enum vram_status add_level(struct vr_curve *curve) {
    const size_t below = curve->length[curve->levels - 1], length = (below + FAN - 1) / FAN;
    struct extreme *level = malloc(length * sizeof *level);
    if (level == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < below; i++) {
        const struct extreme *item = &curve->level[curve->levels - 1][i];
        if (i % FAN == 0) level[i / FAN] = *item;
        widen_extreme(&level[i / FAN], item->low, item->high);
    }
    curve->level[curve->levels] = level;
    curve->length[curve->levels++] = length;
    return VRAM_OK;
}

enum vram_status vr_curve_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                 struct vr_curve **curve) {
    struct vr_curve *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->view = view;
    made->lifetimes = lifetimes;
    made->rows = rows;
    made->start = lifetimes == NULL ? reserved_start(view) : (int64_t)lifetimes->start.bytes;
    made->length[0] = (view->history->count + BUCKET - 1) / BUCKET;
    made->level[0] = calloc(made->length[0] + 1, sizeof *made->level[0]);
    made->before = calloc(made->length[0] + 1, sizeof *made->before);
    made->levels = 1;
    enum vram_status status = made->level[0] == NULL || made->before == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) fill_lowest(made);
    while (status == VRAM_OK && made->length[made->levels - 1] > 1) status = add_level(made);
    if (status != VRAM_OK) {
        vr_curve_destroy(made);
        return status;
    }
    *curve = made;
    return VRAM_OK;
}

void vr_curve_destroy(struct vr_curve *curve) {
    if (curve == NULL) return;
    for (size_t i = 0; i < curve->levels; i++) free(curve->level[i]);
    free(curve->before);
    free(curve);
}

int64_t vr_curve_at(const struct vr_curve *curve, int64_t event) {
    const size_t events = curve->view->history->count;
    if (event < 0 || events == 0) return curve->start;
    const size_t last = (uint64_t)event < events ? (size_t)event : events - 1;
    // The next bucket's stored total saves adding up 64 events.
    if (last % BUCKET == BUCKET - 1 && last + 1 < events) return curve->before[last / BUCKET + 1];
    int64_t total = curve->before[last / BUCKET];
    for (size_t i = last / BUCKET * BUCKET; i <= last; i++) total = (int64_t)((uint64_t)total + (uint64_t)event_delta(curve, i));
    return total;
}

// Widens *extreme by the events [first, end) of one bucket.
static void widen_by_events(const struct vr_curve *curve, size_t first, size_t end, struct extreme *extreme) {
    if (first >= end) return;
    int64_t total = vr_curve_at(curve, (int64_t)first);
    widen_extreme(extreme, total, total);
    for (size_t i = first + 1; i < end; i++) {
        total = (int64_t)((uint64_t)total + (uint64_t)event_delta(curve, i));
        widen_extreme(extreme, total, total);
    }
}

// Widens *extreme by the buckets [first, end) of level 0, using as high a level as possible.
static void widen_by_buckets(const struct vr_curve *curve, size_t first, size_t end, struct extreme *extreme) {
    for (size_t level = 0; first < end; level++) {
        const bool top = level + 1 == curve->levels;
        while (first < end && (top || first % FAN != 0)) {
            widen_extreme(extreme, curve->level[level][first].low, curve->level[level][first].high);
            first++;
        }
        while (first < end && end % FAN != 0) {
            end--;
            widen_extreme(extreme, curve->level[level][end].low, curve->level[level][end].high);
        }
        first /= FAN;
        end /= FAN;
    }
}

void vr_curve_range(const struct vr_curve *curve, size_t first, size_t end, int64_t *low, int64_t *high) {
    assert(first < end && end <= curve->view->history->count);
    struct extreme extreme = {INT64_MAX, INT64_MIN};
    const size_t first_bucket = (first + BUCKET - 1) / BUCKET, end_bucket = end / BUCKET;
    if (first_bucket > end_bucket) {
        widen_by_events(curve, first, end, &extreme);
    } else {
        widen_by_events(curve, first, first_bucket * BUCKET, &extreme);
        widen_by_buckets(curve, first_bucket, end_bucket, &extreme);
        widen_by_events(curve, end_bucket * BUCKET, end, &extreme);
    }
    *low = extreme.low;
    *high = extreme.high;
}

void vr_curve_extremes(const struct vr_curve *curve, size_t first, size_t end, int64_t *low, int64_t *high) {
    struct extreme extreme = {INT64_MAX, INT64_MIN};
    const int64_t before = vr_curve_at(curve, (int64_t)first - 1);
    if (first < end) vr_curve_range(curve, first, end, &extreme.low, &extreme.high);
    widen_extreme(&extreme, before, before);
    *low = extreme.low;
    *high = extreme.high;
}

// Checks that each entry of a level has the extremes of its entries in the level below.
static bool level_holds(const struct vr_curve *curve, size_t level) {
    if (curve->length[level] != (curve->length[level - 1] + FAN - 1) / FAN) return false;
    for (size_t i = 0; i < curve->length[level]; i++) {
        struct extreme below = curve->level[level - 1][i * FAN];
        for (size_t k = i * FAN; k < (i + 1) * FAN && k < curve->length[level - 1]; k++)
            widen_extreme(&below, curve->level[level - 1][k].low, curve->level[level - 1][k].high);
        if (below.low != curve->level[level][i].low || below.high != curve->level[level][i].high) return false;
    }
    return true;
}

bool vr_curve_check(const struct vr_curve *curve) {
    const size_t events = curve->view->history->count;
    int64_t total = curve->start;
    struct extreme found = {total, total};
    for (size_t i = 0; i < events; i++) {
        if (i % BUCKET == 0 && curve->before[i / BUCKET] != total) return false;
        total = (int64_t)((uint64_t)total + (uint64_t)event_delta(curve, i));
        if (i % BUCKET == 0) found = (struct extreme){total, total};
        widen_extreme(&found, total, total);
        const bool last = i + 1 == events || (i + 1) % BUCKET == 0;
        if (last && (found.low != curve->level[0][i / BUCKET].low || found.high != curve->level[0][i / BUCKET].high)) return false;
    }
    for (size_t level = 1; level < curve->levels; level++) {
        if (!level_holds(curve, level)) return false;
    }
    return true;
}
