// Memory of devices, and links between them.
#include <string.h>

#include "../common/session.h"
#include "nvml.h"

// ---- Memory of a device and its use by all processes of the session.

// Memory as NVML counts it: the total exceeds that of cuMemGetInfo by the driver's own memory.
struct memory {
    uint64_t total, reserved, used; // used: by processes
};

// Returns false if the device's memory is the host's, which NVML does not report.
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

// The first version of the structure has only the first two members.
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

// There are no graphics processes and no MPS.
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

// There are no utilization samples; NVIDIA's NVML reports that as "not found".
NVML_EXPORT int nvmlDeviceGetProcessUtilization(const struct nvml_device *handle, void *samples, unsigned *count, unsigned long long since);
int nvmlDeviceGetProcessUtilization(const struct nvml_device *handle, void *samples, unsigned *count, unsigned long long since) {
    NVML_DEVICE(handle);
    (void)samples, (void)since;
    NVML_NEEDS(count != NULL);
    *count = 0;
    return NVML_NOT_FOUND;
}

// ---- Links between devices: NVLinks and peers. A card's links (boards.def) are active if another device of the machine is its peer. They
// lead to a switch since A100; older cards' links lead to the other cards in turn.

enum { GPU = 0, SWITCH = 2 }; // nvmlIntNvLinkDeviceType_t
enum { SWITCH_BUS = 0xe0, SWITCH_OF_A100 = 0x1af1, SWITCH_OF_H100 = 0x22a3 };

static unsigned links_of(uint32_t device) { return vr_sim_board_of(nvml_card_of(device))->links; }

// Gets peer `number` of a device, from 0. Returns false past the last one.
static bool peer_at(uint32_t device, uint32_t number, uint32_t *peer) {
    for (uint32_t i = 0; i < nvml_options.device_count; i++) {
        if (!vr_sim_options_peers(&nvml_options, device, i)) continue;
        *peer = i;
        if (number-- == 0) return true;
    }
    return false;
}

static uint32_t count_peers(uint32_t device) {
    uint32_t count = 0, peer;
    while (peer_at(device, count, &peer)) count++;
    return count;
}

