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

// What is left to do, in this order. The middle two walk over the rows.
enum growth_stage { CHOOSE, TRENDS, POINTS, JUDGE, FINISHED };

struct vr_growth_search {
    struct vr_grouping *grouping;
    const struct vr_steps *steps;
    size_t most;
    enum growth_stage stage;
    size_t row; // the next one to look at
    size_t *point;
    size_t points;
    double *moment; // moment[i]: sum of (j - mean) / variance over points j < i, so that a life's part of the slope is a difference
    struct vr_map map;
    struct trend *trend;
    size_t count, capacity;
    struct vr_growth made;
};

static size_t first_at_or_after(const size_t *point, size_t count, size_t event) {
    size_t first;
    VR_LOWER_BOUND(first, i, 0, count, point[i] < event);
    return first;
}

// The points [*from, *to) at which a row is live: born before the point's event, not freed before it.
static void points_of(const struct vr_growth_search *search, size_t row, size_t *from, size_t *to) {
    const struct vr_lifetimes *lifetimes = search->grouping->lifetimes;
    const uint32_t birth = lifetimes->birth[row], death = lifetimes->death[row];
    *from = birth == VR_BEFORE_TRACE ? 0 : first_at_or_after(search->point, search->points, (size_t)birth + 1);
    *to = death == VR_NEVER ? search->points : first_at_or_after(search->point, search->points, (size_t)death + 1);
}

static enum vram_status choose_points(struct vr_growth_search *search) {
    const struct vr_steps *steps = search->steps;
    double *steps_per_point = &search->made.steps_per_point;
    const size_t usable = steps->count <= 1 ? 0 : steps->count - 1;
    search->points = usable < VR_GROWTH_POINTS ? usable : VR_GROWTH_POINTS;
    search->point = malloc((search->points + 1) * sizeof *search->point);
    search->moment = calloc(search->points + 1, sizeof *search->moment);
    if (search->point == NULL || search->moment == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < search->points; i++)
        search->point[i] = steps->first[1 + (search->points < 2 ? 0 : i * (usable - 1) / (search->points - 1))];
    *steps_per_point = search->points < 2 ? 1 : (double)(usable - 1) / (double)(search->points - 1);
    const double n = (double)search->points, mean = (n - 1) / 2, variance = n * (n * n - 1) / 12;
    for (size_t i = 0; i < search->points && variance > 0; i++)
        search->moment[i + 1] = search->moment[i] + ((double)i - mean) / variance / *steps_per_point;
    return VRAM_OK;
}

static enum vram_status trend_of(struct vr_growth_search *search, size_t row, struct trend **trend) {
    uint64_t key = 0;
    VR_TRY(vr_grouping_key(search->grouping, row, &key));
    uint32_t number = vr_map_get(&search->map, key);
    if (number == 0) {
        VR_TRY(vr_grow((void **)&search->trend, &search->capacity, search->count + 1, sizeof *search->trend));
        search->trend[search->count++] = (struct trend){.key = key, .row = (uint32_t)row};
        number = (uint32_t)search->count;
        VR_TRY(vr_map_set(&search->map, key, number));
    }
    *trend = &search->trend[number - 1];
    return VRAM_OK;
}

// First pass.
static enum vram_status add_to_trend(struct vr_growth_search *search, size_t row) {
    size_t from, to;
    points_of(search, row, &from, &to);
    // What is live at every point, or at none, changes no slope.
    if (from >= to || (from == 0 && to == search->points)) return VRAM_OK;
    struct trend *trend = NULL;
    VR_TRY(trend_of(search, row, &trend));
    const double part = search->moment[to] - search->moment[from];
    trend->bytes += part * (double)search->grouping->lifetimes->size_bytes[row];
    trend->objects += part;
    if (to == search->points) trend->row = (uint32_t)row;
    return VRAM_OK;
}

