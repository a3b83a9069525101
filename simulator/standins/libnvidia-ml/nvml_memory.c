// nvml_memory.c: the memory of a device and who has it, over all processes of the session.
#include <string.h>

#include "../common/session.h"
#include "nvml.h"

// What NVML counts and the driver does not: the total is more than that of cuMemGetInfo by what the driver keeps for itself.
struct memory {
    uint64_t total, reserved, used; // used: by processes
};

// False for a device whose memory is the host's: NVML does not tell it.
static bool memory_of(uint32_t device, struct memory *memory) {
    const struct vr_sim_card *card = vr_sim_options_card(&nvml_options, device);
    const uint64_t usable = vr_sim_options_memory(&nvml_options, device);
    if (card->nvml_mib == 0) return false;
    *memory = (struct memory){.reserved = card->nvml_mib * VR_MIB - card->total_bytes};
    memory->total = usable + memory->reserved;
    const struct vr_session_file *session = vr_session();
    for (size_t i = 0; session != NULL && i < VR_SESSION_PROCESSES; i++) {
        const struct vr_session_row *row = &session->rows[i];
        if (atomic_load(&row->used_bytes[device]) != 0 && vr_session_is_live(row)) memory->used += atomic_load(&row->used_bytes[device]);
    }
    if (memory->used > usable) memory->used = usable;
    return true;
}

NVML_EXPORT int nvmlDeviceGetMemoryInfo(const struct nvml_device *handle, uint64_t info[3]);
int nvmlDeviceGetMemoryInfo(const struct nvml_device *handle, uint64_t info[3]) {
    NVML_DEVICE(handle);
    struct memory memory;
    NVML_NEEDS(info != NULL);
    if (!memory_of(device, &memory)) return NVML_NOT_SUPPORTED;
    info[0] = memory.total;
    info[1] = memory.total - memory.reserved - memory.used;
    info[2] = memory.reserved + memory.used;
    return NVML_SUCCESS;
}

struct memory_v2 {
    unsigned version;
    uint64_t total, reserved, free, used;
};

NVML_EXPORT int nvmlDeviceGetMemoryInfo_v2(const struct nvml_device *handle, struct memory_v2 *info);
int nvmlDeviceGetMemoryInfo_v2(const struct nvml_device *handle, struct memory_v2 *info) {
    NVML_DEVICE(handle);
    struct memory memory;
    NVML_NEEDS(info != NULL);
    if (info->version != NVML_VERSION(sizeof *info, 2)) return NVML_VERSION_MISMATCH;
    if (!memory_of(device, &memory)) return NVML_NOT_SUPPORTED;
    info->total = memory.total;
    info->reserved = memory.reserved;
    info->free = memory.total - memory.reserved - memory.used;
    info->used = memory.used;
    return NVML_SUCCESS;
}

// --- processes --------------------------------------------------------------------------------------------------------------

// The first interface has the first two members only.
struct process {
    unsigned id;
    uint64_t used_bytes;
    unsigned gpu_instance, compute_instance;
};
enum { FIRST_BYTES = 16, LATER_BYTES = sizeof(struct process), NO_INSTANCE = -1 };

static int list_processes(const struct nvml_device *handle, unsigned *count, void *entries, size_t entry_bytes) {
    NVML_DEVICE(handle);
    NVML_NEEDS(count != NULL);
    const unsigned room = entries == NULL ? 0 : *count;
    unsigned found = 0;
    const struct vr_session_file *session = vr_session();
    for (size_t i = 0; session != NULL && i < VR_SESSION_PROCESSES; i++) {
        const struct vr_session_row *row = &session->rows[i];
        const uint64_t used = atomic_load(&row->used_bytes[device]);
        if (used == 0 || !vr_session_is_live(row)) continue;
        const struct process entry = {.id = (unsigned)atomic_load(&row->process),
                                      .used_bytes = used,
                                      .gpu_instance = (unsigned)NO_INSTANCE,
                                      .compute_instance = (unsigned)NO_INSTANCE};
        if (found < room) memcpy((char *)entries + found * entry_bytes, &entry, entry_bytes);
        found++;
    }
    *count = found;
    return found > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define PROCESSES(function, bytes)                                                                                                         \
    NVML_EXPORT int function(const struct nvml_device *handle, unsigned *count, void *entries);                                            \
    int function(const struct nvml_device *handle, unsigned *count, void *entries) {                                                       \
        return list_processes(handle, count, entries, (bytes));                                                                            \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses, FIRST_BYTES)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, LATER_BYTES)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, LATER_BYTES)

// Nobody draws, and nothing is shared by MPS.
#define NO_PROCESSES(function)                                                                                                             \
    NVML_EXPORT int function(const struct nvml_device *handle, unsigned *count, void *entries);                                            \
    int function(const struct nvml_device *handle, unsigned *count, void *entries) {                                                       \
        NVML_DEVICE(handle);                                                                                                               \
        (void)entries;                                                                                                                     \
        NVML_NEEDS(count != NULL);                                                                                                         \
        *count = 0;                                                                                                                        \
        return NVML_SUCCESS;                                                                                                               \
    }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

// No samples of how busy a process was were taken: NVIDIA's says so with "not found".
NVML_EXPORT int nvmlDeviceGetProcessUtilization(const struct nvml_device *handle, void *samples, unsigned *count, unsigned long long since);
int nvmlDeviceGetProcessUtilization(const struct nvml_device *handle, void *samples, unsigned *count, unsigned long long since) {
    NVML_DEVICE(handle);
    (void)samples, (void)since;
    NVML_NEEDS(count != NULL);
    *count = 0;
    return NVML_NOT_FOUND;
}
