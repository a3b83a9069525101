// Tests curves through two or three points: the growth of tensors is found exactly, and no curve gives implausible values.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>

#include "analyze/forecast.h"

#define MIB 1048576.0

static double constant(double n) { return n * 0 + 7 * MIB; }
static double affine(double n) { return 3 * MIB + n * 4096; }
static double square(double n) { return n * n * 640; }
static double both(double n) { return n * 81920 + n * n * 640; }
static double raised(double n) { return 90 * MIB + n * n * 640; }
static double cube(double n) { return n * n * n * 48; }
static double divided(double n) { return 5 * MIB + 900 * MIB / n; }
static double all(double n) { return 90 * MIB + n * 81920 + n * n * 640; }

static struct vr_size_points points_of(double (*bytes)(double), const double *size, size_t count) {
    struct vr_size_points points = {.count = count, .slack = 512};
    for (size_t i = 0; i < count; i++) {
        points.size[i] = size[i];
        points.bytes[i] = bytes(size[i]);
    }
    return points;
}

// Six tensors of a real program: 112.8, 114.6 and 226.1 MiB fit a cubic to 0.2 %, by chance.
static void a_sum_that_begins_to_rise_is_no_cube(void **state) {
    (void)state;
    struct vr_size_points points = {.size = {64, 256, 1024}, .bytes = {118235000, 120201000, 237044000}, .count = 3, .slack = 477160};
    const struct vr_size_curve curve = vr_size_curve_at(&points, 8192);
    assert_int_equal(curve.shape, VR_SHAPE_STRAIGHT);
    assert_true(curve.value < 2e9 && curve.low <= curve.value && curve.high >= curve.value);
    points.single = true;
    assert_int_equal(vr_size_curve_at(&points, 8192).shape, VR_SHAPE_CUBE);
}

static void what_tensors_follow_is_found(void **state) {
    (void)state;
    static const struct {
        double (*bytes)(double);
        enum vr_curve_shape shape;
    } cases[] = {{constant, VR_SHAPE_CONSTANT}, {affine, VR_SHAPE_STRAIGHT}, {square, VR_SHAPE_SQUARE},   {both, VR_SHAPE_SQUARE},
                 {raised, VR_SHAPE_SQUARE},     {cube, VR_SHAPE_CUBE},       {divided, VR_SHAPE_INVERSE}, {all, VR_SHAPE_SQUARE}};
    static const double sizes[] = {64, 128, 512}, wanted[] = {16, 200, 1024, 4096};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_size_points points = points_of(cases[i].bytes, sizes, 3);
        points.single = cases[i].shape == VR_SHAPE_CUBE; // a sum is not
        for (size_t k = 0; k < VR_COUNT_OF(wanted); k++) {
            const struct vr_size_curve curve = vr_size_curve_at(&points, wanted[k]);
            const double truth = cases[i].bytes(wanted[k]);
            assert_int_equal(curve.shape, cases[i].shape);
            assert_true(fabs(curve.value - truth) <= 0.001 * truth + 512);
            assert_true(curve.low <= truth + 512 && truth <= curve.high + 512);
        }
    }
}

// Through two points: an exact multiple, square or quotient has no range; anything else ranges from a straight line to a square.
static void two_points_tell_exact_multiples(void **state) {
    (void)state;
    static const struct {
        double first, second, slack;
        struct vr_size_curve at_four;
    } cases[] = {
        {5, 5, 0, {5, 5, 5, VR_SHAPE_CONSTANT}},
        {1, 2, 0, {4, 4, 4, VR_SHAPE_STRAIGHT}},
        {1, 4, 0, {16, 16, 16, VR_SHAPE_SQUARE}},
        {2, 1, 0, {0.5, 0.5, 0.5, VR_SHAPE_INVERSE}},
        {9, 1, 0, {1, 1, 9, VR_SHAPE_CONSTANT}},
        {1, 3, 0, {7, 7, 11, VR_SHAPE_STRAIGHT}},
        {12, 22, 1, {44, 44, 44, VR_SHAPE_STRAIGHT}},
        {12, 22.5, 0.5, {43.5, 43.5, 64.5, VR_SHAPE_STRAIGHT}},
        // The value at the smaller size is 0, so later values cannot be a multiple of it.
        {0, 2, 8, {6, 6, 10, VR_SHAPE_STRAIGHT}},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        const struct vr_size_points points = {
            .count = 2, .size = {1, 2}, .bytes = {cases[i].first, cases[i].second}, .slack = cases[i].slack};
        const struct vr_size_curve curve = vr_size_curve_at(&points, 4), *expected = &cases[i].at_four;
        assert_int_equal(curve.shape, expected->shape);
        assert_true(curve.value == expected->value && curve.low == expected->low && curve.high == expected->high);
    }
}

// Values that fall, jump or vanish: between the points no curve leaves their range, beyond them none reverses or becomes negative.
static void no_curve_turns_round(void **state) {
    (void)state;
    static const double sizes[] = {4, 8, 16}, bytes[][3] = {{60, 0, 0}, {0, 0, 60}, {0, 60, 0}, {10, 50, 60}, {60, 10, 50}, {50, 49, 60}};
    for (size_t i = 0; i < VR_COUNT_OF(bytes); i++) {
        for (size_t count = 2; count <= 3; count++) {
            struct vr_size_points points = {.count = count};
            double most = 0;
            for (size_t k = 0; k < count; k++) {
                points.size[k] = sizes[k];
                points.bytes[k] = bytes[i][k] * MIB;
                most = fmax(most, points.bytes[k]);
            }
            const double last = points.bytes[count - 1];
            for (double size = sizes[count - 1]; size <= 128; size *= 2) {
                const struct vr_size_curve curve = vr_size_curve_at(&points, size);
                assert_true(curve.low >= 0 && curve.low <= curve.value && curve.value <= curve.high);
                assert_true(curve.value >= last && curve.high >= last);
            }
            for (double size = 4; size <= sizes[count - 1]; size += 0.5) {
                const struct vr_size_curve curve = vr_size_curve_at(&points, size);
                assert_true(curve.low >= 0 && curve.high <= most);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_tensors_follow_is_found),
        cmocka_unit_test(a_sum_that_begins_to_rise_is_no_cube),
        cmocka_unit_test(two_points_tell_exact_multiples),
        cmocka_unit_test(no_curve_turns_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