// Returns SUCCESS if the card has this link. *up: it is active.
static enum nvml_result link_of(uint32_t device, unsigned link, bool *up) {
    if (links_of(device) == 0) return NVML_NOT_SUPPORTED;
    if (link >= links_of(device)) return NVML_INVALID_ARGUMENT;
    *up = count_peers(device) > 0;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetNvLinkState(const struct nvml_device *handle, unsigned link, int *active);
int nvmlDeviceGetNvLinkState(const struct nvml_device *handle, unsigned link, int *active) {
    bool up;
    NVML_DEVICE(handle);
    NVML_NEEDS(active != NULL);
    const enum nvml_result result = link_of(device, link, &up);
    if (result == NVML_SUCCESS) *active = up;
    return (int)result;
}

// nvmlNvlinkVersion_t: 2.0 for V100, 3.0 for A100, 4.0 for H100, 5.0 for B200.
NVML_EXPORT int nvmlDeviceGetNvLinkVersion(const struct nvml_device *handle, unsigned link, unsigned *version);
int nvmlDeviceGetNvLinkVersion(const struct nvml_device *handle, unsigned link, unsigned *version) {
    enum { TWO = 2, THREE = 4, FOUR = 6, FIVE = 7 };
    bool up;
    NVML_DEVICE(handle);
    NVML_NEEDS(version != NULL);
    const enum nvml_result result = link_of(device, link, &up);
    const int major = nvml_card_of(device)->major;
    if (result == NVML_SUCCESS) *version = major >= 10 ? FIVE : major == 9 ? FOUR : major == 8 ? THREE : TWO;
    return (int)result;
}

// Access to peer and host memory, atomics on both, display bridge, and validity of the answer.
NVML_EXPORT int nvmlDeviceGetNvLinkCapability(const struct nvml_device *handle, unsigned link, int capability, unsigned *can);
int nvmlDeviceGetNvLinkCapability(const struct nvml_device *handle, unsigned link, int capability, unsigned *can) {
    enum { PEERS, HOST, PEER_ATOMICS, HOST_ATOMICS, DISPLAY_BRIDGE, VALID, CAPABILITIES };
    bool up;
    NVML_DEVICE(handle);
    NVML_NEEDS(can != NULL && capability >= 0 && capability < CAPABILITIES);
    const enum nvml_result result = link_of(device, link, &up);
    if (result == NVML_SUCCESS) *can = up && capability != DISPLAY_BRIDGE;
    return (int)result;
}

NVML_EXPORT int nvmlDeviceGetNvLinkErrorCounter(const struct nvml_device *handle, unsigned link, int counter, unsigned long long *count);
int nvmlDeviceGetNvLinkErrorCounter(const struct nvml_device *handle, unsigned link, int counter, unsigned long long *count) {
    enum { COUNTERS = 5 };
    bool up;
    NVML_DEVICE(handle);
    NVML_NEEDS(count != NULL && counter >= 0 && counter < COUNTERS);
    const enum nvml_result result = link_of(device, link, &up);
    if (result == NVML_SUCCESS) *count = 0;
    return (int)result;
}

// --- remote devices -------------------------------------------------------------------------------------------------

static bool has_switch(uint32_t device) { return nvml_card_of(device)->major >= 8; }

// Gets the device at the other end of a link. Fails for an inactive link.
static enum nvml_result far_end(uint32_t device, unsigned link, int *kind, struct nvml_pci_info *info) {
    bool up;
    uint32_t peer;
    const enum nvml_result result = link_of(device, link, &up);
    if (result != NVML_SUCCESS) return result;
    if (!up || !peer_at(device, link % count_peers(device), &peer)) return NVML_NOT_SUPPORTED;
    *kind = has_switch(device) ? SWITCH : GPU;
    if (has_switch(device))
        nvml_put_pci(info, SWITCH_BUS, nvml_card_of(device)->major == 8 ? SWITCH_OF_A100 : SWITCH_OF_H100);
    else
        nvml_put_pci(info, (unsigned)VR_SIM_PCI_BUS(peer), nvml_card_of(peer)->pci_device);
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(const struct nvml_device *handle, unsigned link, int *kind);
int nvmlDeviceGetNvLinkRemoteDeviceType(const struct nvml_device *handle, unsigned link, int *kind) {
    struct nvml_pci_info info;
    NVML_DEVICE(handle);
    NVML_NEEDS(kind != NULL);
    return (int)far_end(device, link, kind, &info);
}

NVML_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(const struct nvml_device *handle, unsigned link, struct nvml_pci_info *info);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(const struct nvml_device *handle, unsigned link, struct nvml_pci_info *info) {
    int kind;
    NVML_DEVICE(handle);
    NVML_NEEDS(info != NULL);
    return (int)far_end(device, link, &kind, info);
}

// --- pairs of devices -----------------------------------------------------------------------------------------------

// Reads and writes follow the driver's peer access; links, and atomics over them, also need NVLinks.
NVML_EXPORT int nvmlDeviceGetP2PStatus(const struct nvml_device *handle, const struct nvml_device *other, int what, int *status);
int nvmlDeviceGetP2PStatus(const struct nvml_device *handle, const struct nvml_device *other, int what, int *status) {
    enum { READ, WRITE, LINK, ATOMICS, BUS, COUNT };
    enum { CAN = 0, CANNOT = 5 };
    NVML_DEVICE(handle);
    uint32_t peer;
    NVML_NEEDS(status != NULL && what >= 0 && what < COUNT && nvml_device_of(other, &peer) == NVML_SUCCESS);
    const bool by_link = what == LINK || what == ATOMICS;
    *status = vr_sim_options_peers(&nvml_options, device, peer) && (!by_link || links_of(device) > 0) ? CAN : CANNOT;
    return NVML_SUCCESS;
}

// --- fields ---------------------------------------------------------------------------------------------------------

// A field by number: a counter or a property of links. Each entry has its own result; only the number of links is supported.
struct field_value {
    unsigned field, scope;
    long long at_us, took_us;
    int type, result;
    unsigned long long value;
};
NVML_EXPORT int nvmlDeviceGetFieldValues(const struct nvml_device *handle, int count, struct field_value *values);
int nvmlDeviceGetFieldValues(const struct nvml_device *handle, int count, struct field_value *values) {
    enum { LINK_COUNT = 91, UNSIGNED_INT = 1 };
    NVML_DEVICE(handle);
    NVML_NEEDS(count > 0 && values != NULL);
    for (int i = 0; i < count; i++) {
        values[i].result = values[i].field == LINK_COUNT && links_of(device) > 0 ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
        if (values[i].result != NVML_SUCCESS) continue;
        values[i].type = UNSIGNED_INT;
        values[i].value = links_of(device);
    }
    return NVML_SUCCESS;
}
