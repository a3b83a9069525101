// Finds, by group, what grows from step to step, and what is made and freed within every step.
#include "analyze/growth.h"

// ---- Whether a group leaks, only grows, or neither.

const char *vr_verdict_word(enum vr_verdict verdict) {
    static const char *const words[] = {
#define VR_VERDICT(constant, word) #word,
        VR_VERDICTS(VR_VERDICT)
#undef VR_VERDICT
    };
    return words[verdict];
}

// Requirements on the points of a group that leaks or grows.
enum { LEAST_GROWN = 3, LEAST_SINCE_ONSET = 5 };
#define LEAST_FIT      0.8 // share of the variance that a straight line explains
#define LEAST_SURVIVAL 0.9 // of the bytes that outlived their step, the share still live at the end; for leaks that begin late

// Returns the share of the points' variance that a straight line explains.
static double fit_slope(const uint64_t *bytes, size_t count) {
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

struct growth_course {
    size_t points, grew, kept; // numbers of points at which it grew, and did not shrink
    size_t longest;            // longest run of steps without growth, up to and including the step that grew again
    bool late;                 // it still grows in the last third
};

static struct growth_course course_of(const uint64_t *bytes, size_t points) {
    struct growth_course course = {.points = points};
    size_t since = 0;
    for (size_t p = 1; p < points; p++) {
        since++;
        if (since > course.longest) course.longest = since;
        if (bytes[p] > bytes[p - 1]) since = 0;
        course.grew += bytes[p] > bytes[p - 1];
        course.kept += bytes[p] >= bytes[p - 1];
    }
    course.late = points >= 3 && bytes[points - 1] > bytes[points - 1 - (points + 2) / 3];
    return course;
}

// Returns whether growth is frequent or regular. A group that keeps something in every nth step grows at regular intervals, never longer
// than twice their mean. A buffer that doubles grows more and more rarely, and a full cache not at all.
static bool grows_on(const struct growth_course *course) {
    const bool often = course->grew * 4 >= course->points - 1, evenly = course->longest * course->grew <= 2 * (course->points - 1);
    return course->points >= 4 && course->grew >= LEAST_GROWN && course->late && (often || evenly);
}

static size_t onset_of(const uint64_t *kept, size_t points) {
    size_t onset = 0;
    while (onset + 1 < points && kept[onset + 1] == 0) onset++;
    return onset;
}

// Returns whether a group leaks. Ignores the last point, because its increase has not outlived a step yet.
static bool piles_up(const struct vr_grower *grower, size_t points, size_t *onset, struct growth_course *course) {
    if (points + 1 < VR_LEAST_STEPS) return false;
    const size_t known = points - 1;
    *onset = onset_of(grower->kept, known);
    *course = course_of(grower->kept + *onset, known - *onset);
    const struct growth_course whole = course_of(grower->kept, known);
    if (grows_on(&whole) && fit_slope(grower->kept, known) >= LEAST_FIT) return true;
    const double outlived = (double)grower->kept_bytes + (double)grower->freed_bytes;
    const bool stays = (double)grower->kept_bytes >= LEAST_SURVIVAL * outlived;
    return stays && course->points > LEAST_SINCE_ONSET && grows_on(course);
}

static bool grows_steadily(const struct vr_grower *grower, size_t points) {
    if (points + 1 < VR_LEAST_STEPS) return false;
    const struct growth_course course = course_of(grower->bytes, points);
    return grows_on(&course) && fit_slope(grower->bytes, points) * (double)course.kept >= LEAST_FIT * (double)(points - 1);
}

// Sets the verdict, the slope and the steps of a grower whose points are summed up. kept_objects: number of objects in kept_bytes.
static void grower_judge(struct vr_grower *grower, size_t points, double steps_per_point, double live_slope, double kept_objects) {
    size_t onset = 0;
    struct growth_course course = {.points = 0};
    grower->first_bytes = points == 0 ? 0 : grower->bytes[0];
    grower->last_bytes = points == 0 ? 0 : grower->bytes[points - 1];
    if (piles_up(grower, points, &onset, &course)) {
        const double steps = (double)(course.points - 1) * steps_per_point;
        grower->verdict = VR_VERDICT_LEAK;
        grower->bytes_per_step = (double)grower->kept_bytes / steps;
        grower->objects_per_step = kept_objects / steps;
    } else {
        course = course_of(grower->bytes, points);
        grower->bytes_per_step = live_slope;
        grower->verdict = live_slope > 0 && grows_steadily(grower, points) ? VR_VERDICT_GROWTH : VR_VERDICT_STEADY;
    }
    grower->grew_points = course.grew;
    grower->course_points = course.points == 0 ? 0 : course.points - 1;
}

// Sums over a group in the first pass, from which its slope follows.
struct trend {
    uint64_t key;
    uint32_t row;
    double bytes;   // slope of the live bytes
    double objects; // slope of the number of objects
    double kept;    // bytes per step that outlived a step and are live at the last point
    double kept_objects;
};

// The stages in order. The middle two walk over the rows.
enum growth_stage { CHOOSE, TRENDS, POINTS, JUDGE, FINISHED };

struct vr_growth_search {
    struct vr_grouping *grouping;
    const struct vr_steps *steps;
    size_t most;
    enum growth_stage stage;
    size_t row; // next row to process
    size_t *point;
    size_t points;
    double *
        moment; // moment[i]: sum of (j - mean) / variance over points j < i, so that a lifetime's contribution to the slope is a difference
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

// Sets the points [*from, *to) at which a row is live: born before the point's event, not freed before it.
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

// An allocation live at two consecutive points outlives a whole step, wherever in a step the points are.
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
    // A row that is live at every point, or at none, does not change the slope.
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

// Chooses the groups for the second pass.
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

// Second pass: adds to the bytes at every point, as wrapping differences to be summed up at the end.
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
        grower_judge(&growth->grower[i], search->points, growth->steps_per_point, trend->bytes, trend->kept_objects);
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

// Does the work between the walks over the rows.
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

struct vr_churn_search {
    struct vr_grouping *grouping;
    const struct vr_steps *steps;
    size_t row; // next row to process
    bool finished;
    struct vr_group_sums sums;
    struct vr_churn made;
};

enum vram_status vr_churn_search_create(struct vr_grouping *grouping, const struct vr_steps *steps, struct vr_churn_search **search) {
    struct vr_churn_search *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *made = (struct vr_churn_search){.grouping = grouping, .steps = steps, .made = {.steps = steps->count == 0 ? 1 : steps->count}};
    *search = made;
    return VRAM_OK;
}

void vr_churn_search_destroy(struct vr_churn_search *search) {
    if (search == NULL) return;
    vr_group_sums_release(&search->sums);
    free(search->made.group);
    free(search);
}

// Returns the number of steps that begin at or before an event.
static size_t steps_until(const struct vr_steps *steps, uint32_t event) {
    size_t count;
    VR_LOWER_BOUND(count, i, 0, steps->count, steps->first[i] <= event);
    return count;
}

static bool is_temporary(const struct vr_churn_search *search, size_t row) {
    const struct vr_lifetimes *lifetimes = search->grouping->lifetimes;
    const uint32_t birth = lifetimes->birth[row], death = lifetimes->death[row];
    if (birth == VR_BEFORE_TRACE || death == VR_NEVER) return false;
    if (search->steps->count == 0) return death - birth <= search->grouping->view->history->count / 100 + 1;
    return steps_until(search->steps, birth) == steps_until(search->steps, death);
}

enum vram_status vr_churn_search_go_on(struct vr_churn_search *search, size_t rows, double *share) {
    const struct vr_lifetimes *lifetimes = search->grouping->lifetimes;
    struct vr_churn *made = &search->made;
    const size_t end = lifetimes->count - search->row < rows ? lifetimes->count : search->row + rows;
    for (; search->row < end; search->row++) {
        if (!is_temporary(search, search->row)) continue;
        VR_TRY(vr_group_sums_add(&search->sums, search->grouping, search->row));
        made->bytes += lifetimes->size_bytes[search->row];
        made->allocations++;
    }
    if (end == lifetimes->count && !search->finished) {
        vr_group_sums_take(&search->sums, &made->group, &made->count);
        search->finished = true;
    }
    *share = search->finished ? 1 : (double)search->row / ((double)lifetimes->count + 1);
    return VRAM_OK;
}

const struct vr_churn *vr_churn_search_found(const struct vr_churn_search *search) { return &search->made; }
