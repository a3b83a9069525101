// vram/oom.h: after an out of memory: what would have let the program fit, and who else holds the device.
//
// The causes are in the report (vram/report.h), the cure and the accounts here.
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

// --- the cure ----------------------------------------------------------------------------------------------------------------------------
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
#define VRAM_CURE_NOT_SEEN VRAM_CURE_NOT_REPRODUCED // its name before; for one release

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

// --- who else holds the device -----------------------------------------------------------------------------------------------------------
// Who else holds the memory of a device: this process's contexts and modules, and other processes.
//
// Other processes are told by NVIDIA's management library (libnvidia-ml.so.1, NVML), which is looked for when it is asked, never before.
// Without it, where it refuses, and in containers that have process numbers of their own, that is said and nothing is guessed.

#define VRAM_NOT_KNOWN      UINT64_MAX // of a number of bytes
#define VRAM_PROCESS_NAME   64
#define VRAM_MOST_PROCESSES 128

// One process that holds memory of a device.
struct vram_process {
    uint64_t id;                  // as NVML numbers it
    char name[VRAM_PROCESS_NAME]; // "" where it cannot be told; printable ASCII, anything else is '?'
    uint64_t bytes;               // VRAM_NOT_KNOWN where NVML does not say
};

// All processes of a device.
struct vram_processes {
    struct vram_process others[VRAM_MOST_PROCESSES]; // most bytes first, those that are not known last
    size_t count;
    bool has_self;       // this process was among them, and is left out above. Else it may be one of them
    uint64_t self_bytes; // what it holds by NVML, contexts and code included; VRAM_NOT_KNOWN
    size_t left_out;     // processes beyond the most there is room for
};

// Asks NVML which processes hold memory of the device with this UUID (16 bytes; NULL: not known) or, where none has it, with this PCI bus
// id
// ("0000:65:00.0"; NULL: not known); ordinals would not do, since CUDA_VISIBLE_DEVICES renumbers. The library named by the variable
// VRAM_NVML, else libnvidia-ml.so.1. Takes milliseconds, and no device memory. UNSUPPORTED without the library or the device in it, DRIVER
// where it refuses: with a sentence in *error. Any thread, not in a signal handler.
VRAM_API VRAM_NODISCARD enum vram_status vram_processes_find(const unsigned char *uuid, const char *bus_id,
                                                             struct vram_processes *processes, struct vram_error *error);

// What this process may use of main memory: the machine's, or, where that is less, what its control group allows (what a container has).
// False, and both untouched, where the system does not say. Any thread.
VRAM_API bool vram_main_memory(uint64_t *available_bytes, uint64_t *total_bytes);

// Whether that library is there and starts: OK, or UNSUPPORTED with a sentence in *error.
VRAM_API VRAM_NODISCARD enum vram_status vram_processes_available(struct vram_error *error);

// Where memory of a device is that a recording does not hold, at one moment.
struct vram_accounts {
    uint32_t device;
    int64_t time_us;                        // of the out-of-memory event it belongs to; INT64_MIN: the last one of the device
    uint64_t context_bytes;                 // of this process's contexts, as measured; VRAM_NOT_KNOWN
    uint64_t module_bytes;                  // of its modules, as measured; VRAM_NOT_KNOWN
    uint64_t at_start_bytes;                // of the device, in use when this process had just made its first context; VRAM_NOT_KNOWN
    const struct vram_processes *processes; // NULL: not known
    const char *why;                        // why they are not; may be NULL
};

struct vram_log;
#define VRAM_ACCOUNTS_SLOTS 16
// The accounts as a setting of a recording file, `vram_accounts_<slot>` (docs/reference/formats/recording.md); a later one in the same slot
// replaces it. INVALID_ARGUMENT for a slot from VRAM_ACCOUNTS_SLOTS on, and what vram_log_setting() gives.
VRAM_API VRAM_NODISCARD enum vram_status vram_accounts_log(struct vram_log *log, const struct vram_accounts *accounts, unsigned slot);

#ifdef __cplusplus
}
#endif
#endif
