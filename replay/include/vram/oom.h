// vram/oom.h: after an out of memory: what would have let the program fit.
//
// The causes are in the report (vram/report.h), the cure is here.
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

// What would have let a program fit that ran out of memory: the cure that goes with the cause (vram/report.h).
//
// The history of the device is replayed on the simulated driver, in the memory that the program could have had when its request failed:
// first with the setting that was in force, then with one option changed, then with two. What the recording's own replay cannot show is
// said as such, not guessed.

struct vram_recording;

// X(constant, JSON name)
#define VRAM_CURE_VERDICTS(X)                                                                                                              \
    X(SETTING, setting)         /* with `conf` it fits */                                                                                  \
    X(DEMAND, demand)           /* no setting can help: more was live at once than there was room */                                       \
    X(NONE, none)               /* less was live than there was room, but no setting that was tried fits */                                \
    X(NOT_REPRODUCED, not_seen) /* the replay does not run out of memory with the setting that was in force: it cannot tell */             \
    X(NO_REPLAY, no_replay)     /* the history cannot be replayed */                                                                       \
    X(UNFINISHED, unfinished)   /* the time was over before a setting was found */                                                         \
    X(LIMIT, limit)             /* no setting helps: a limit of the process refused, and raising it does */                                \
    X(GROWTH, growth)           /* no setting was tried: memory that grows with every step fills any room */

enum vram_cure_verdict {
#define VRAM_CURE_VERDICT(constant, name) VRAM_CURE_##constant,
    VRAM_CURE_VERDICTS(VRAM_CURE_VERDICT)
#undef VRAM_CURE_VERDICT
        VRAM_CURE_VERDICT_COUNT
};

// For one out-of-memory event: the last one of its device. The requests of all of them are tried.
struct vram_cure {
    uint32_t device;
    uint64_t event;
    enum vram_cure_verdict verdict;
    uint64_t room_bytes;   // the memory of the replays: vram_report_oom.room_bytes
    uint64_t demand_bytes; // the most that was live at once, as blocks, the failed requests included; 0: not known
    const char *conf;      // SETTING: what would have fitted, the whole option string; else ""
    const char *variable;  // that PyTorch reads it from: PYTORCH_CUDA_ALLOC_CONF, or that of ROCm (HIP) or Ascend (NPU)
    uint64_t held_bytes;   // SETTING: the most that was held from the driver then
    uint64_t needed_bytes; // SETTING: the smallest memory in which it still fits, to 1/1024 or 2 MiB; 0 where there was no time to search
    unsigned tried;        // settings that were replayed
    bool from_recorded_start;  // SETTING: replayed from the memory as it lay when the recording began; from an empty cache it does not fail
    bool windows;              // recorded on Windows, where PyTorch ignores expandable_segments (as of 2.9): that was not tried
    const char *usual;         // NOT_REPRODUCED, NO_REPLAY: the option that usually helps after such a cause; NULL: none is known
    uint64_t limit_bytes;      // LIMIT: what the process was allowed to hold; 0: the recording does not say
    uint64_t limit_from_bytes; // LIMIT: it held so much when the request failed,
    uint64_t limit_to_bytes;   // and would have held so much with it: the least that the limit must be
    uint64_t driver_free_bytes; // LIMIT: what the driver had free
};

struct vram_cures {
    struct vram_cure *cures; // by device, ascending
    size_t count;
};

// One word for programs ("setting", "demand", ...). Never NULL.
VRAM_API const char *vram_cure_verdict_name(enum vram_cure_verdict verdict);

// Looks for the cure of each device's last out-of-memory event; the report must be the recording's. None of them: an empty result. Replays
// up to about 80 times as many events as the histories have. *cures is given to the caller. NO_HOST_MEMORY, and what
// vram_replay_whatif() gives; *cures is untouched then. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_cures_find(const struct vram_recording *recording, const struct vram_report *report,
                                                         struct vram_cures **cures, struct vram_error *error);
// The same in at most about `most_ns` of real time, for a process that is to go on: a setting that was found by then is told, whether the
// search went through all of them or not. 0: as long as it takes.
VRAM_API VRAM_NODISCARD enum vram_status vram_cures_find_within(const struct vram_recording *recording, const struct vram_report *report,
                                                                uint64_t most_ns, struct vram_cures **cures, struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_cures_destroy(struct vram_cures *cures);

#ifdef __cplusplus
}
#endif
#endif
