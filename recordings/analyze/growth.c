#include "analyze/growth.h"

// What the first pass keeps of a group: sums from which the slope follows.
struct trend {
    uint64_t key;
    uint32_t row;
    double bytes;   // slope of what is live
    double objects; // of the count
    double kept;    // bytes that outlived a step and are live at the last point, per step
    double kept_objects;
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

// What is live at two points in a row outlives a whole step, wherever in a step the points lie.
enum { LEAST_POINTS_OUTLIVED = 2 };

static bool outlives_steps(size_t from, size_t to) { return from != 0 && to - from >= LEAST_POINTS_OUTLIVED; }

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
    if (to != search->points || !outlives_steps(from, to)) return VRAM_OK;
    trend->kept += (double)search->grouping->lifetimes->size_bytes[row] / ((double)search->points * search->made.steps_per_point);
    trend->kept_objects += 1;
    return VRAM_OK;
}

static double steepness(const struct trend *trend) { return trend->kept > trend->bytes ? trend->kept : trend->bytes; }

static int steepest_first(const void *a, const void *b) {
    const struct trend *x = a, *y = b;
    if (steepness(x) != steepness(y)) return VR_ORDER(steepness(y), steepness(x));
    return VR_ORDER(x->key, y->key);
}

// The groups that are left, for the second pass.
static enum vram_status choose_growers(struct vr_growth_search *search) {
    struct vr_growth *growth = &search->made;
    if (search->count != 0) qsort(search->trend, search->count, sizeof *search->trend, steepest_first);
    size_t count = 0;
    while (count < search->most && count < search->count && steepness(&search->trend[count]) > 0) count++;
    growth->grower = calloc(count + 1, sizeof *growth->grower);
    growth->total = calloc(search->points + 1, sizeof *growth->total);
    if (growth->grower == NULL || growth->total == NULL) return VRAM_NO_HOST_MEMORY;
    vr_map_clear(&search->map);
    for (size_t i = 0; i < count; i++) {
        const struct trend *trend = &search->trend[i];
        growth->grower[i] =
            (struct vr_grower){.key = trend->key, .row = trend->row, .bytes_per_step = trend->bytes, .objects_per_step = trend->objects};
        growth->grower[i].bytes = calloc(search->points + 1, sizeof(uint64_t));
        growth->grower[i].kept = calloc(search->points + 1, sizeof(uint64_t));
        growth->count = i + 1;
        if (growth->grower[i].bytes == NULL || growth->grower[i].kept == NULL) return VRAM_NO_HOST_MEMORY;
        VR_TRY(vr_map_set(&search->map, trend->key, (uint32_t)i + 1));
    }
    return VRAM_OK;
}

static void add_outlived(struct vr_grower *grower, const struct vr_growth_search *search, size_t row, size_t from, size_t to) {
    const struct vr_lifetimes *lifetimes = search->grouping->lifetimes;
    const uint64_t size = lifetimes->size_bytes[row];
    if (!outlives_steps(from, to)) return;
    if (to < search->points) {
        grower->freed_bytes += size;
        return;
    }
    grower->kept[from] += size;
    grower->kept_bytes += size;
    if (lifetimes->death[row] != VR_NEVER) grower->ended_bytes += size;
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
    const uint32_t number = (uint32_t)vr_map_get(&search->map, key);
    struct vr_grower *grower = number == 0 ? NULL : &growth->grower[number - 1];
    uint64_t *bytes[2] = {growth->total, grower == NULL ? NULL : grower->bytes};
    for (size_t i = 0; i < 2; i++) {
        if (bytes[i] == NULL) continue;
        bytes[i][from] += size;
        if (to < search->points) bytes[i][to] -= size;
    }
    if (grower != NULL) add_outlived(grower, search, row, from, to);
    return VRAM_OK;
}

static void sum_points(struct vr_growth_search *search) {
    struct vr_growth *growth = &search->made;
    for (size_t p = 1; p < search->points; p++) {
        growth->total[p] += growth->total[p - 1];
        for (size_t i = 0; i < growth->count; i++) {
            growth->grower[i].bytes[p] += growth->grower[i].bytes[p - 1];
            growth->grower[i].kept[p] += growth->grower[i].kept[p - 1];
        }
    }
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
        const struct trend *trend = &search->trend[i];
        vr_grower_judge(&growth->grower[i], search->points, growth->steps_per_point, trend->bytes, trend->kept_objects);
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

static enum vram_status consider_growth(struct vr_growth_search *search, size_t row) {
    if (search->stage == POINTS) return add_to_points(search, row);
    return search->points < 2 ? VRAM_OK : add_to_trend(search, row);
}

enum vram_status vr_growth_search_go_on(struct vr_growth_search *search, size_t rows, double *share) {
    const size_t count = search->grouping->lifetimes->count;
    while (search->stage != FINISHED && rows != 0) {
        const bool walks = search->stage != CHOOSE && search->stage != JUDGE;
        const size_t end = !walks ? search->row : count - search->row < rows ? count : search->row + rows;
        rows -= end - search->row;
        for (; search->row < end; search->row++) VR_TRY(consider_growth(search, search->row));
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
    for (size_t i = 0; i < growth->count && growth->grower != NULL; i++) {
        free(growth->grower[i].bytes);
        free(growth->grower[i].kept);
    }
    free(growth->grower);
    free(growth->point);
    free(growth->total);
    *growth = (struct vr_growth){.grower = NULL};
}
