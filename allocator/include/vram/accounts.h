// vram/accounts.h: device memory held outside a recording: by this process's contexts and modules, and by other processes.
//
// Other processes are read from NVIDIA's management library (libnvidia-ml.so.1, NVML), which is loaded at the first query. Without it,
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

#define VRAM_NOT_KNOWN      UINT64_MAX // an unknown number of bytes
#define VRAM_PROCESS_NAME   64
#define VRAM_MOST_PROCESSES 128

// One process that holds memory of a device.
struct vram_process {
    uint64_t id;                  // as NVML numbers it
    char name[VRAM_PROCESS_NAME]; // "" if unknown; printable ASCII, other characters are '?'
    uint64_t bytes;               // VRAM_NOT_KNOWN if NVML does not say
};

// All processes of a device.
struct vram_processes {
    struct vram_process others[VRAM_MOST_PROCESSES]; // most bytes first, unknown sizes last
    size_t count;
    bool has_self;       // this process was among them and is left out above; if false, it may still be one of them
    uint64_t self_bytes; // this process's bytes according to NVML, including contexts and code; VRAM_NOT_KNOWN
    size_t left_out;     // processes that did not fit into the array
};

// Asks NVML which processes hold memory of the device with this UUID (16 bytes; NULL: not known) or, if none matches, with this PCI bus id
// ("0000:65:00.0"; NULL: not known). Ordinals do not identify a device, because CUDA_VISIBLE_DEVICES renumbers them. Loads the library that
// the variable VRAM_NVML names, else libnvidia-ml.so.1. Takes milliseconds, and no device memory. UNSUPPORTED without the library or if it
// does not know the device, DRIVER if it refuses; both with a message in *error. Any thread; not in a signal handler.
VRAM_API VRAM_NODISCARD enum vram_status vram_processes_find(const unsigned char *uuid, const char *bus_id,
                                                             struct vram_processes *processes, struct vram_error *error);

// Gets the main memory that this process may use: the machine's or, if less, its control group's (as in a container). Returns false,
// leaving both unchanged, if the system does not say. Any thread.
VRAM_API bool vram_main_memory(uint64_t *available_bytes, uint64_t *total_bytes);

// Returns OK if the NVML library is present and starts, or UNSUPPORTED with a message in *error.
VRAM_API VRAM_NODISCARD enum vram_status vram_processes_available(struct vram_error *error);

// Device memory that the recording does not cover (contexts, modules, other processes), at one moment.
struct vram_accounts {
    uint32_t device;
    int64_t time_us;                        // of the out-of-memory event that this belongs to; INT64_MIN: the last one of the device
    uint64_t context_bytes;                 // this process's contexts, as measured; VRAM_NOT_KNOWN
    uint64_t module_bytes;                  // its modules, as measured; VRAM_NOT_KNOWN
    uint64_t at_start_bytes;                // in use on the device just after this process made its first context; VRAM_NOT_KNOWN
    const struct vram_processes *processes; // NULL: not known
    const char *why;                        // why `processes` is NULL; may be NULL
};

struct vram_log;
#define VRAM_ACCOUNTS_SLOTS 16
// Writes the accounts into a recording file as its setting `vram_accounts_<slot>` (docs/reference/formats/recording.md). A later one in the
// same slot replaces it. INVALID_ARGUMENT for a slot of VRAM_ACCOUNTS_SLOTS or more; statuses of vram_log_setting().
VRAM_API VRAM_NODISCARD enum vram_status vram_accounts_log(struct vram_log *log, const struct vram_accounts *accounts, unsigned slot);

#ifdef __cplusplus
}
#endif
#endif
