#include "analyze/growth.h"

const char *vr_verdict_word(enum vr_verdict verdict) {
    static const char *const words[] = {
#define VR_VERDICT(constant, word) #word,
        VR_VERDICTS(VR_VERDICT)
#undef VR_VERDICT
    };
    return words[verdict];
}

// What the first pass keeps of a group: sums from which the slope follows.
struct trend {
    uint64_t key;
    uint32_t row;
    double bytes;   // slope of bytes
    double objects; // of the count
};

struct finding {
    struct vr_grouping *grouping;
    size_t *point;
    size_t points;
    double *moment; // moment[i]: sum of (j - mean) / variance over points j < i, so that a life's part of the slope is a difference
    struct vr_map map;
    struct trend *trend;
    size_t count, capacity;
};

static size_t first_at_or_after(const size_t *point, size_t count, size_t event) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (point[middle] < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The points [*from, *to) at which a row is live: born before the point's event, not freed before it.
static void points_of(const struct finding *finding, size_t row, size_t *from, size_t *to) {
    const struct vr_lifetimes *lifetimes = finding->grouping->lifetimes;
    const uint32_t birth = lifetimes->birth[row], death = lifetimes->death[row];
    *from = birth == VR_BEFORE_TRACE ? 0 : first_at_or_after(finding->point, finding->points, (size_t)birth + 1);
    *to = death == VR_NEVER ? finding->points : first_at_or_after(finding->point, finding->points, (size_t)death + 1);
}

static enum vram_status choose_points(struct finding *finding, const struct vr_steps *steps, double *steps_per_point) {
    const size_t usable = steps->count <= 1 ? 0 : steps->count - 1;
    finding->points = usable < VR_GROWTH_POINTS ? usable : VR_GROWTH_POINTS;
    finding->point = malloc((finding->points + 1) * sizeof *finding->point);
    finding->moment = calloc(finding->points + 1, sizeof *finding->moment);
    if (finding->point == NULL || finding->moment == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < finding->points; i++)
        finding->point[i] = steps->first[1 + (finding->points < 2 ? 0 : i * (usable - 1) / (finding->points - 1))];
    *steps_per_point = finding->points < 2 ? 1 : (double)(usable - 1) / (double)(finding->points - 1);
    const double n = (double)finding->points, mean = (n - 1) / 2, variance = n * (n * n - 1) / 12;
    for (size_t i = 0; i < finding->points && variance > 0; i++)
        finding->moment[i + 1] = finding->moment[i] + ((double)i - mean) / variance / *steps_per_point;
    return VRAM_OK;
}

static enum vram_status trend_of(struct finding *finding, size_t row, struct trend **trend) {
    uint64_t key = 0;
    VR_TRY(vr_grouping_key(finding->grouping, row, &key));
    uint32_t number = vr_map_get(&finding->map, key);
    if (number == 0) {
        VR_TRY(vr_grow((void **)&finding->trend, &finding->capacity, finding->count + 1, sizeof *finding->trend));
        finding->trend[finding->count++] = (struct trend){.key = key, .row = (uint32_t)row};
        number = (uint32_t)finding->count;
        VR_TRY(vr_map_set(&finding->map, key, number));
    }
    *trend = &finding->trend[number - 1];
    return VRAM_OK;
}

static enum vram_status find_trends(struct finding *finding) {
    const struct vr_lifetimes *lifetimes = finding->grouping->lifetimes;
    for (size_t row = 0; row < lifetimes->count; row++) {
        size_t from, to;
        points_of(finding, row, &from, &to);
        // What is live at every point, or at none, changes no slope.
        if (from >= to || (from == 0 && to == finding->points)) continue;
        struct trend *trend = NULL;
        VR_TRY(trend_of(finding, row, &trend));
        const double part = finding->moment[to] - finding->moment[from];
        trend->bytes += part * (double)lifetimes->size_bytes[row];
        trend->objects += part;
        if (to == finding->points) trend->row = (uint32_t)row;
    }
    return VRAM_OK;
}

static int steepest_first(const void *a, const void *b) {
    const struct trend *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return (x->key > y->key) - (x->key < y->key);
}

// Second pass: bytes at every point, of the groups that are left.
static enum vram_status fill_points(struct finding *finding, struct vr_growth *growth) {
    const struct vr_lifetimes *lifetimes = finding->grouping->lifetimes;
    vr_map_clear(&finding->map);
    for (size_t i = 0; i < growth->count; i++) VR_TRY(vr_map_set(&finding->map, growth->grower[i].key, (uint32_t)i + 1));
    // Wrapping differences, summed up at the end.
    for (size_t row = 0; row < lifetimes->count; row++) {
        size_t from, to;
        points_of(finding, row, &from, &to);
        if (from >= to) continue;
        uint64_t key = 0;
        VR_TRY(vr_grouping_key(finding->grouping, row, &key));
        const uint32_t number = vr_map_get(&finding->map, key);
        uint64_t *bytes[2] = {growth->total, number == 0 ? NULL : growth->grower[number - 1].bytes};
        for (size_t i = 0; i < 2; i++) {
            if (bytes[i] == NULL) continue;
            bytes[i][from] += lifetimes->size_bytes[row];
            if (to < finding->points) bytes[i][to] -= lifetimes->size_bytes[row];
        }
    }
    for (size_t p = 1; p < finding->points; p++) {
        growth->total[p] += growth->total[p - 1];
        for (size_t i = 0; i < growth->count; i++) growth->grower[i].bytes[p] += growth->grower[i].bytes[p - 1];
    }
    return VRAM_OK;
}

// How much of the points' spread a straight line explains.
static double fit(const uint64_t *bytes, size_t count) {
    double mean = 0, spread = 0, together = 0;
    const double n = (double)count, middle = (n - 1) / 2, variance = n * (n * n - 1) / 12;
    for (size_t i = 0; i < count; i++) mean += (double)bytes[i] / n;
    for (size_t i = 0; i < count; i++) {
        const double away = (double)bytes[i] - mean;
        spread += away * away;
        together += away * ((double)i - middle);
    }
    return spread <= 0 || variance <= 0 ? 0 : together * together / (variance * spread);
}

// A leak grows in many steps, nearly never shrinks, and still grows in the last third.
static void judge(struct vr_grower *grower, size_t points) {
    size_t grew = 0, kept = 0;
    for (size_t p = 1; p < points; p++) {
        grew += grower->bytes[p] > grower->bytes[p - 1];
        kept += grower->bytes[p] >= grower->bytes[p - 1];
    }
    grower->first_bytes = points == 0 ? 0 : grower->bytes[0];
    grower->last_bytes = points == 0 ? 0 : grower->bytes[points - 1];
    grower->confidence = points < 2 ? 0 : fit(grower->bytes, points) * (double)kept / (double)(points - 1);
    const bool late = points >= 3 && grower->last_bytes > grower->bytes[points - 1 - (points + 2) / 3];
    const bool leaks = points >= 4 && grew >= 3 && grew * 4 >= points - 1 && late && grower->confidence >= 0.8;
    grower->verdict = leaks ? VR_VERDICT_LEAK : grower->last_bytes > grower->first_bytes ? VR_VERDICT_GROWTH : VR_VERDICT_STEADY;
}

// By how much the live bytes differ between events [first, end), and in how many of the points' steps they differ by at least half of that.
static size_t count_swings(const struct finding *finding, const int64_t *change, uint64_t *swing) {
    size_t wide = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        int64_t live = 0, low = INT64_MAX, high = INT64_MIN;
        for (size_t p = 0; p + 1 < finding->points; p++) {
            if (pass == 1) low = INT64_MAX, high = INT64_MIN;
            for (size_t event = finding->point[p]; event < finding->point[p + 1]; event++) {
                live += change[event];
                low = live < low ? live : low;
                high = live > high ? live : high;
            }
            if (pass == 1) wide += high >= low && (uint64_t)(high - low) * 2 >= *swing;
        }
        if (pass == 0) *swing = high >= low ? (uint64_t)(high - low) : 0;
    }
    return wide;
}

