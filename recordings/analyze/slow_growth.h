// slow_growth.h: what grows over hours, by group, in the history of a server, which has no steps.
//
// Events are taken one by one, so that neither a long recording nor a live one is kept. Time is divided into equal windows; when there are
// too many, pairs of them merge. A group counts as growing only by memory that is old: it has outlived nearly all freed memory of the group
// several times. The memory of requests is never old, so traffic does not count, and neither does a cache that frees its oldest entries.
#ifndef VR_ANALYZE_SLOW_GROWTH_H
#define VR_ANALYZE_SLOW_GROWTH_H

#include "base/hash.h"

enum {
    VR_SLOW_WINDOWS = 192, // at most; at least half as many once the recording is that many seconds long
    VR_SLOW_PARTS = 24,    // of the recording, for the trend and for pictures
    VR_SLOW_CLASSES = 24   // of lifetimes: class 0 is below a second, class c is from 2^(c-1) seconds to twice that
};

// X(constant, word): what a group does.
#define VR_SLOW_VERDICTS(X)                                                                                                                \
    X(STEADY, steady)   /* nothing worth a line */                                                                                         \
    X(TRAFFIC, traffic) /* live bytes rose, but only young memory: more requests run */                                                    \
    X(EVICTS, evicts)   /* live bytes rose, but old memory is freed: a cache that keeps its limit, or sessions */                          \
    X(SLOWING, slowing) /* old memory grows ever more slowly: a cache that is filling */                                                   \
    X(FILLED, filled)   /* old memory grew, then stopped: warm-up, or a cache that is full */                                              \
    X(LEAK, leak)       /* old memory grows as fast as before until the end */

enum vr_slow_verdict {
#define VR_SLOW_VERDICT(constant, word) VR_SLOW_##constant,
    VR_SLOW_VERDICTS(VR_SLOW_VERDICT)
#undef VR_SLOW_VERDICT
        VR_SLOW_VERDICT_COUNT
};
const char *vr_slow_verdict_word(enum vr_slow_verdict verdict);

struct vr_slow;

// The caller owns *slow: vr_slow_destroy(). NO_HOST_MEMORY.
enum vram_status vr_slow_create(struct vr_slow **slow);
// NULL is ignored.
void vr_slow_destroy(struct vr_slow *slow);
// Time passes until the next event. Returns that time, or the latest so far if it is later; an allocation's is its birth for
// vr_slow_free().
int64_t vr_slow_pass(struct vr_slow *slow, int64_t time_us);
// An allocation of the group `key` begins now. NO_HOST_MEMORY.
enum vram_status vr_slow_alloc(struct vr_slow *slow, uint64_t key, uint64_t bytes);
// An allocation of the group, known by vr_slow_alloc(), ends now. NO_HOST_MEMORY.
enum vram_status vr_slow_free(struct vr_slow *slow, uint64_t key, int64_t born_us, uint64_t bytes);

// The course of a group over the history. Rates and counts are of the growth, which began at since_us.
struct vr_slow_course {
    uint64_t key;
    enum vr_slow_verdict verdict;
    int64_t since_us, last_us; // when old memory began to grow, and when it last did
    double bytes_per_hour;
    uint64_t grown_bytes;
    uint64_t blocks;           // that were made since, are old, and were never freed
    uint64_t old_seconds;      // memory counts as old from this age on
    uint64_t lifetime_seconds; // 99 % of the group's freed memory lived less long; 0: nothing was freed
    unsigned grew_parts;       // of the parts since the growth began, those in which it went on
    unsigned parts;
    bool sure;                     // of a leak: many rises, and a strong trend
    double trend;                  // Mann-Kendall's standardized statistic of the parts' minima
    uint64_t least[VR_SLOW_PARTS]; // fewest live bytes in each part of the recording
    uint64_t old[VR_SLOW_PARTS];   // fewest old bytes in each part of the recording
};

// Shorter histories cannot tell slow growth from the rest.
#define VR_SLOW_LEAST_SECONDS 3600

// Returns the time from the first event to the last, in seconds.
uint64_t vr_slow_seconds(const struct vr_slow *slow);
// Finds all groups that are not steady: leaks first, then by descending growth. The caller frees *courses. None if the history is too
// short. NO_HOST_MEMORY.
enum vram_status vr_slow_judge(const struct vr_slow *slow, struct vr_slow_course **courses, size_t *count);

// ---- Between slow_growth.c, which collects, and slow_judge.c ----

struct vr_slow_group {
    uint64_t key;
    uint64_t live_bytes;
    size_t window;                          // `least` is known up to this window
    uint64_t freed[VR_SLOW_CLASSES];        // number of freed blocks by class of lifetime
    uint64_t stay_bytes[VR_SLOW_WINDOWS];   // by window of birth: live bytes
    uint32_t stay_blocks[VR_SLOW_WINDOWS];  // and blocks
    uint64_t least_bytes[VR_SLOW_WINDOWS];  // fewest live bytes in the window
    uint64_t *freed_bytes[VR_SLOW_CLASSES]; // by window of birth, then by window of death; NULL: none, or shorter than a window
};

struct vr_slow {
    struct vr_map known; // key -> 1 + index
    struct vr_slow_group **group;
    size_t count, capacity;
    bool begun;
    int64_t first_us, last_us;
    uint64_t window_seconds;        // a power of two
    uint64_t made[VR_SLOW_WINDOWS]; // allocations of all groups: the traffic
};

// Returns the class of a lifetime, and the least seconds of a class above 0.
unsigned vr_slow_class(uint64_t seconds);
VR_INLINE uint64_t vr_slow_class_seconds(unsigned class) { return (uint64_t)1 << (class - 1); }

#endif
