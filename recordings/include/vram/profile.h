// vram/profile.h: which code holds a recording's memory: by call site or another property of allocations, as a flame graph, compared with
// another recording, and by growth from step to step. Needs no device.
//
// All functions borrow the recording and write through `write`; they return IO if it returns false. They return INVALID_ARGUMENT with a
// message if the recording does not have the given device or event, or if a grouping or expression is invalid; LIMIT for recordings with
// more events than can be numbered; NO_HOST_MEMORY. Names are written as recorded; text output has no control characters.
#ifndef VRAM_PROFILE_H
#define VRAM_PROFILE_H

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;

enum vram_profile_moment {
    VRAM_PROFILE_PEAK, // when the most bytes are live
    VRAM_PROFILE_END,
    VRAM_PROFILE_EVENT // after `event`
};

// A struct that is zero except for `device` selects the defaults.
struct vram_profile_options {
    int64_t device; // -1: the device that ran out of memory, otherwise the one with the highest peak
    enum vram_profile_moment moment;
    int64_t event;          // for VRAM_PROFILE_EVENT: after this event; -1: before the first
    bool active;            // count a block as live until free_completed instead of free_requested
    bool bottom_up;         // flame graphs: innermost frames first
    bool all_frames;        // flame graphs: keep frames that unwind, dispatch, interpret, allocate and wrap
    unsigned top;           // number of rows; 0: 10
    const char *by;         // site (NULL), stack, function, file, role, module, category, pool, stream, annotation, thread, metadata,
                            // context, size, regex
    const char *expression; // for regex
    const char *roles;      // the user's rules for role and module (vram/roles.h), as text; NULL: no rules
    const char *step;       // leaks: marks of this name begin the steps; NULL: find the steps
    uint64_t every_events;  // leaks: number of events per step; 0: find the steps
    uint64_t memory_bytes;  // slow leaks: memory of the device; 0: unknown
};

// Returns a word that `by` accepts; NULL past the last.
VRAM_API const char *vram_profile_grouping(size_t index);

