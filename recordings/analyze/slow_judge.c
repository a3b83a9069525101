// Judges what each group of allocations does over hours: from its old memory only, which requests and evicting caches do not have.
#include <math.h>

#include "analyze/slow_growth.h"

#define US_PER_SECOND    1000000
#define SECONDS_PER_HOUR 3600.0

// Memory is old from 4 times (two classes) the age below which 99 % of the group's freed memory was freed.
enum { LONG_LIVED_PERCENT = 99, OLD_CLASSES = 2 };
// A leak must meet these thresholds. The false alarms that they allow are measured: docs/guides/slow-leaks.md.
enum { LEAST_RISES = 4, LEAST_PARTS = 4 }; // windows in which old memory grew, also blocks that stayed; parts in which it grew
#define LEAST_TREND          3.3           // Mann-Kendall: one in 2,000 series without a trend
#define MOST_RATE            1e18
#define LEAST_SPAN           (1.0 / 6) // of the recording, from the first rise to the last
#define LEAST_BYTES_PER_HOUR 65536.0   // less takes two years for 1 GiB
#define STOPPED_AFTER        4.0       // expected rises that did not come: chance exp(-4)
#define SLOWING_BY           0.07      // by how much the growth's middle is early; a cache full at 5/6 of the time has 0.08
#define SLOWING_SURELY       2.0       // standard errors
enum { SURE_RISES = 12, SURE_PARTS = 8, EARLY_PART = 20 };
#define SURE_TREND        5.0
#define FLAT_LIVE         0.1 // of the most live bytes; a cache at its limit varies less
#define LEAST_LIVE_GROWTH 0.1 // of live bytes, for groups that do not leak

const char *vr_slow_verdict_word(enum vr_slow_verdict verdict) {
    static const char *const words[] = {
#define VR_SLOW_VERDICT(constant, word) #word,
        VR_SLOW_VERDICTS(VR_SLOW_VERDICT)
#undef VR_SLOW_VERDICT
    };
    return words[verdict];
}

// A group's old memory. Point b is a window of birth: the memory born in it or before that was old and live when that window's was old.
struct old_memory {
    const struct vr_slow *slow;
    const struct vr_slow_group *group;
    unsigned lifetime_class, old_class;
    size_t windows;                   // whole ones
    size_t delay;                     // windows until memory is old
    size_t points;                    // windows - delay
    uint64_t bytes[VR_SLOW_WINDOWS];  // old and live
    uint64_t kept[VR_SLOW_WINDOWS];   // part that stays: neither freed later nor replaced by memory born later. Never falls
    uint64_t blocks[VR_SLOW_WINDOWS]; // never freed, born up to then
    double traffic[VR_SLOW_WINDOWS];  // allocations of all groups up to then
};

static unsigned lifetime_class(const struct vr_slow_group *group) {
    uint64_t all = 0, below = group->freed[0];
    unsigned class = 0;
    for (unsigned c = 0; c < VR_SLOW_CLASSES; c++) all += group->freed[c];
    while (below < all - all * (100 - LONG_LIVED_PERCENT) / 100) below += group->freed[++class];
    return class;
}

static bool any_freed(const struct vr_slow_group *group) {
    for (unsigned c = 0; c < VR_SLOW_CLASSES; c++) {
        if (group->freed[c] != 0) return true;
    }
    return false;
}

// Returns false if memory becomes old too late to say anything.
static bool choose_age(struct old_memory *old) {
    const struct vr_slow *slow = old->slow;
    old->windows = (size_t)(vr_slow_seconds(slow) / slow->window_seconds);
    old->lifetime_class = lifetime_class(old->group);
    old->old_class = (any_freed(old->group) ? old->lifetime_class : 0) + OLD_CLASSES + 1;
    while (vr_slow_class_seconds(old->old_class) < slow->window_seconds) old->old_class++;
    old->delay = (size_t)(vr_slow_class_seconds(old->old_class) / slow->window_seconds);
    old->points = old->delay < old->windows ? old->windows - old->delay : 0;
    return 2 * old->points >= old->windows && old->points >= (size_t)2 * VR_SLOW_PARTS;
}

