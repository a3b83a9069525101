#include "live/nvml.h"

#include "os/os.h"
#include "vram/oom.h"

// An entry is a 32-bit number (padded) and a 64-bit one. In the first interface that is all; in later ones two instance numbers follow.
// Some drivers of the 535 series add another 64-bit number under the same function name; how far the library writes shows the entry's size.
enum { FIRST_BYTES = 16, LATER_BYTES = 24, WIDE_BYTES = 32, MOST_ENTRIES = 1024, UNTOUCHED = 0xa5 };

static void find_symbol(void *library, const char *const *names, void *target) {
    void *found = NULL;
    for (; *names != NULL && found == NULL; names++) found = vr_os_dlsym(library, *names);
    memcpy(target, &found, sizeof found);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void find_lists(struct vr_nvml *nvml) {
    static const char *const names[VR_NVML_LISTS][VR_NVML_VERSIONS] = {
        {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses"},
        {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses"},
        {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2",
         "nvmlDeviceGetMPSComputeRunningProcesses"}};
    for (size_t list = 0; list < VR_NVML_LISTS; list++)
        for (size_t version = 0; version < VR_NVML_VERSIONS; version++)
            find_symbol(nvml->library, NAMES(names[list][version]), &nvml->lists[list][version]);
}

static enum vram_status start_nvml(struct vr_nvml *nvml, const char *path, struct vram_error *error) {
    find_symbol(nvml->library, NAMES("nvmlInit_v2", "nvmlInit"), &nvml->init);
    find_symbol(nvml->library, NAMES("nvmlShutdown"), &nvml->shutdown);
    find_symbol(nvml->library, NAMES("nvmlErrorString"), &nvml->error_text);
    find_symbol(nvml->library, NAMES("nvmlDeviceGetHandleByUUID"), &nvml->by_uuid);
    find_symbol(nvml->library, NAMES("nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"), &nvml->by_bus_id);
    find_lists(nvml);
    if (nvml->init == NULL || nvml->shutdown == NULL || nvml->error_text == NULL)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "%s is not NVIDIA's management library", path);
    const int result = nvml->init();
    if (result == VR_NVML_OK) return VRAM_OK;
    return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "cannot initialize NVML: %s", vr_nvml_text(nvml, result));
}

enum vram_status vr_nvml_open(struct vr_nvml *nvml, struct vram_error *error) {
    const char *path = vr_os_getenv("VRAM_NVML"), *reason = "";
    if (path == NULL || path[0] == '\0') path = "libnvidia-ml.so.1";
    *nvml = (struct vr_nvml){.library = vr_os_dlopen(path, &reason)};
    if (nvml->library == NULL) return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "NVML is not available: %s", reason);
    const enum vram_status status = start_nvml(nvml, path, error);
    if (status != VRAM_OK) vr_os_dlclose(nvml->library);
    return status;
}

void vr_nvml_close(struct vr_nvml *nvml) {
    (void)nvml->shutdown();
    vr_os_dlclose(nvml->library);
}

// Returns the size of an entry, from the bytes written after `count` entries of the smaller size.
static size_t entry_bytes(const unsigned char *bytes, size_t count, unsigned version) {
    if (version + 1 == VR_NVML_VERSIONS) return FIRST_BYTES;
    for (size_t at = count * LATER_BYTES; at < count * WIDE_BYTES; at++)
        if (bytes[at] != UNTOUCHED) return WIDE_BYTES;
    return LATER_BYTES;
}

static void take_processes(const unsigned char *bytes, size_t stride, size_t count, struct vr_nvml_process *processes) {
    for (size_t i = 0; i < count; i++) {
        uint32_t id;
        memcpy(&id, bytes + i * stride, sizeof id);
        processes[i].id = id;
        memcpy(&processes[i].bytes, bytes + i * stride + 8,
               sizeof processes[i].bytes); // NVML's "not available" has all bits set, like VRAM_NOT_KNOWN
    }
}

enum vram_status vr_nvml_processes(const struct vr_nvml *nvml, unsigned list, void *device, struct vr_nvml_process *processes,
                                   size_t capacity, size_t *count, int *result) {
    unsigned char *bytes = malloc((size_t)MOST_ENTRIES * WIDE_BYTES);
    if (bytes == NULL) return VRAM_NO_HOST_MEMORY;
    *count = 0;
    *result = VR_NVML_FUNCTION_NOT_FOUND;
    for (unsigned version = 0; version < VR_NVML_VERSIONS && *result == VR_NVML_FUNCTION_NOT_FOUND; version++) {
        if (nvml->lists[list][version] == NULL) continue;
        unsigned there = MOST_ENTRIES;
        memset(bytes, UNTOUCHED, (size_t)MOST_ENTRIES * WIDE_BYTES);
        *result = nvml->lists[list][version](device, &there, bytes);
        if (*result == VR_NVML_INSUFFICIENT_SIZE) *count = there; // nothing was written
        if (*result != VR_NVML_OK || there > MOST_ENTRIES) continue;
        *count = there;
        take_processes(bytes, entry_bytes(bytes, there, version), there < capacity ? there : capacity, processes);
    }
    free(bytes);
    return VRAM_OK;
}
