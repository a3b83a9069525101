// vram/accounts.h: who else holds the memory of a device: this process's contexts and modules, and other processes.
//
// Other processes are read from NVIDIA's management library (libnvidia-ml.so.1, NVML), which is loaded at the first question. Without it,
// where it refuses, and in containers with process numbers of their own, the answer says so; nothing is guessed.
#ifndef VRAM_ACCOUNTS_H
#define VRAM_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

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