static void sum_old(struct old_memory *old) {
    const struct vr_slow_group *group = old->group;
    uint64_t stay = 0, blocks = 0, made = 0;
    for (size_t b = 0; b < old->points; b++) {
        old->bytes[b] = stay += group->stay_bytes[b];
        old->blocks[b] = blocks += group->stay_blocks[b];
        old->kept[b] = stay;
        old->traffic[b] = (double)(made += old->slow->made[b]);
    }
    for (unsigned c = old->old_class; c < VR_SLOW_CLASSES; c++) {
        const uint64_t *born = group->freed_bytes[c];
        if (born == NULL) continue;
        const uint64_t *died = born + VR_SLOW_WINDOWS;
        uint64_t live = 0;
        for (size_t w = 0; w < old->delay; w++) live -= died[w];
        for (size_t b = 0; b < old->points; b++) old->bytes[b] += live += born[b] - died[b + old->delay];
    }
    uint64_t least = UINT64_MAX;
    for (size_t b = old->points; b-- > 0;) {
        least = old->bytes[b] < least ? old->bytes[b] : least;
        old->kept[b] = old->kept[b] < least ? old->kept[b] : least;
    }
}

// ---- Trend: Mann-Kendall on the minima of equal parts. Minima ignore memory that comes and goes.

static void minima_of(const uint64_t *bytes, size_t points, uint64_t parts[VR_SLOW_PARTS]) {
    for (size_t p = 0; p < VR_SLOW_PARTS; p++) {
        const size_t first = p * points / VR_SLOW_PARTS, end = (p + 1) * points / VR_SLOW_PARTS;
        parts[p] = first < points ? bytes[first] : 0;
        for (size_t b = first; b < end; b++) parts[p] = bytes[b] < parts[p] ? bytes[b] : parts[p];
    }
}

static double mann_kendall(const uint64_t parts[VR_SLOW_PARTS]) {
    const double n = VR_SLOW_PARTS;
    double sum = 0, variance = n * (n - 1) * (2 * n + 5) / 18;
    for (size_t i = 0; i < VR_SLOW_PARTS; i++) {
        double ties = 0;
        bool first = true;
        for (size_t j = 0; j < VR_SLOW_PARTS; j++) {
            if (j > i) sum += (parts[j] > parts[i]) - (parts[j] < parts[i]);
            ties += parts[j] == parts[i];
            first = first && (j >= i || parts[j] != parts[i]);
        }
        if (first) variance -= ties * (ties - 1) * (2 * ties + 5) / 18;
    }
    return variance <= 0 ? 0 : (sum - (sum > 0) + (sum < 0)) / sqrt(variance);
}

// ---- The growth of kept memory.

struct rises {
    size_t first, last, count; // points at which kept memory exceeds the point before
    size_t onset;              // the point from which it grows steadily
    double effective;          // number of equal rises that would vary as much as these
};

static double rise_at(const struct old_memory *old, size_t b) { return (double)(old->kept[b] - old->kept[b - 1]); }

static void find_rises(const struct old_memory *old, size_t from, struct rises *rises) {
    double sum = 0, squares = 0;
    *rises = (struct rises){.count = 0};
    for (size_t b = from + 1; b < old->points; b++) {
        const double rise = rise_at(old, b);
        if (rise == 0) continue;
        if (rises->count++ == 0) rises->first = b;
        rises->last = b;
        sum += rise;
        squares += rise * rise;
    }
    rises->effective = squares == 0 ? 0 : sum * sum / squares;
}

// Finds where growth begins: before the first rise, or later if what grew until then is only a small part.
static size_t onset_of(const struct old_memory *old, const struct rises *rises) {
    const size_t first = rises->first - 1, last = old->points - 1;
    const uint64_t little = (old->kept[last] - old->kept[first]) / EARLY_PART;
    size_t onset = first;
    while (onset + 1 < last && old->kept[onset + 1] - old->kept[first] <= little) onset++;
    return onset;
}

// Describes the growth over a clock: hours, or the traffic.
struct pace {
    bool stopped, slows;
};

static double clock_at(const struct old_memory *old, bool traffic, size_t b) { return traffic ? old->traffic[b] : (double)b; }

// The middle of growth in time, weighted by bytes or by rises alone: 0.5 if it is even, less if it is early.
struct middle {
    double weight, moment;
};

static bool is_early(const struct middle *middle, double effective) {
    const double early = 0.5 - middle->moment / middle->weight;
    return early > SLOWING_BY && early * sqrt(12 * effective) > SLOWING_SURELY;
}

