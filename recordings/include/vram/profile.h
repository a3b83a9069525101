// vram/profile.h: who holds the memory of a recording: by call site or anything else that allocations have in common, as a flame graph,
// next to another recording, and what grows from step to step. Nothing here needs a device.
//
// All functions borrow the recording and write through `write`: IO when it returned false. They return INVALID_ARGUMENT with a sentence for
// options that the recording does not have (a device, an event) or that are none (a grouping, an expression), LIMIT for recordings with
// more events than can be told apart, NO_HOST_MEMORY. Names are written as the recording has them, in text without control characters.
#ifndef VRAM_PROFILE_H
#define VRAM_PROFILE_H

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;

enum vram_profile_moment {
    VRAM_PROFILE_PEAK, // of the bytes that are live
    VRAM_PROFILE_END,
    VRAM_PROFILE_EVENT // after `event`
};

// All-zero but `device` is the default.
struct vram_profile_options {
    int64_t device; // -1: the one that ran out of memory, else the one with the highest peak
    enum vram_profile_moment moment;
    int64_t event;          // with VRAM_PROFILE_EVENT: after this event, -1: before the first
    bool active;            // live until free_completed, not until free_requested
    bool bottom_up;         // flame graphs: innermost frames first
    bool all_frames;        // flame graphs: also what unwinds, dispatches, interprets, allocates and wraps
    unsigned top;           // rows; 0: 10
    const char *by;         // site (NULL), stack, function, file, role, module, category, pool, stream, annotation, thread, metadata,
                            // context, size, regex
    const char *expression; // for regex
    const char *roles;      // rules of the user for role and module (vram/roles.h), as text; NULL: none
    const char *step;       // leaks: marks of this name begin the steps; NULL: found
    uint64_t every_events;  // leaks: steps of so many events; 0: found
};

// The words that `by` may be; NULL past the last.
VRAM_API const char *vram_profile_grouping(size_t index);

