// Finds the same moments in several runs of one program, and how their bytes depend on a size.
#include <math.h>

#include "analyze/forecast.h"
#include "analyze/frame_kinds.h"

// Points that deviate from a line by at most this share may do so by chance; a part that does not depend on the size may be rounding up to
// this share of the largest run's bytes.
#define SCATTER      0.02
#define ROUNDED_PART 0.25

static double lesser_of(double a, double b) { return a < b ? a : b; }
static double greater_of(double a, double b) { return a < b ? b : a; }

static double straight_line(const double x[2], const double y[2], double at) { return y[0] + (y[1] - y[0]) * (at - x[0]) / (x[1] - x[0]); }

// Returns the value at `at` of the curve a + b x^2 through two points.
static double constant_and_square(const double x[2], const double y[2], double at) {
    return y[0] + (y[1] - y[0]) * (at * at - x[0] * x[0]) / (x[1] * x[1] - x[0] * x[0]);
}

static struct vr_size_curve make_curve(double value, double other, enum vr_curve_shape shape) {
    return (struct vr_size_curve){.value = value, .low = lesser_of(value, other), .high = greater_of(value, other), .shape = shape};
}

// Fits two points. If the bytes are exactly proportional to the size or to its square, that is the curve. Otherwise they are a sum of
// several terms, for which a line is a lower bound. If the bytes fall as the size grows, they may stay at the lower value or return to the
// higher one.
static struct vr_size_curve from_two(const struct vr_size_points *points, double at) {
    const double *x = points->size, *y = points->bytes, once = y[1] * x[0] / x[1], twice = once * x[0] / x[1];
    if (y[0] == y[1]) return make_curve(y[0], y[0], VR_SHAPE_CONSTANT);
    if (y[1] < y[0] && fabs(y[1] * x[1] / x[0] - y[0]) <= points->slack)
        return make_curve(y[1] * x[1] / at, y[1] * x[1] / at, VR_SHAPE_INVERSE);
    if (y[1] < y[0]) return make_curve(at < x[1] ? y[0] : y[1], at < x[1] ? y[1] : y[0], VR_SHAPE_CONSTANT);
    if (y[0] > 0 && fabs(once - y[0]) <= points->slack) return make_curve(y[1] * at / x[1], y[1] * at / x[1], VR_SHAPE_STRAIGHT);
    const double square = y[1] * (at / x[1]) * (at / x[1]);
    if (y[0] > 0 && fabs(twice - y[0]) <= points->slack) return make_curve(square, square, VR_SHAPE_SQUARE);
    return make_curve(straight_line(x, y, at), constant_and_square(x, y, at), VR_SHAPE_STRAIGHT);
}

// a + b x + c x^2 through three points.
struct square {
    double a, b, c;
};

static struct square square_through(const double *x, const double *y) {
    const double first = (y[1] - y[0]) / (x[1] - x[0]), second = (y[2] - y[1]) / (x[2] - x[1]);
    const double c = (second - first) / (x[2] - x[0]), b = first - c * (x[0] + x[1]);
    return (struct square){.a = y[0] - b * x[0] - c * x[0] * x[0], .b = b, .c = c};
}

static bool rises_between(const struct square *square, double from, double to) {
    return square->b + 2 * square->c * from >= 0 && square->b + 2 * square->c * to >= 0;
}

// The curves of tensors with one, two or three dimensions of the size: two terms each, so that a third point tests them.
struct curve_family {
    int powers[2];
    enum vr_curve_shape shape;
};
static const struct curve_family families[] = {
    {{0, 1}, VR_SHAPE_STRAIGHT}, {{0, 2}, VR_SHAPE_SQUARE}, {{1, 2}, VR_SHAPE_SQUARE}, {{0, 3}, VR_SHAPE_CUBE}};

// The curve of memory divided among ranks.
static const struct curve_family divided = {{0, -1}, VR_SHAPE_INVERSE};

// exponent: -1 to 3.
static double integer_power(double x, int exponent) {
    double product = exponent < 0 ? 1 / x : 1;
    for (int i = 0; i < exponent; i++) product *= x;
    return product;
}

// Returns the value at `at` of the family's curve through the first and the last point.
static double of_family(const struct curve_family *family, const double *x, const double *y, double at) {
    const double p0 = integer_power(x[0], family->powers[0]), q0 = integer_power(x[0], family->powers[1]);
    const double p2 = integer_power(x[2], family->powers[0]), q2 = integer_power(x[2], family->powers[1]), area = p0 * q2 - p2 * q0;
    const double p = (y[0] * q2 - y[2] * q0) / area, q = (p0 * y[2] - p2 * y[0]) / area;
    return p * integer_power(at, family->powers[0]) + q * integer_power(at, family->powers[1]);
}