static struct pace pace_by(const struct old_memory *old, const struct rises *rises, bool traffic) {
    const size_t first = rises->first, end = old->points - 1;
    const double begun = clock_at(old, traffic, first), whole = clock_at(old, traffic, end) - begun;
    struct middle bytes = {0}, alone = {0};
    for (size_t b = first + 1; b <= end && whole > 0; b++) {
        const double rise = rise_at(old, b), at = ((clock_at(old, traffic, b) + clock_at(old, traffic, b - 1)) / 2 - begun) / whole;
        bytes.weight += rise;
        bytes.moment += rise * at;
        alone.weight += rise > 0;
        alone.moment += rise > 0 ? at : 0;
    }
    if (bytes.weight <= 0) return (struct pace){.stopped = true};
    const double quiet = (clock_at(old, traffic, end) - clock_at(old, traffic, rises->last)) / whole;
    return (struct pace){.stopped = rises->effective * quiet > STOPPED_AFTER,
                         .slows = is_early(&bytes, rises->effective) || is_early(&alone, alone.weight)};
}

// Judges growth after point `from`. It goes on if it neither stopped nor slows by one of the clocks: a leak follows either the requests or
// the time, and a cache that fills does so by both.
static enum vr_slow_verdict judge_after(const struct old_memory *old, size_t from, struct rises *rises) {
    find_rises(old, from, rises);
    if (rises->count < LEAST_RISES || old->blocks[old->points - 1] - old->blocks[rises->first - 1] < LEAST_RISES) return VR_SLOW_STEADY;
    const struct pace hours = pace_by(old, rises, false), requests = pace_by(old, rises, true);
    const bool goes_on = (!hours.stopped && !hours.slows) || (!requests.stopped && !requests.slows);
    if (!goes_on) return hours.stopped && requests.stopped ? VR_SLOW_FILLED : VR_SLOW_SLOWING;
    const double span = (double)(rises->last - rises->first) / (double)old->windows;
    return span < LEAST_SPAN ? VR_SLOW_STEADY : VR_SLOW_LEAK;
}

// Sizes of damaged files may be as large as 64 bits allow; no rate is.
static double per_hour(uint64_t bytes, double seconds) {
    const double rate = (double)bytes * SECONDS_PER_HOUR / seconds;
    return rate < MOST_RATE ? rate : MOST_RATE;
}

static void describe_growth(const struct old_memory *old, const struct rises *rises, struct vr_slow_course *course) {
    const struct vr_slow *slow = old->slow;
    const size_t onset = onset_of(old, rises), last = old->points - 1;
    const uint64_t window_us = slow->window_seconds * US_PER_SECOND, first_us = (uint64_t)slow->first_us; // damaged times wrap around
    course->since_us = (int64_t)(first_us + (onset + 1) * window_us);
    course->last_us = (int64_t)(first_us + (rises->last + 1) * window_us);
    course->grown_bytes = old->kept[last] - old->kept[onset];
    course->blocks = old->blocks[last] - old->blocks[onset];
    course->bytes_per_hour = per_hour(course->grown_bytes, (double)(last - onset) * (double)slow->window_seconds);
    for (size_t p = 0; p < VR_SLOW_PARTS; p++) {
        const size_t first = p * old->points / VR_SLOW_PARTS, end = (p + 1) * old->points / VR_SLOW_PARTS - 1;
        if (end <= onset) continue;
        course->parts++;
        course->grew_parts += old->kept[end] > old->kept[first > onset ? first - 1 : onset];
    }
}

// Decides what live bytes do in a group whose old memory does not grow.
static enum vr_slow_verdict judge_live(const struct vr_slow_group *group, const struct vr_slow *slow, struct vr_slow_course *course) {
    const uint64_t *least = course->least;
    uint64_t before = least[0], after = least[VR_SLOW_PARTS - 1];
    if (mann_kendall(least) < LEAST_TREND || (double)(after - before) < LEAST_LIVE_GROWTH * (double)after) return VR_SLOW_STEADY;
    course->grown_bytes = after - before;
    course->bytes_per_hour = per_hour(course->grown_bytes, (double)vr_slow_seconds(slow));
    if (course->bytes_per_hour < LEAST_BYTES_PER_HOUR) return VR_SLOW_STEADY;
    for (unsigned c = 1; c < VR_SLOW_CLASSES; c++) {
        if (group->freed_bytes[c] != NULL) return VR_SLOW_EVICTS;
    }
    return any_freed(group) ? VR_SLOW_TRAFFIC : VR_SLOW_STEADY;
}

