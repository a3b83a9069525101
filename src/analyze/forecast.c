#include "analyze/forecast.h"

#include <math.h>

#include "analyze/profile.h"
#include "vram/report.h"

// Sizes of allocations are whole numbers of elements, so a group whose bytes go by a straight line may be off it by a little: so much of
// each allocation, and this share.
#define ROUNDING_BYTES 512.0
#define SHARE          0.002
// By how much of what is allocated the held memory was off, at most, on eight real runs that were left out, rounded up
// (tests/cli/check_forecast.py).
#define HELD_SHARE 0.04

struct forecasting {
    const struct vram_forecast *asked;
    struct vr_forecast forecast;
    struct forecast_entry {
        const char *name;
        size_t side;
        uint64_t bytes, order; // of the birth; what is older than the history goes by its size, as nothing else tells it apart
    } * entry;                 // an allocation that is live at a peak
    size_t count;
};

struct forecast_names {
    const char **name;
    size_t count, name_capacity;
};

// The name of a row's group, made once per group: `known` has 1 + its place in *names.
static enum vram_status name_of(struct forecasting *making, struct vr_grouping *grouping, uint32_t row, struct vr_map *known,
                                struct forecast_names *names, const char **name) {
    uint64_t key;
    VR_TRY(vr_grouping_key(grouping, row, &key));
    const uint64_t place = vr_map_get(known, key);
    if (place != 0) {
        *name = names->name[place - 1];
        return VRAM_OK;
    }
    struct vr_text text = {0};
    VR_TRY(VR_GROW(names, name, names->count + 1));
    vr_grouping_name(grouping, key, &text);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = vr_arena_copy(&making->forecast.arena, vr_text_string(&text), text.length, name);
    vr_text_release(&text);
    VR_TRY(status);
    names->name[names->count++] = *name;
    return vr_map_set(known, key, names->count);
}

static enum vram_status add_rows(struct forecasting *making, const struct vr_profile *profile, struct vr_grouping *grouping, size_t side) {
    struct vr_map known = {0};
    struct forecast_names names = {.count = 0};
    enum vram_status status = VRAM_OK;
    struct forecast_entry *grown = realloc(making->entry, (making->count + profile->count + 1) * sizeof *grown);
    if (grown == NULL) return VRAM_NO_HOST_MEMORY;
    making->entry = grown;
    for (size_t i = 0; i < profile->count && status == VRAM_OK; i++) {
        const uint32_t row = profile->rows[i];
        const uint64_t bytes = profile->lifetimes.size_bytes[row];
        const bool is_older = profile->lifetimes.birth[row] == VR_BEFORE_TRACE;
        struct forecast_entry *entry = &making->entry[making->count++];
        *entry = (struct forecast_entry){.side = side, .bytes = bytes, .order = is_older ? bytes >> 1 : UINT64_C(1) << 63 | row};
        status = name_of(making, grouping, row, &known, &names, &entry->name);
    }
    if (status != VRAM_OK) making->count = 0;
    free(names.name);
    vr_map_release(&known);
    return status;
}

static enum vram_status add_groups(struct forecasting *making, struct vr_profile *profile, size_t side, struct vram_error *error) {
    struct vr_grouping grouping;
    VR_TRY(vr_profile_grouping(profile, &making->asked->options, &grouping, error));
    making->forecast.by = grouping.by;
    const enum vram_status status = add_rows(making, profile, &grouping, side);
    vr_grouping_release(&grouping);
    return status;
}

static enum vram_status look_at(struct forecasting *making, size_t side, struct vram_error *error) {
    const struct vram_recording *recording = making->asked->recording[side];
    struct vr_profile profile;
    struct vram_report *report;
    VR_TRY(vr_profile_open(recording, &making->asked->options, &profile, error));
    making->forecast.allocated[side] = profile.bytes;
    making->forecast.event[side] = profile.event;
    const uint32_t device = profile.view->device;
    enum vram_status status = add_groups(making, &profile, side, error);
    vr_profile_close(&profile);
    if (status == VRAM_OK) status = vram_report_create(recording, &(struct vram_report_options){.top = 1}, &report, error);
    if (status != VRAM_OK) return status;
    for (size_t i = 0; i < report->device_count; i++) {
        const int64_t peak = report->devices[i].reserved.peak_bytes;
        if (report->devices[i].device == device && peak > 0 && !report->devices[i].whole_program)
            making->forecast.reserved[side] = (uint64_t)peak;
    }
    vram_report_destroy(report);
    return VRAM_OK;
}

// --- a group's curve ---------------------------------------------------------------------------------------------------------------------

static double straight(const double x[2], const double y[2], double at) { return y[0] + (y[1] - y[0]) * (at - x[0]) / (x[1] - x[0]); }

// Through three points.
static double square(const double *x, const double *y, double at) {
    double sum = 0;
    for (size_t i = 0; i < 3; i++) {
        double weight = y[i];
        for (size_t j = 0; j < 3; j++) weight *= j == i ? 1 : (at - x[j]) / (x[i] - x[j]);
        sum += weight;
    }
    return sum;
}