// For a single allocation, treats a small part that does not depend on the size as rounding.
static double proportional(const struct vr_size_points *points, double line, double at) {
    const double *x = points->size, *y = points->bytes, constant = y[0] - (y[2] - y[0]) * x[0] / (x[2] - x[0]);
    return points->single && fabs(constant) <= ROUNDED_PART * y[2] ? y[2] * at / x[2] : line;
}

static struct vr_size_curve span_curve(double value, double a, double b, enum vr_curve_shape shape) {
    return (struct vr_size_curve){
        .value = value, .low = lesser_of(value, lesser_of(a, b)), .high = greater_of(value, greater_of(a, b)), .shape = shape};
}

static bool family_fits(const struct curve_family *family, const struct vr_size_points *points) {
    return fabs(points->bytes[1] - of_family(family, points->size, points->bytes, points->size[1])) <= points->slack;
}

// Fits bytes that fall as the size grows.
static struct vr_size_curve falling_curve(const struct vr_size_points *points, double at) {
    const double *x = points->size, *y = points->bytes, most = greater_of(greater_of(y[0], y[1]), y[2]),
                 least = lesser_of(lesser_of(y[0], y[1]), y[2]);
    const double value = of_family(&divided, x, y, at);
    if (y[0] > y[1] && y[1] > y[2] && family_fits(&divided, points)) return make_curve(value, value, VR_SHAPE_INVERSE);
    return span_curve(at > x[2] ? y[2] : most, most, least, VR_SHAPE_CONSTANT);
}

static struct vr_size_curve from_three(const struct vr_size_points *points, double at) {
    const double *x = points->size, *y = points->bytes;
    const double ends_x[2] = {x[0], x[2]}, ends_y[2] = {y[0], y[2]};
    if (y[0] == y[1] && y[1] == y[2]) return make_curve(y[0], y[0], VR_SHAPE_CONSTANT);
    if (y[1] < y[0] - points->slack || y[2] < y[1] - points->slack) return falling_curve(points, at);
    const struct square square = square_through(x, y);
    const double line = straight_line(ends_x, ends_y, at), curved = square.a + square.b * at + square.c * at * at;
    const double last = straight_line(x + 1, y + 1, at), off = fabs(y[1] - straight_line(ends_x, ends_y, x[1]));
    const bool rises = rises_between(&square, lesser_of(at, x[0]), greater_of(at, x[2]));
    if (off <= points->slack) return span_curve(line, rises ? curved : line, proportional(points, line, at), VR_SHAPE_STRAIGHT);
    for (size_t i = 1; i < VR_COUNT_OF(families); i++) {
        const double value = of_family(&families[i], x, y, at);
        // A single tensor may be cubic; for a sum, three points on a cubic curve are a coincidence.
        if (families[i].shape == VR_SHAPE_CUBE && !points->single) continue;
        if (family_fits(&families[i], points)) return make_curve(value, value, families[i].shape);
    }
    // So small a deviation may be chance.
    if (off <= SCATTER * y[1]) return span_curve(line, last, rises ? curved : last, VR_SHAPE_STRAIGHT);
    // A sum that rises much faster after the middle point has a new part, which grows with the size from where it began.
    const bool newer = y[2] - y[1] > (y[1] - y[0]) * (x[2] - x[1]) / (x[1] - x[0]);
    if (!rises && !points->single && newer && at > x[2])
        return span_curve(last, y[2], greater_of(last, y[2] * at / x[2]), VR_SHAPE_STRAIGHT);
    // Growth that slows down need not continue.
    if (!rises) return make_curve(last, at > x[2] ? y[2] : line, VR_SHAPE_STRAIGHT);
    // No further point tests a curve through all three: it may continue as it does at its end, or rise somewhat more.
    return span_curve(curved, last, curved + (curved - last) / 4, VR_SHAPE_SQUARE);
}

static double clamp_between(double value, double a, double b) { return greater_of(lesser_of(a, b), lesser_of(greater_of(a, b), value)); }

struct vr_size_curve vr_size_curve_at(const struct vr_size_points *points, double size) {
    struct vr_size_curve curve = points->count == 2 ? from_two(points, size) : from_three(points, size);
    for (size_t i = 1; i < points->count; i++) {
        if (size < points->size[i - 1] || size > points->size[i]) continue;
        const double before = points->bytes[i - 1], after = points->bytes[i];
        curve.value = clamp_between(curve.value, before, after);
        curve.low = clamp_between(curve.low, before, after);
        curve.high = clamp_between(curve.high, before, after);
    }
    curve.value = greater_of(curve.value, 0);
    curve.low = greater_of(curve.low, 0);
    curve.high = greater_of(curve.high, 0);
    return curve;
}

