#include "analyze/size_curve.h"

#include <math.h>

// Points that are off a line by at most this part of their bytes may be so by chance; what does not go by the size may be rounding up to
// this part of the bytes of the largest run.
#define SCATTER      0.02
#define ROUNDED_PART 0.25

static double lesser_of(double a, double b) { return a < b ? a : b; }
static double greater_of(double a, double b) { return a < b ? b : a; }

static double straight_line(const double x[2], const double y[2], double at) { return y[0] + (y[1] - y[0]) * (at - x[0]) / (x[1] - x[0]); }

// A constant and a part that goes by the square.
static double constant_and_square(const double x[2], const double y[2], double at) {
    return y[0] + (y[1] - y[0]) * (at * at - x[0] * x[0]) / (x[1] * x[1] - x[0] * x[0]);
}

static struct vr_size_curve make_curve(double value, double other, enum vr_curve_shape shape) {
    return (struct vr_size_curve){.value = value, .low = lesser_of(value, other), .high = greater_of(value, other), .shape = shape};
}

// Two points: what goes by the size or its square exactly is told by them; of anything else, which is a sum of several, a straight line is
// the least that it may come to. What is less at the larger size may stay at that or be what it was.
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

// What tensors follow whose dimensions are the size once, twice or three times: two terms, so that a third point tests them.
struct curve_family {
    int powers[2];
    enum vr_curve_shape shape;
};
static const struct curve_family families[] = {
    {{0, 1}, VR_SHAPE_STRAIGHT}, {{0, 2}, VR_SHAPE_SQUARE}, {{1, 2}, VR_SHAPE_SQUARE}, {{0, 3}, VR_SHAPE_CUBE}};

// What is divided among the ranks.
static const struct curve_family divided = {{0, -1}, VR_SHAPE_INVERSE};

// exponent: -1 to 3.
static double integer_power(double x, int exponent) {
    double product = exponent < 0 ? 1 / x : 1;
    for (int i = 0; i < exponent; i++) product *= x;
    return product;
}

// Through the first and the last point, at `at`.
static double of_family(const struct curve_family *family, const double *x, const double *y, double at) {
    const double p0 = integer_power(x[0], family->powers[0]), q0 = integer_power(x[0], family->powers[1]);
    const double p2 = integer_power(x[2], family->powers[0]), q2 = integer_power(x[2], family->powers[1]), area = p0 * q2 - p2 * q0;
    const double p = (y[0] * q2 - y[2] * q0) / area, q = (p0 * y[2] - p2 * y[0]) / area;
    return p * integer_power(at, family->powers[0]) + q * integer_power(at, family->powers[1]);
}

// Of one allocation a small part that does not go by the size may be what it is rounded up by.
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

// Less at a larger size.
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
        // One tensor may go by the cube; of a sum it is chance that three points lie on one.
        if (families[i].shape == VR_SHAPE_CUBE && !points->single) continue;
        if (family_fits(&families[i], points)) return make_curve(value, value, families[i].shape);
    }
    // As little may be by chance.
    if (off <= SCATTER * y[1]) return span_curve(line, last, rises ? curved : last, VR_SHAPE_STRAIGHT);
    // A sum that rises by far more behind the middle has something new there, which goes by the size from where it began.
    const bool newer = y[2] - y[1] > (y[1] - y[0]) * (x[2] - x[1]) / (x[1] - x[0]);
    if (!rises && !points->single && newer && at > x[2])
        return span_curve(last, y[2], greater_of(last, y[2] * at / x[2]), VR_SHAPE_STRAIGHT);
    // What rises ever less is not known to go on doing so.
    if (!rises) return make_curve(last, at > x[2] ? y[2] : line, VR_SHAPE_STRAIGHT);
    // Nothing tests a curve through all there is: it may go on as it did last, or rise by somewhat more.
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