static int steepest_first(const void *a, const void *b) {
    const struct trend *x = a, *y = b;
    if (x->bytes != y->bytes) return VR_ORDER(y->bytes, x->bytes);
    return VR_ORDER(x->key, y->key);
}

// The groups that are left, for the second pass.
static enum vram_status choose_growers(struct vr_growth_search *search) {
    struct vr_growth *growth = &search->made;
    if (search->count != 0) qsort(search->trend, search->count, sizeof *search->trend, steepest_first);
    size_t count = 0;
    while (count < search->most && count < search->count && search->trend[count].bytes > 0) count++;
    growth->grower = calloc(count + 1, sizeof *growth->grower);
    growth->total = calloc(search->points + 1, sizeof *growth->total);
    if (growth->grower == NULL || growth->total == NULL) return VRAM_NO_HOST_MEMORY;
    vr_map_clear(&search->map);
    for (size_t i = 0; i < count; i++) {
        const struct trend *trend = &search->trend[i];
        growth->grower[i] =
            (struct vr_grower){.key = trend->key, .row = trend->row, .bytes_per_step = trend->bytes, .objects_per_step = trend->objects};
        growth->grower[i].bytes = calloc(search->points + 1, sizeof(uint64_t));
        growth->count = i + 1;
        if (growth->grower[i].bytes == NULL) return VRAM_NO_HOST_MEMORY;
        VR_TRY(vr_map_set(&search->map, trend->key, (uint32_t)i + 1));
    }
    return VRAM_OK;
}

// Second pass: bytes at every point, as wrapping differences that are summed up at the end.
static enum vram_status add_to_points(struct vr_growth_search *search, size_t row) {
    const struct vr_growth *growth = &search->made;
    const uint64_t size = search->grouping->lifetimes->size_bytes[row];
    size_t from, to;
    points_of(search, row, &from, &to);
    if (from >= to) return VRAM_OK;
    uint64_t key = 0;
    VR_TRY(vr_grouping_key(search->grouping, row, &key));
    const uint32_t number = vr_map_get(&search->map, key);
    uint64_t *bytes[2] = {growth->total, number == 0 ? NULL : growth->grower[number - 1].bytes};
    for (size_t i = 0; i < 2; i++) {
        if (bytes[i] == NULL) continue;
        bytes[i][from] += size;
        if (to < search->points) bytes[i][to] -= size;
    }
    return VRAM_OK;
}

static void sum_points(struct vr_growth_search *search) {
    struct vr_growth *growth = &search->made;
    for (size_t p = 1; p < search->points; p++) {
        growth->total[p] += growth->total[p - 1];
        for (size_t i = 0; i < growth->count; i++) growth->grower[i].bytes[p] += growth->grower[i].bytes[p - 1];
    }
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

// What is kept in every so many steps only grows at even distances: never longer apart than twice the mean of them. A buffer that doubles
// grows ever more rarely, a cache that fills up not any more.
static bool grows_evenly(const struct vr_grower *grower, size_t points, size_t grew) {
    size_t longest = 0, since = 0;
    for (size_t p = 1; p < points; p++) {
        since++;
        if (since > longest) longest = since;
        if (grower->bytes[p] > grower->bytes[p - 1]) since = 0;
    }
    return longest * grew <= 2 * (points - 1);
}

// A leak grows in many steps or evenly, nearly never shrinks, and still grows in the last third.
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
    const bool often = grew * 4 >= points - 1 || grows_evenly(grower, points, grew);
    const bool leaks = points >= 4 && grew >= 3 && often && late && grower->confidence >= VR_LEAK_CONFIDENCE;
    grower->verdict = leaks ? VR_VERDICT_LEAK : grower->last_bytes > grower->first_bytes ? VR_VERDICT_GROWTH : VR_VERDICT_STEADY;
}