// --- the moments of one run --------------------------------------------------------------------------------------------------------------

static const char *base_name(const char *path) {
    const char *name = path;
    for (; *path != '\0'; path++) name = *path == '/' || *path == '\\' ? path + 1 : name;
    return name;
}

static uint64_t add_frame(uint64_t hash, const struct vr_model *model, uint32_t frame) {
    const char *name = vr_model_string(model, model->frames.name[frame]);
    const char *file = base_name(vr_model_string(model, model->frames.filename[frame]));
    return vr_hash_step(vr_hash_bytes(hash, name, strlen(name)), vr_hash_bytes(1, file, strlen(file)));
}

// Numbers a stack by its Python frames if it has any, because interpreters call a function in several ways.
static uint64_t stack_number(const struct vr_model *model, uint32_t stack) {
    uint64_t python = 0, all = 0;
    for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1]; i++) {
        const uint32_t frame = model->stacks.frame[i];
        if (vr_frame_is_python(model, frame, false)) python = add_frame(python + 1, model, frame);
        all = add_frame(all + 1, model, frame);
    }
    return python != 0 ? python : all;
}

static int by_stack_and_event(const void *a, const void *b) {
    const struct vr_run_moment *x = a, *y = b;
    return x->stack != y->stack ? VR_ORDER(x->stack, y->stack) : VR_ORDER(x->event, y->event);
}

// Returns the live bytes after each event, indexed by event + 1. The caller frees the array.
static int64_t *live_bytes(const struct vr_view *view, const struct vr_lifetimes *lifetimes) {
    int64_t *live = calloc(view->history->count + 2, sizeof *live);
    if (live == NULL) return NULL;
    for (size_t row = 0; row < lifetimes->count; row++) {
        const int64_t bytes = (int64_t)lifetimes->size_bytes[row];
        live[lifetimes->birth[row] == VR_BEFORE_TRACE ? 0 : (size_t)lifetimes->birth[row] + 1] += bytes;
        if (lifetimes->death[row] != VR_NEVER) live[(size_t)lifetimes->death[row] + 1] -= bytes;
    }
    for (size_t i = 1; i <= view->history->count; i++) live[i] += live[i - 1];
    return live;
}

static void fill_run(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const int64_t *live, uint64_t *numbers,
                     struct vr_run_moments *moments) {
    for (size_t row = lifetimes->start_count; row < lifetimes->count; row++) {
        const uint32_t stack = lifetimes->stack[row], event = lifetimes->birth[row];
        if (numbers[stack] == 0) numbers[stack] = stack_number(view->model, stack) | 1;
        moments->moment[moments->count++] = (struct vr_run_moment){
            .stack = numbers[stack], .event = event, .bytes = (uint64_t)(live[(size_t)event + 1] < 0 ? 0 : live[(size_t)event + 1])};
    }
    if (moments->count != 0) qsort(moments->moment, moments->count, sizeof *moments->moment, by_stack_and_event);
    for (size_t i = 1; i < moments->count; i++) {
        const struct vr_run_moment *before = &moments->moment[i - 1];
        if (before->stack == moments->moment[i].stack) moments->moment[i].order = before->order + 1;
    }
}

enum vram_status vr_moments_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_run_moments *moments) {
    struct vr_run_moments found = {.moment = malloc((lifetimes->count + 1) * sizeof *found.moment)};
    int64_t *live = live_bytes(view, lifetimes);
    uint64_t *numbers = calloc(view->model->stacks.count, sizeof *numbers);
    const bool enough = found.moment != NULL && live != NULL && numbers != NULL;
    if (enough) fill_run(view, lifetimes, live, numbers, &found);
    free(live);
    free(numbers);
    if (enough)
        *moments = found;
    else
        free(found.moment);
    return enough ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}

void vr_moments_release(struct vr_run_moments *moments) {
    free(moments->moment);
    *moments = (struct vr_run_moments){.moment = NULL};
}

// --- the same moments in all runs --------------------------------------------------------------------------------------------------------

struct moment_following {
    const struct vr_run_moments *moments;
    const struct vr_lifetimes *const *lifetimes;
    const double *size;
    size_t runs;
    double wanted;
    struct vr_followed_list list;
};

static void estimate_moment(const struct moment_following *following, struct vr_followed *followed) {
    struct vr_size_points points = {.count = following->runs};
    for (size_t run = 0; run < following->runs; run++) {
        points.size[run] = following->size[run];
        points.bytes[run] = (double)followed->bytes[run];
    }
    followed->most = vr_size_curve_at(&points, following->wanted).high;
}

