// nvml.h: the functions used of NVIDIA's management library, found at run time.
#ifndef VR_LIVE_NVML_H
#define VR_LIVE_NVML_H

#include "base/base.h"

enum { VR_NVML_OK = 0, VR_NVML_INSUFFICIENT_SIZE = 7, VR_NVML_FUNCTION_NOT_FOUND = 13 };

// X(member, result, parameters). Each is the first of its symbols in nvml.c that exists.
#define VR_NVML_CALLS(X)                                                                                                                   \
    X(init, int, (void))                                                                                                                   \
    X(shutdown, int, (void))                                                                                                               \
    X(error_text, const char *, (int result))                                                                                              \
    X(by_uuid, int, (const char *uuid, void **device))                                                                                     \
    X(by_bus_id, int, (const char *bus_id, void **device))

// Lists processes: *count is the capacity on entry and the number of processes on return.
typedef int vr_nvml_list(void *device, unsigned *count, void *entries);

enum { VR_NVML_LISTS = 3, VR_NVML_VERSIONS = 3 };

struct vr_nvml {
    void *library;
#define VR_NVML_MEMBER(member, result, parameters) result(*member) parameters;
    VR_NVML_CALLS(VR_NVML_MEMBER)
#undef VR_NVML_MEMBER
    vr_nvml_list
        *lists[VR_NVML_LISTS][VR_NVML_VERSIONS]; // computing, drawing, under the multi-process service; newest version first; may be NULL
};

// Returns NVML's text for a result. Never NULL.
VR_INLINE const char *vr_nvml_text(const struct vr_nvml *nvml, int result) {
    const char *text = nvml->error_text(result);
    return text == NULL ? "no reason given" : text;
}

// Loads and initializes the library. UNSUPPORTED with a message.
enum vram_status vr_nvml_open(struct vr_nvml *nvml, struct vram_error *error);
void vr_nvml_close(struct vr_nvml *nvml);

// A process, independent of the interface's version.
struct vr_nvml_process {
    uint64_t id, bytes; // bytes: VRAM_NOT_KNOWN if unavailable
};
// Lists processes. *count is their number; the first `capacity` are in the array. *result is NVML's result of the last try, or
// VR_NVML_FUNCTION_NOT_FOUND if the library lacks this list.
enum vram_status vr_nvml_processes(const struct vr_nvml *nvml, unsigned list, void *device, struct vr_nvml_process *processes,
                                   size_t capacity, size_t *count, int *result);

#endif