// Writes the largest groups of the allocations live at the options' moment. title (may be NULL) names the recording.
VRAM_API VRAM_NODISCARD enum vram_status vram_profile_text(const struct vram_recording *recording,
                                                           const struct vram_profile_options *options, const char *title,
                                                           const struct vram_style *style, vram_write write, void *user,
                                                           struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_profile_json(const struct vram_recording *recording,
                                                           const struct vram_profile_options *options, const char *title, vram_write write,
                                                           void *user, struct vram_error *error);

// Draws allocated over reserved bytes along the events, as a chart of `rows` lines (at least 4) for each device of a report.
struct vram_report;
VRAM_API VRAM_NODISCARD enum vram_status vram_timeline_text(const struct vram_report *report, const char *title, unsigned rows,
                                                            const struct vram_style *style, vram_write write, void *user);

// Draws the call stacks of the allocations live at the options' moment as an SVG that zooms and searches in any browser, offline. With
// `before` (may be NULL), draws the difference to the same moment of that recording: orange grew, blue shrank.
VRAM_API VRAM_NODISCARD enum vram_status vram_flame_svg(const struct vram_recording *recording, const struct vram_recording *before,
                                                        const struct vram_profile_options *options, const char *title, vram_write write,
                                                        void *user, struct vram_error *error);
// Writes the same stacks as lines "outermost;...;innermost bytes"; with `before` as "... bytes before, bytes now", the format of difference
// tools.
VRAM_API VRAM_NODISCARD enum vram_status vram_flame_folded(const struct vram_recording *recording, const struct vram_recording *before,
                                                           const struct vram_profile_options *options, vram_write write, void *user,
                                                           struct vram_error *error);

// Two recordings to compare: [0] is before, [1] is after.
struct vram_diff {
    const struct vram_recording *recording[2];
    const char *title[2];
    struct vram_profile_options options[2]; // `by` and `top` are taken from [1]
};
// The result of a comparison.
struct vram_diff_result {
    uint64_t bytes[2];        // live bytes at the two moments
    int64_t most_grown_bytes; // growth of the group that grew most; 0 if none grew
};
// *result (may be NULL) is set on success.
VRAM_API VRAM_NODISCARD enum vram_status vram_diff_text(const struct vram_diff *diff, const struct vram_style *style, vram_write write,
                                                        void *user, struct vram_diff_result *result, struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_diff_json(const struct vram_diff *diff, vram_write write, void *user,
                                                        struct vram_diff_result *result, struct vram_error *error);

// Reports what leaks or grows from step to step. If the options name no device, the device is the one that ran out of memory or has the
// highest peak; if that leaks nothing, the first device that leaks. *leaks (may be NULL) is set to the number of leaking groups: their
// allocations outlive their step, and more stay in each step until the end.
VRAM_API VRAM_NODISCARD enum vram_status vram_leaks_text(const struct vram_recording *recording, const struct vram_profile_options *options,
                                                         const char *title, const struct vram_style *style, vram_write write, void *user,
                                                         size_t *leaks, struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_leaks_json(const struct vram_recording *recording, const struct vram_profile_options *options,
                                                         const char *title, vram_write write, void *user, size_t *leaks,
                                                         struct vram_error *error);

// Reports what grows over hours in the recording of a server, which has no steps: call sites whose memory outlives nearly all other memory
// of the site, is not freed, and grows as fast as before until the end. Warm-up, more requests, and caches that fill or free old entries
// are listed but are no leaks. An hour of recording is needed. Devices as for vram_leaks_text(). *leaks (may be NULL) is set to the number
// of call sites, or of call stacks whose site hides them, that leak.
VRAM_API VRAM_NODISCARD enum vram_status vram_slow_leaks_text(const struct vram_recording *recording,
                                                              const struct vram_profile_options *options, const char *title,
                                                              const struct vram_style *style, vram_write write, void *user, size_t *leaks,
                                                              struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_slow_leaks_json(const struct vram_recording *recording,
                                                              const struct vram_profile_options *options, const char *title,
                                                              vram_write write, void *user, size_t *leaks, struct vram_error *error);

// The same judgement for a server that is still running: the caller passes each event once, and nothing of it is kept. Memory: about 10 KiB
// for each group. One thread at a time.
struct vram_slow_growth;
// The caller owns *growth. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_slow_growth_create(struct vram_slow_growth **growth);
// NULL is ignored.
VRAM_API void vram_slow_growth_destroy(struct vram_slow_growth *growth);
// Time passes until the next event. Returns that time, or the latest so far if it is later: the birth of an allocation that begins now.
// Does nothing if growth is NULL.
VRAM_API int64_t vram_slow_growth_pass(struct vram_slow_growth *growth, int64_t time_us);
// An allocation of the group `key` (any number, such as a call site's) begins now. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_slow_growth_alloc(struct vram_slow_growth *growth, uint64_t key, uint64_t bytes);
// An allocation that was passed to vram_slow_growth_alloc() ends now. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_slow_growth_free(struct vram_slow_growth *growth, uint64_t key, int64_t born_us,
                                                               uint64_t bytes);
// A group that leaks.
struct vram_slow_growth_leak {
    uint64_t key;
    int64_t since_us;
    double bytes_per_hour;
    bool sure;
};
// Fills in up to `capacity` groups that have leaked so far, fastest first, and their count. NO_HOST_MEMORY; nothing is then
// changed.
VRAM_API VRAM_NODISCARD enum vram_status vram_slow_growth_leaks(struct vram_slow_growth *growth, struct vram_slow_growth_leak *leaks,
                                                                size_t capacity, size_t *count);

// Runs of one program in different sizes (of the batch, the sequence, the number of ranks), and the size to forecast. The moment and the
// device come from the options; `by` (not stack) and `top` choose the rows.
#define VRAM_FORECAST_MOST 3
struct vram_forecast {
    const struct vram_recording *recording[VRAM_FORECAST_MOST];
    const char *title[VRAM_FORECAST_MOST]; // may be NULL
    double size[VRAM_FORECAST_MOST];       // above 0, all different
    size_t count;                          // 2 or 3
    double wanted;                         // above 0
    struct vram_profile_options options;
};
// The forecast peak, and the range that the runs allow. The moments that may become the peak are followed through the runs; at each, a
// group follows the simplest curve through its bytes. Runs of different programs are refused (INVALID_ARGUMENT).
struct vram_forecast_result {
    uint64_t allocated_bytes, allocated_low_bytes, allocated_high_bytes; // requested by the program
    uint64_t reserved_bytes, reserved_low_bytes, reserved_high_bytes;    // 0: some recording does not have it
};
// *result (may be NULL) is set on success.
VRAM_API VRAM_NODISCARD enum vram_status vram_forecast_text(const struct vram_forecast *forecast, const struct vram_style *style,
                                                            vram_write write, void *user, struct vram_forecast_result *result,
                                                            struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_forecast_json(const struct vram_forecast *forecast, vram_write write, void *user,
                                                            struct vram_forecast_result *result, struct vram_error *error);

// --- listings ----------------------------------------------------------------------------------------------------------------------------
// Listings of a recording's rows: the counterparts of PyTorch's `python -m torch.cuda._memory_viz`.

enum vram_listing {
    VRAM_LISTING_STATS,    // segments of 20 MiB and more, page by page, and totals
    VRAM_LISTING_SEGMENTS, // one row per segment of the final state
    VRAM_LISTING_MEMORY,   // the final blocks by stream, state and call stack, one line each: "stream_0;inactive;... 512"
    VRAM_LISTING_TRACE,    // one row per event of the history
    VRAM_LISTING_COUNT
};
// Returns "stats", "segments", "memory" or "trace"; NULL past the last.
VRAM_API const char *vram_listing_name(enum vram_listing listing);

// Writes the rows as text; style may be NULL. The recording is borrowed. NO_HOST_MEMORY, LIMIT (more devices or events than can be
// numbered), INVALID_ARGUMENT, IO if `write` returns false.
VRAM_API VRAM_NODISCARD enum vram_status vram_listing_text(const struct vram_recording *recording, enum vram_listing listing,
                                                           const struct vram_style *style, vram_write write, void *user,
                                                           struct vram_error *error);
// Writes the same rows as one JSON object with the member `file` (may be NULL) and a member with the listing's name; docs/reference/json.md
// lists the keys.
VRAM_API VRAM_NODISCARD enum vram_status vram_listing_json(const struct vram_recording *recording, enum vram_listing listing,
                                                           const char *file, vram_write write, void *user, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
