// Whether a group leaks, only grows, or neither.
#include "analyze/growth.h"

const char *vr_verdict_word(enum vr_verdict verdict) {
    static const char *const words[] = {
#define VR_VERDICT(constant, word) #word,
        VR_VERDICTS(VR_VERDICT)
#undef VR_VERDICT
    };
    return words[verdict];
}

// What is asked of the points for a group to pile up, or to grow.
enum { LEAST_GROWN = 3, LEAST_SINCE_ONSET = 5 };
#define LEAST_FIT      0.8 // of the spread around the mean that a straight line explains
#define LEAST_SURVIVAL 0.9 // of what outlived its step that is still live at the end, for what piles up since late in the history

// How much of the points' spread a straight line explains.
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
    size_t points, grew, kept; // how often it grew, and did not shrink
    size_t longest;            // steps in a row in which it did not grow, the last of them included
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

// In many steps or evenly. What is kept in every so many steps grows at even distances: never longer apart than twice the mean of them. A
// buffer that doubles grows ever more rarely, a cache that has filled up no more.
static bool grows_on(const struct growth_course *course) {
    const bool often = course->grew * 4 >= course->points - 1, evenly = course->longest * course->grew <= 2 * (course->points - 1);
    return course->points >= 4 && course->grew >= LEAST_GROWN && course->late && (often || evenly);
}

static size_t onset_of(const uint64_t *kept, size_t points) {
    size_t onset = 0;
    while (onset + 1 < points && kept[onset + 1] == 0) onset++;
    return onset;
}

// The last point is left out: what it has more than the one before has not outlived a step yet.
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

void vr_grower_judge(struct vr_grower *grower, size_t points, double steps_per_point, double live_slope, double kept_objects) {
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