// The moments of one stack in one run.
struct of_stack {
    const struct vr_run_moment *moment;
    size_t count;
};

static struct of_stack of_stack(const struct vr_run_moments *moments, uint64_t stack) {
    size_t first, end;
    VR_LOWER_BOUND(first, i, 0, moments->count, moments->moment[i].stack < stack);
    VR_LOWER_BOUND(end, k, first, moments->count, moments->moment[k].stack <= stack);
    return (struct of_stack){.moment = moments->moment + first, .count = end - first};
}

static size_t highest_stack(const struct of_stack *of) {
    size_t best = 0;
    for (size_t i = 1; i < of->count; i++) best = of->moment[i].bytes > of->moment[best].bytes ? i : best;
    return best;
}

static bool is_peak(const struct moment_following *following, size_t run, int64_t event) {
    return following->lifetimes[run]->peak_event == event;
}

static enum vram_status keep_moment(struct moment_following *following, const struct vr_followed *followed) {
    struct vr_followed_list *list = &following->list;
    VR_TRY(vr_grow((void **)&list->followed, &list->capacity, list->count + 1, sizeof *list->followed));
    list->followed[list->count++] = *followed;
    for (size_t run = 0; run < following->runs; run++) {
        if (is_peak(following, run, followed->event[run])) list->peaks |= 1u << run;
    }
    return VRAM_OK;
}

static struct vr_followed followed_at(const struct moment_following *following, const struct of_stack *of, const size_t *order) {
    struct vr_followed followed = {.most = 0};
    for (size_t run = 0; run < following->runs; run++) {
        followed.event[run] = of[run].moment[order[run]].event;
        followed.bytes[run] = of[run].moment[order[run]].bytes;
    }
    estimate_moment(following, &followed);
    return followed;
}

static bool has_a_peak(const struct moment_following *following, const struct vr_followed *followed) {
    for (size_t run = 0; run < following->runs; run++) {
        if (is_peak(following, run, followed->event[run])) return true;
    }
    return false;
}

// Follows each moment of a stack that has the same number of moments in every run.
static enum vram_status follow_each(struct moment_following *following, const struct of_stack *of) {
    struct vr_followed best = {.most = -1};
    for (size_t i = 0; i < of[0].count; i++) {
        const size_t order[VRAM_FORECAST_MOST] = {i, i, i};
        const struct vr_followed followed = followed_at(following, of, order);
        if (has_a_peak(following, &followed)) VR_TRY(keep_moment(following, &followed));
        if (followed.most > best.most) best = followed;
    }
    return keep_moment(following, &best);
}

static enum vram_status follow_stack(struct moment_following *following, uint64_t stack) {
    struct of_stack of[VRAM_FORECAST_MOST];
    size_t order[VRAM_FORECAST_MOST] = {0};
    bool alike = true;
    for (size_t run = 0; run < following->runs; run++) {
        of[run] = of_stack(&following->moments[run], stack);
        if (of[run].count == 0) return VRAM_OK;
        alike = alike && of[run].count == of[0].count;
        order[run] = highest_stack(&of[run]);
    }
    if (alike) return follow_each(following, of);
    const struct vr_followed followed = followed_at(following, of, order);
    return keep_moment(following, &followed);
}

static enum vram_status follow_beginning(struct moment_following *following) {
    struct vr_followed followed = {.most = 0};
    for (size_t run = 0; run < following->runs; run++) {
        followed.event[run] = -1;
        followed.bytes[run] = following->lifetimes[run]->start.bytes;
    }
    estimate_moment(following, &followed);
    return keep_moment(following, &followed);
}

static int highest_first(const void *a, const void *b) {
    const struct vr_followed *x = a, *y = b;
    if (x->most != y->most) return VR_ORDER(y->most, x->most);
    return VR_ORDER(x->event[0], y->event[0]);
}

enum vram_status vr_moments_follow(const struct vr_run_moments *moments, const struct vr_lifetimes *const *lifetimes, const double *size,
                                   size_t runs, double wanted, struct vr_followed_list *list) {
    struct moment_following following = {.moments = moments, .lifetimes = lifetimes, .size = size, .runs = runs, .wanted = wanted};
    enum vram_status status = follow_beginning(&following);
    for (size_t i = 0; i < moments[0].count && status == VRAM_OK; i++) {
        if (i == 0 || moments[0].moment[i].stack != moments[0].moment[i - 1].stack)
            status = follow_stack(&following, moments[0].moment[i].stack);
    }
    if (status != VRAM_OK) {
        free(following.list.followed);
        return status;
    }
    qsort(following.list.followed, following.list.count, sizeof *following.list.followed, highest_first);
    *list = following.list;
    return VRAM_OK;
}