// Steps that were guessed from how allocations repeat may be the layers of a model, of one pass that keeps or gives back what every layer
// makes. In a loop of training memory rises and falls by nearly as much in every turn as over all of them, and the turns are most of the
// history; where that is not so, nothing is called a leak.
static enum vram_status are_steps(const struct finding *finding, const struct vr_steps *steps, bool *sure) {
    const struct vr_lifetimes *lifetimes = finding->grouping->lifetimes;
    const size_t events = finding->grouping->view->history->count;
    *sure = steps->source != VR_STEPS_REPEATED;
    if (*sure || finding->points < 2 || (finding->point[finding->points - 1] - finding->point[0]) * 2 < events) return VRAM_OK;
    int64_t *change = calloc(events + 1, sizeof *change);
    if (change == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < lifetimes->count; row++) {
        if (lifetimes->birth[row] != VR_BEFORE_TRACE) change[lifetimes->birth[row]] += (int64_t)lifetimes->size_bytes[row];
        if (lifetimes->death[row] != VR_NEVER) change[lifetimes->death[row]] -= (int64_t)lifetimes->size_bytes[row];
    }
    uint64_t swing = 0;
    *sure = count_swings(finding, change, &swing) * 2 >= finding->points - 1;
    free(change);
    return VRAM_OK;
}