// By a power of the size: what tensors follow whose dimensions are the size, once (activations) or twice (attention).
static double power(const double x[2], double last, double exponent, double at) { return last * pow(at / x[1], exponent); }

// A constant and a part that goes by the square.
static double constant_and_square(const double x[2], const double y[2], double at) {
    return y[0] + (y[1] - y[0]) * (at * at - x[0] * x[0]) / (x[1] * x[1] - x[0] * x[0]);
}

struct curve {
    double value, other; // the forecast, and what the next best curve says
    enum vr_forecast_shape shape;
};

// Two points: a group that goes by the size or its square exactly is told by them; of another one, which is a sum of several, a straight
// line is the least that it may come to.
static struct curve from_two(const double *x, const double *y, double at, double count) {
    if (y[0] == y[1]) return (struct curve){y[0], y[0], VR_FORECAST_CONSTANT};
    const double slack = ROUNDING_BYTES * count + SHARE * y[1];
    if (y[0] > 0 && fabs(power(x, y[1], 1, x[0]) - y[0]) <= slack)
        return (struct curve){power(x, y[1], 1, at), power(x, y[1], 1, at), VR_FORECAST_STRAIGHT};
    if (y[0] > 0 && fabs(power(x, y[1], 2, x[0]) - y[0]) <= slack)
        return (struct curve){power(x, y[1], 2, at), power(x, y[1], 2, at), VR_FORECAST_SQUARE};
    return (struct curve){straight(x, y, at), constant_and_square(x, y, at), VR_FORECAST_STRAIGHT};
}

static struct curve from_three(const double *x, const double *y, double at, double count) {
    const double ends_x[2] = {x[0], x[2]}, ends_y[2] = {y[0], y[2]}, slack = ROUNDING_BYTES * count + SHARE * y[2];
    if (y[0] == y[1] && y[1] == y[2]) return (struct curve){y[0], y[0], VR_FORECAST_CONSTANT};
    const double line = straight(ends_x, ends_y, at), curved = square(x, y, at);
    if (fabs(y[1] - straight(ends_x, ends_y, x[1])) <= slack) return (struct curve){line, curved, VR_FORECAST_STRAIGHT};
    // Nothing tests a curve through all there is: half the way to the line through the last two.
    return (struct curve){curved, (curved + straight(x + 1, y + 1, at)) / 2, VR_FORECAST_SQUARE};
}

static uint64_t whole(double bytes) { return bytes <= 0 ? 0 : bytes >= 0x1p62 ? UINT64_C(1) << 62 : (uint64_t)(bytes + 0.5); }

// Adds what the bytes of each size come to. `count` is of allocations.
static void foresee(const struct vram_forecast *asked, const size_t *order, const uint64_t *bytes, double count,
                    struct vr_forecast_group *group) {
    double x[VRAM_FORECAST_MOST], y[VRAM_FORECAST_MOST];
    for (size_t i = 0; i < asked->count; i++) {
        x[i] = asked->size[order[i]];
        y[i] = (double)bytes[order[i]];
    }
    const struct curve curve = asked->count == 2 ? from_two(x, y, asked->wanted, count) : from_three(x, y, asked->wanted, count);
    if (curve.shape > group->shape) group->shape = curve.shape;
    group->forecast_bytes += whole(curve.value);
    group->low_bytes += whole(curve.value < curve.other ? curve.value : curve.other);
    group->high_bytes += whole(curve.value < curve.other ? curve.other : curve.value);
}

// The allocations of one group, by side, then order. Where every peak has as many of them, each goes its own way: a call site may allocate
// several tensors, of which some grow and some do not. Otherwise their sum.
static void foresee_group(const struct vram_forecast *asked, const size_t *order, const struct forecast_entry *entry,
                          struct vr_forecast_group *group) {
    const uint64_t each = group->count[0];
    bool alike = each != 0;
    for (size_t i = 1; i < asked->count; i++) alike = alike && group->count[i] == each;
    if (!alike) {
        foresee(asked, order, group->bytes, (double)group->count[order[asked->count - 1]], group);
        return;
    }
    for (uint64_t k = 0; k < each; k++) {
        uint64_t bytes[VRAM_FORECAST_MOST];
        for (size_t i = 0; i < asked->count; i++) bytes[i] = entry[i * each + k].bytes;
        foresee(asked, order, bytes, 1, group);
    }
}

// --- all of them -------------------------------------------------------------------------------------------------------------------------

static int by_name(const void *a, const void *b) {
    const struct forecast_entry *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    if (names != 0) return names;
    return x->side != y->side ? VR_ORDER(x->side, y->side) : VR_ORDER(x->order, y->order);
}

static int by_forecast(const void *a, const void *b) {
    const struct vr_forecast_group *x = a, *y = b;
    if (x->forecast_bytes != y->forecast_bytes) return VR_ORDER(y->forecast_bytes, x->forecast_bytes);
    return strcmp(x->name, y->name);
}