// Returns whether growth of old memory is at the expense of young memory, in the second half of the time: live bytes stay the same. The
// entries of a full cache that are often used grow old.
static bool replaces(const struct old_memory *old, const struct vr_slow_course *course) {
    const size_t half = VR_SLOW_PARTS / 2;
    const uint64_t *live = course->least;
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t p = half; p < VR_SLOW_PARTS; p++) {
        least = live[p] < least ? live[p] : least;
        most = live[p] > most ? live[p] : most;
    }
    const uint64_t grown = old->kept[old->points - 1] - old->kept[old->points / 2];
    return (double)(most - least) < FLAT_LIVE * (double)most && 2 * (most - least) < grown;
}

static void judge_old(struct old_memory *old, struct vr_slow_course *course) {
    struct rises rises;
    sum_old(old);
    minima_of(old->bytes, old->points, course->old);
    course->trend = mann_kendall(course->old);
    course->verdict = judge_after(old, 0, &rises);
    // If the first part was a warm-up, the rest may still leak.
    if (course->verdict == VR_SLOW_FILLED || course->verdict == VR_SLOW_SLOWING) {
        struct rises later;
        const bool leaks = judge_after(old, old->points / 12, &later) == VR_SLOW_LEAK && later.count >= SURE_RISES;
        if (leaks) course->verdict = VR_SLOW_LEAK;
        if (leaks) rises = later;
    }
    if (course->verdict == VR_SLOW_STEADY) return;
    describe_growth(old, &rises, course);
    if (course->bytes_per_hour < LEAST_BYTES_PER_HOUR) course->verdict = VR_SLOW_STEADY;
    if (course->verdict != VR_SLOW_LEAK) return;
    course->sure = course->trend >= SURE_TREND && course->grew_parts >= SURE_PARTS && course->blocks >= SURE_RISES;
    if (replaces(old, course))
        course->verdict = VR_SLOW_EVICTS;
    else if (course->trend < LEAST_TREND || course->grew_parts < LEAST_PARTS)
        course->verdict = VR_SLOW_STEADY;
}

static void judge_group(const struct vr_slow *slow, const struct vr_slow_group *group, struct vr_slow_course *course) {
    struct old_memory old = {.slow = slow, .group = group};
    uint64_t least[VR_SLOW_WINDOWS];
    *course = (struct vr_slow_course){.key = group->key};
    const bool tells = choose_age(&old);
    for (size_t w = 0; w < old.windows; w++) least[w] = w <= group->window ? group->least_bytes[w] : group->live_bytes;
    minima_of(least, old.windows, course->least);
    course->old_seconds = vr_slow_class_seconds(old.old_class);
    course->lifetime_seconds = any_freed(group) ? (uint64_t)1 << old.lifetime_class : 0;
    if (tells) judge_old(&old, course);
    if (course->verdict == VR_SLOW_STEADY) course->verdict = judge_live(group, slow, course);
}

static int leaks_first(const void *a, const void *b) {
    const struct vr_slow_course *x = a, *y = b;
    if (x->verdict != y->verdict) return VR_ORDER(y->verdict, x->verdict);
    if (x->bytes_per_hour != y->bytes_per_hour) return VR_ORDER(y->bytes_per_hour, x->bytes_per_hour);
    return VR_ORDER(x->key, y->key);
}

enum vram_status vr_slow_judge(const struct vr_slow *slow, struct vr_slow_course **courses, size_t *count) {
    struct vr_slow_course *made = malloc((slow->count + 1) * sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *count = 0;
    for (size_t i = 0; i < slow->count && vr_slow_seconds(slow) >= VR_SLOW_LEAST_SECONDS; i++) {
        judge_group(slow, slow->group[i], &made[*count]);
        if (made[*count].verdict != VR_SLOW_STEADY) ++*count;
    }
    qsort(made, *count, sizeof *made, leaks_first);
    *courses = made;
    return VRAM_OK;
}
