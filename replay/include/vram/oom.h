// vram/oom.h: after an out-of-memory error, which settings would have let the program fit. The report (vram/report.h) has the causes.
#ifndef VRAM_OOM_H
#define VRAM_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/report.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The cure for an out-of-memory error: settings with which the program would have fitted. The device's history is replayed on the simulated
// driver, in the memory that the program could have had when its request failed: first with the settings in force, then with one option
// changed, then with two. If a replay cannot decide the question, the verdict says so.

struct vram_recording;

// X(constant, JSON name)
#define VRAM_CURE_VERDICTS(X)                                                                                                              \
    X(SETTING, setting)         /* it fits with `conf` */                                                                                  \
    X(DEMAND, demand)           /* no setting can help: the live bytes alone exceed the room */                                            \
    X(NONE, none)               /* the live bytes are within the room, but no setting tried fits */                                        \
    X(NOT_REPRODUCED, not_seen) /* the replay with the settings in force does not run out of memory, so it proves nothing */               \
    X(NO_REPLAY, no_replay)     /* the history cannot be replayed */                                                                       \
    X(UNFINISHED, unfinished)   /* time ran out before a setting was found */                                                              \
    X(LIMIT, limit)             /* no setting helps: a limit of the process refused the request, and raising it helps */                   \
    X(GROWTH, growth)           /* no setting was tried: memory that grows in every step fills any room */

enum vram_cure_verdict {
#define VRAM_CURE_VERDICT(constant, name) VRAM_CURE_##constant,
    VRAM_CURE_VERDICTS(VRAM_CURE_VERDICT)
#undef VRAM_CURE_VERDICT
        VRAM_CURE_VERDICT_COUNT
};

// The cure for a device's last out-of-memory event. The replays try the requests of all such events.
struct vram_cure {
    uint32_t device;
    uint64_t event;
    enum vram_cure_verdict verdict;
    uint64_t room_bytes;   // the memory of the replays: vram_report_oom.room_bytes
    uint64_t demand_bytes; // most bytes live at once, as blocks, including the failed requests; 0: unknown
    const char *conf;      // SETTING: the complete option string that fits; otherwise ""
    const char
        *variable;       // environment variable from which PyTorch reads it: PYTORCH_CUDA_ALLOC_CONF, or that of ROCm (HIP) or Ascend (NPU)
    uint64_t held_bytes; // SETTING: most bytes reserved from the driver with it
    uint64_t needed_bytes;      // SETTING: the smallest memory in which it still fits, to 1/1024 or 2 MiB; 0 if there was no time to search
    unsigned tried;             // number of settings replayed
    bool from_recorded_start;   // SETTING: replayed from the memory state at the beginning of the recording, because from an empty cache
                                // nothing fails
    bool windows;               // recorded on Windows, where PyTorch ignores expandable_segments (as of 2.9), so it was not tried
    const char *usual;          // NOT_REPRODUCED, NO_REPLAY: the option that usually helps with this cause; NULL: none is known
    uint64_t limit_bytes;       // LIMIT: the process's limit; 0: the recording does not say
    uint64_t limit_from_bytes;  // LIMIT: bytes held when the request failed
    uint64_t limit_to_bytes;    // LIMIT: bytes held if it had succeeded: the least sufficient limit
    uint64_t driver_free_bytes; // LIMIT: the driver's free bytes
};

struct vram_cures {
    struct vram_cure *cures; // by device, ascending
    size_t count;
};

// Returns the JSON name ("setting", "demand", ...). Never NULL.
VRAM_API const char *vram_cure_verdict_name(enum vram_cure_verdict verdict);

// Finds the cure of each device's last out-of-memory event; the report must be of this recording. Without such events the result is empty.
// Replays up to about 80 times the events of the histories. The caller owns *cures. NO_HOST_MEMORY, and statuses of vram_replay_whatif();
// *cures is unchanged then. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_cures_find(const struct vram_recording *recording, const struct vram_report *report,
                                                         struct vram_cures **cures, struct vram_error *error);
// Like vram_cures_find(), but takes at most about `most_ns` of real time, for a process that must go on; returns a setting found in that
// time even if not all were tried. 0: no time limit.
VRAM_API VRAM_NODISCARD enum vram_status vram_cures_find_within(const struct vram_recording *recording, const struct vram_report *report,
                                                                uint64_t most_ns, struct vram_cures **cures, struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_cures_destroy(struct vram_cures *cures);

#ifdef __cplusplus
}
#endif
#endif
