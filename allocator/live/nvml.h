// nvml.h: the few functions of NVIDIA's management library that are called, found at run time.
#ifndef VR_LIVE_NVML_H
#define VR_LIVE_NVML_H

#include "base/base.h"

enum { VR_NVML_OK = 0, VR_NVML_INSUFFICIENT_SIZE = 7, VR_NVML_FUNCTION_NOT_FOUND = 13 };

// X(member, result, parameters). The first of the symbols in nvml.c that is there.
#define VR_NVML_CALLS(X)                                                                                                                   \
    X(init, int, (void))                                                                                                                   \
    X(shutdown, int, (void))                                                                                                               \
    X(error_text, const char *, (int result))                                                                                              \
    X(by_uuid, int, (const char *uuid, void **device))                                                                                     \
    X(by_bus_id, int, (const char *bus_id, void **device))

// A call that lists processes: so many entries as *count had, which becomes the number there is.
typedef int vr_nvml_list(void *device, unsigned *count, void *entries);

enum { VR_NVML_LISTS = 3, VR_NVML_VERSIONS = 3 };

struct vr_nvml {
    void *library;
#define VR_NVML_MEMBER(member, result, parameters) result(*member) parameters;
    VR_NVML_CALLS(VR_NVML_MEMBER)
#undef VR_NVML_MEMBER
    vr_nvml_list *lists[VR_NVML_LISTS][VR_NVML_VERSIONS]; // computing, drawing, under the multi-process service; newest first; may be NULL
};

// What NVML says of a result; never NULL.
VR_INLINE const char *vr_nvml_text(const struct vr_nvml *nvml, int result) {
    const char *text = nvml->error_text(result);
    return text == NULL ? "it says no reason" : text;
}

// Loads the library and starts it. UNSUPPORTED with a sentence.
enum vram_status vr_nvml_open(struct vr_nvml *nvml, struct vram_error *error);
void vr_nvml_close(struct vr_nvml *nvml);

// A process as all interfaces tell it.
struct vr_nvml_process {
    uint64_t id, bytes; // bytes: VRAM_NOT_KNOWN where it is not told
};
// The processes of one list. *count: how many there are, of which the first `capacity` are in the array. *result: NVML's result of the last
// try; VR_NVML_FUNCTION_NOT_FOUND when the library has no such list.
enum vram_status vr_nvml_processes(const struct vr_nvml *nvml, unsigned list, void *device, struct vr_nvml_process *processes,
                                   size_t capacity, size_t *count, int *result);

#endif