static enum vram_status join(struct forecasting *making) {
    struct vr_forecast *forecast = &making->forecast;
    if (making->count == 0) return VRAM_OK;
    forecast->group = calloc(making->count, sizeof *forecast->group);
    if (forecast->group == NULL) return VRAM_NO_HOST_MEMORY;
    qsort(making->entry, making->count, sizeof *making->entry, by_name);
    for (size_t i = 0, end; i < making->count; i = end) {
        struct vr_forecast_group *group = &forecast->group[forecast->count++];
        group->name = making->entry[i].name;
        for (end = i; end < making->count && strcmp(making->entry[end].name, group->name) == 0; end++) {
            group->bytes[making->entry[end].side] += making->entry[end].bytes;
            group->count[making->entry[end].side]++;
        }
        foresee_group(making->asked, forecast->order, &making->entry[i], group);
    }
    return VRAM_OK;
}

static double lesser(double a, double b) { return a < b ? a : b; }
static double greater(double a, double b) { return a < b ? b : a; }

// What is held above what is allocated does not follow a curve: it goes on as it did, and varies as much as it did, as bytes or as a share,
// and by what runs that were left out varied.
static void foresee_reserved(const struct vram_forecast *asked, struct vr_forecast *forecast) {
    struct vram_forecast_result *result = &forecast->result;
    const double allocated = (double)result->allocated_bytes;
    double x[2] = {0, 1}, gap[2] = {0}, least = INFINITY, most = 0;
    for (size_t i = 0; i < asked->count; i++) {
        const size_t side = forecast->order[i];
        if (forecast->reserved[side] < forecast->allocated[side]) return;
        const double over = (double)(forecast->reserved[side] - forecast->allocated[side]),
                     share = over / (double)forecast->allocated[side];
        x[i != 0] = asked->size[side], gap[i != 0] = over;
        least = lesser(least, lesser(over, share * allocated)), most = greater(most, greater(over, share * allocated));
    }
    const double next = greater(0, straight(x, gap, asked->wanted));
    result->reserved_bytes = result->allocated_bytes + whole(next);
    result->reserved_low_bytes = result->allocated_low_bytes + whole(greater(0, lesser(least, next) - HELD_SHARE * allocated));
    result->reserved_high_bytes = result->allocated_high_bytes + whole(greater(most, next) + HELD_SHARE * allocated);
}

static void foresee_all(const struct vram_forecast *asked, struct vr_forecast *forecast) {
    struct vram_forecast_result *result = &forecast->result;
    const size_t largest = forecast->order[asked->count - 1];
    for (size_t i = 0; i < forecast->count; i++) {
        const struct vr_forecast_group *group = &forecast->group[i];
        result->allocated_bytes += group->forecast_bytes;
        result->allocated_low_bytes += group->low_bytes;
        result->allocated_high_bytes += group->high_bytes;
        bool everywhere = true;
        for (size_t k = 0; k < asked->count; k++) everywhere = everywhere && group->count[k] != 0;
        if (!everywhere) forecast->only_some_bytes += group->bytes[largest];
    }
    // What a line or a square is taken for may be off it by as much.
    result->allocated_low_bytes -= whole(SHARE * (double)result->allocated_low_bytes);
    result->allocated_high_bytes += whole(SHARE * (double)result->allocated_high_bytes);
    foresee_reserved(asked, forecast);
    if (forecast->count != 0) qsort(forecast->group, forecast->count, sizeof *forecast->group, by_forecast);
}

static enum vram_status check(const struct vram_forecast *asked, size_t *order, struct vram_error *error) {
    if (asked->count < 2 || asked->count > VRAM_FORECAST_MOST)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "a forecast is made from two or three recordings");
    for (size_t i = 0; i < asked->count; i++) {
        if (!(asked->size[i] > 0) || !isfinite(asked->size[i]))
            return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "a size must be above 0");
        size_t at = i;
        for (; at != 0 && asked->size[order[at - 1]] > asked->size[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (size_t i = 1; i < asked->count; i++) {
        if (asked->size[order[i]] <= asked->size[order[i - 1]])
            return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
                           "two recordings of the same size (%g): a forecast needs different ones", asked->size[order[i]]);
    }
    if (asked->options.by != NULL && strcmp(asked->options.by, "stack") == 0)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
                       "call stacks have no names that several recordings share: site, function, role, ...");
    if (!(asked->wanted > 0) || !isfinite(asked->wanted))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the size that is asked for must be above 0");
    return VRAM_OK;
}

enum vram_status vr_forecast_make(const struct vram_forecast *asked, struct vr_forecast *forecast, struct vram_error *error) {
    struct forecasting making = {.asked = asked};
    VR_TRY(check(asked, making.forecast.order, error));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < asked->count && status == VRAM_OK; i++) status = look_at(&making, i, error);
    if (status == VRAM_OK) status = join(&making);
    free(making.entry);
    if (status == VRAM_OK) foresee_all(asked, &making.forecast);
    if (status != VRAM_OK)
        vr_forecast_release(&making.forecast);
    else
        *forecast = making.forecast;
    return status;
}

void vr_forecast_release(struct vr_forecast *forecast) {
    free(forecast->group);
    vr_arena_release(&forecast->arena);
    *forecast = (struct vr_forecast){.group = NULL};
}