static int worst_first(const void *a, const void *b) {
    const struct vr_grower *x = a, *y = b;
    if (x->verdict != y->verdict) return x->verdict < y->verdict ? 1 : -1;
    if (x->bytes_per_step != y->bytes_per_step) return x->bytes_per_step < y->bytes_per_step ? 1 : -1;
    return (x->key > y->key) - (x->key < y->key);
}

static enum vram_status describe(struct finding *finding, const struct vr_steps *steps, size_t most, struct vr_growth *growth) {
    if (finding->count != 0) qsort(finding->trend, finding->count, sizeof *finding->trend, steepest_first);
    while (growth->count < most && growth->count < finding->count && finding->trend[growth->count].bytes > 0) growth->count++;
    growth->grower = calloc(growth->count + 1, sizeof *growth->grower);
    growth->total = calloc(finding->points + 1, sizeof *growth->total);
    if (growth->grower == NULL || growth->total == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < growth->count; i++) {
        const struct trend *trend = &finding->trend[i];
        growth->grower[i] =
            (struct vr_grower){.key = trend->key, .row = trend->row, .bytes_per_step = trend->bytes, .objects_per_step = trend->objects};
        growth->grower[i].bytes = calloc(finding->points + 1, sizeof(uint64_t));
        if (growth->grower[i].bytes == NULL) return VRAM_NO_HOST_MEMORY;
    }
    VR_TRY(fill_points(finding, growth));
    bool sure = false;
    VR_TRY(are_steps(finding, steps, &sure));
    for (size_t i = 0; i < growth->count; i++) {
        judge(&growth->grower[i], finding->points);
        if (!sure && growth->grower[i].verdict == VR_VERDICT_LEAK) growth->grower[i].verdict = VR_VERDICT_GROWTH;
    }
    if (growth->count != 0) qsort(growth->grower, growth->count, sizeof *growth->grower, worst_first);
    return VRAM_OK;
}

enum vram_status vr_growth_find(struct vr_grouping *grouping, const struct vr_steps *steps, size_t most, struct vr_growth *growth) {
    struct finding finding = {.grouping = grouping};
    struct vr_growth made = {.steps_per_point = 1};
    enum vram_status status = choose_points(&finding, steps, &made.steps_per_point);
    if (status == VRAM_OK && finding.points >= 2) status = find_trends(&finding);
    if (status == VRAM_OK) status = describe(&finding, steps, most, &made);
    made.point = finding.point;
    made.point_count = finding.points;
    free(finding.moment);
    free(finding.trend);
    vr_map_release(&finding.map);
    if (status == VRAM_OK)
        *growth = made;
    else
        vr_growth_release(&made);
    return status;
}

void vr_growth_release(struct vr_growth *growth) {
    for (size_t i = 0; i < growth->count && growth->grower != NULL; i++) free(growth->grower[i].bytes);
    free(growth->grower);
    free(growth->point);
    free(growth->total);
    *growth = (struct vr_growth){.grower = NULL};
}

// The number of the step that an event belongs to.
static size_t step_of(const struct vr_steps *steps, uint32_t event) {
    return first_at_or_after(steps->first, steps->count, (size_t)event + 1);
}

static bool is_temporary(const struct vr_grouping *grouping, const struct vr_steps *steps, size_t row) {
    const struct vr_lifetimes *lifetimes = grouping->lifetimes;
    const uint32_t birth = lifetimes->birth[row], death = lifetimes->death[row];
    if (birth == VR_BEFORE_TRACE || death == VR_NEVER) return false;
    if (steps->count == 0) return death - birth <= grouping->view->history->count / 100 + 1;
    return step_of(steps, birth) == step_of(steps, death);
}

enum vram_status vr_churn_find(struct vr_grouping *grouping, const struct vr_steps *steps, struct vr_churn *churn) {
    struct vr_churn made = {.steps = steps->count == 0 ? 1 : steps->count};
    uint32_t *rows = malloc((grouping->lifetimes->count + 1) * sizeof *rows);
    size_t count = 0;
    if (rows == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < grouping->lifetimes->count; row++) {
        if (!is_temporary(grouping, steps, row)) continue;
        rows[count++] = (uint32_t)row;
        made.bytes += grouping->lifetimes->size_bytes[row];
    }
    made.allocations = count;
    const enum vram_status status = vr_grouping_sum(grouping, rows, count, &made.group, &made.count);
    free(rows);
    if (status == VRAM_OK) *churn = made;
    return status;
}

void vr_churn_release(struct vr_churn *churn) {
    free(churn->group);
    *churn = (struct vr_churn){.group = NULL};
}