static int worst_first(const void *a, const void *b) {
    const struct vr_grower *x = a, *y = b;
    if (x->verdict != y->verdict) return VR_ORDER(y->verdict, x->verdict);
    if (x->bytes_per_step != y->bytes_per_step) return VR_ORDER(y->bytes_per_step, x->bytes_per_step);
    return VR_ORDER(x->key, y->key);
}

static void judge_all(struct vr_growth_search *search) {
    struct vr_growth *growth = &search->made;
    sum_points(search);
    for (size_t i = 0; i < growth->count; i++) {
        judge(&growth->grower[i], search->points);
        if (search->steps->unsure && growth->grower[i].verdict == VR_VERDICT_LEAK) growth->grower[i].verdict = VR_VERDICT_GROWTH;
    }
    if (growth->count != 0) qsort(growth->grower, growth->count, sizeof *growth->grower, worst_first);
    growth->point = search->point;
    growth->point_count = search->points;
    search->point = NULL;
}

enum vram_status vr_growth_search_create(struct vr_grouping *grouping, const struct vr_steps *steps, size_t most,
                                         struct vr_growth_search **search) {
    struct vr_growth_search *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *made = (struct vr_growth_search){.grouping = grouping, .steps = steps, .most = most, .made = {.steps_per_point = 1}};
    *search = made;
    return VRAM_OK;
}

void vr_growth_search_destroy(struct vr_growth_search *search) {
    if (search == NULL) return;
    free(search->point);
    free(search->moment);
    free(search->trend);
    vr_map_release(&search->map);
    vr_growth_release(&search->made);
    free(search);
}

// What stands between the walks over the rows.
static enum vram_status begin_stage(struct vr_growth_search *search, enum growth_stage stage) {
    search->row = 0;
    search->stage = stage;
    switch (stage) {
    case TRENDS: return choose_points(search);
    case POINTS: return choose_growers(search);
    case JUDGE: judge_all(search); return VRAM_OK;
    default: return VRAM_OK;
    }
}

static enum vram_status look_at(struct vr_growth_search *search, size_t row) {
    if (search->stage == POINTS) return add_to_points(search, row);
    return search->points < 2 ? VRAM_OK : add_to_trend(search, row);
}

enum vram_status vr_growth_search_go_on(struct vr_growth_search *search, size_t rows, double *share) {
    const size_t count = search->grouping->lifetimes->count;
    while (search->stage != FINISHED && rows != 0) {
        const bool walks = search->stage != CHOOSE && search->stage != JUDGE;
        const size_t end = !walks ? search->row : count - search->row < rows ? count : search->row + rows;
        rows -= end - search->row;
        for (; search->row < end; search->row++) VR_TRY(look_at(search, search->row));
        if (!walks || end == count) VR_TRY(begin_stage(search, (enum growth_stage)(search->stage + 1)));
    }
    *share = search->stage == FINISHED ? 1 : ((double)search->stage + (double)search->row / ((double)count + 1)) / FINISHED;
    return VRAM_OK;
}

const struct vr_growth *vr_growth_search_found(const struct vr_growth_search *search) { return &search->made; }

enum vram_status vr_growth_find(struct vr_grouping *grouping, const struct vr_steps *steps, size_t most, struct vr_growth *growth) {
    struct vr_growth_search *search = NULL;
    double share = 0;
    VR_TRY(vr_growth_search_create(grouping, steps, most, &search));
    const enum vram_status status = vr_growth_search_go_on(search, SIZE_MAX, &share);
    if (status == VRAM_OK) {
        *growth = search->made;
        search->made = (struct vr_growth){.grower = NULL};
    }
    vr_growth_search_destroy(search);
    return status;
}

void vr_growth_release(struct vr_growth *growth) {
    for (size_t i = 0; i < growth->count && growth->grower != NULL; i++) free(growth->grower[i].bytes);
    free(growth->grower);
    free(growth->point);
    free(growth->total);
    *growth = (struct vr_growth){.grower = NULL};
}