// The largest groups of what is live at the moment. title (may be NULL) names the recording.
VRAM_API VRAM_NODISCARD enum vram_status vram_profile_text(const struct vram_recording *recording,
                                                           const struct vram_profile_options *options, const char *title,
                                                           const struct vram_style *style, vram_write write, void *user,
                                                           struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_profile_json(const struct vram_recording *recording,
                                                           const struct vram_profile_options *options, const char *title, vram_write write,
                                                           void *user, struct vram_error *error);

// Allocated over reserved bytes along the events, as a chart `rows` high (at least 4) per device of a report.
struct vram_report;
VRAM_API VRAM_NODISCARD enum vram_status vram_timeline_text(const struct vram_report *report, const char *title, unsigned rows,
                                                            const struct vram_style *style, vram_write write, void *user);

// The call stacks of what is live at the moment as an SVG picture that zooms and searches in any browser, with no network. With `before`
// (may be NULL) the difference to what was live there at that moment: orange grew, blue shrank.
VRAM_API VRAM_NODISCARD enum vram_status vram_flame_svg(const struct vram_recording *recording, const struct vram_recording *before,
                                                        const struct vram_profile_options *options, const char *title, vram_write write,
                                                        void *user, struct vram_error *error);
// The same as lines "outermost;...;innermost bytes"; with `before` "... bytes before, bytes now", as difference tools read them.
VRAM_API VRAM_NODISCARD enum vram_status vram_flame_folded(const struct vram_recording *recording, const struct vram_recording *before,
                                                           const struct vram_profile_options *options, vram_write write, void *user,
                                                           struct vram_error *error);

// Two recordings, side by side: [0] is before, [1] is after.
struct vram_diff {
    const struct vram_recording *recording[2];
    const char *title[2];
    struct vram_profile_options options[2]; // `by` and `top` of the second count
};
// What came out of it.
struct vram_diff_result {
    uint64_t bytes[2];        // live at the moments
    int64_t most_grown_bytes; // of a group, 0 if none grew
};
// *result (may be NULL) is set on success.
VRAM_API VRAM_NODISCARD enum vram_status vram_diff_text(const struct vram_diff *diff, const struct vram_style *style, vram_write write,
                                                        void *user, struct vram_diff_result *result, struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_diff_json(const struct vram_diff *diff, vram_write write, void *user,
                                                        struct vram_diff_result *result, struct vram_error *error);

// What leaks or grows from step to step. Without a device in the options: the one that ran out of memory or has the highest peak, or where
// that leaks nothing the first one that does. *leaks (may be NULL) is set to how many groups leak: what they allocate outlives its step and
// stays, step after step, until the end.
VRAM_API VRAM_NODISCARD enum vram_status vram_leaks_text(const struct vram_recording *recording, const struct vram_profile_options *options,
                                                         const char *title, const struct vram_style *style, vram_write write, void *user,
                                                         size_t *leaks, struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_leaks_json(const struct vram_recording *recording, const struct vram_profile_options *options,
                                                         const char *title, vram_write write, void *user, size_t *leaks,
                                                         struct vram_error *error);

// Runs of one program in different sizes (of the batch, the sequence, the number of ranks), and the size that is asked for. Moment and
// device are the options'; `by` (not stack) and `top` say what the rows are.
#define VRAM_FORECAST_MOST 3
struct vram_forecast {
    const struct vram_recording *recording[VRAM_FORECAST_MOST];
    const char *title[VRAM_FORECAST_MOST]; // may be NULL
    double size[VRAM_FORECAST_MOST];       // above 0, no two alike
    size_t count;                          // 2 or 3
    double wanted;                         // above 0
    struct vram_profile_options options;
};
// What came out of it: the peak, and the range that what was seen allows. The moments that may be the peak are followed through the runs;
// at each, groups follow the simplest curve that their bytes lie on. Runs that are not of one program are refused (INVALID_ARGUMENT).
struct vram_forecast_result {
    uint64_t allocated_bytes, allocated_low_bytes, allocated_high_bytes; // asked for by the program
    uint64_t reserved_bytes, reserved_low_bytes, reserved_high_bytes;    // 0: not every recording has it
};
// *result (may be NULL) is set on success.
VRAM_API VRAM_NODISCARD enum vram_status vram_forecast_text(const struct vram_forecast *forecast, const struct vram_style *style,
                                                            vram_write write, void *user, struct vram_forecast_result *result,
                                                            struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_forecast_json(const struct vram_forecast *forecast, vram_write write, void *user,
                                                            struct vram_forecast_result *result, struct vram_error *error);

// --- row by row --------------------------------------------------------------------------------------------------------------------------
// What a recording holds, row by row: the counterparts of PyTorch's `python -m torch.cuda._memory_viz`.

enum vram_listing {
    VRAM_LISTING_STATS,    // segments of 20 MiB and more, page by page, and the sums of all
    VRAM_LISTING_SEGMENTS, // a row per segment of the final state
    VRAM_LISTING_MEMORY,   // the final blocks by stream, state and call stack, a line each: "stream_0;inactive;... 512"
    VRAM_LISTING_TRACE,    // a row per event of the history
    VRAM_LISTING_COUNT
};
// "stats", "segments", "memory", "trace"; NULL past the last.
VRAM_API const char *vram_listing_name(enum vram_listing listing);

// Writes the rows for people; style may be NULL. The recording is borrowed. NO_HOST_MEMORY, LIMIT (more devices or events than can be told
// apart), INVALID_ARGUMENT, IO when `write` returned false.
VRAM_API VRAM_NODISCARD enum vram_status vram_listing_text(const struct vram_recording *recording, enum vram_listing listing,
                                                           const struct vram_style *style, vram_write write, void *user,
                                                           struct vram_error *error);
// The same as one JSON object with the member `file` (may be NULL) and a member with the listing's name; keys in docs/reference/json.md.
VRAM_API VRAM_NODISCARD enum vram_status vram_listing_json(const struct vram_recording *recording, enum vram_listing listing,
                                                           const char *file, vram_write write, void *user, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
