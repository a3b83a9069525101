// fake_nvml.c: a libnvidia-ml.so.1 that returns what the environment variable FAKE_NVML says, in words separated by spaces:
//   PID:BYTES       a compute process; PID "self" is the calling process, BYTES "-" is "not available"
//   draws:PID:BYTES a graphics process
//   fails           the list of processes is "not supported"
//   no-init         it does not start
//   stranger        it finds the device by no UUID, only by the bus id 0000:65:00.0
//   nowhere         it finds no device
//   wide            entries have 32 bytes, as in some drivers of the 535 series
//   old             functions newer than the first interface return "function not found"
// FIRST_INTERFACE_ONLY: newer functions do not exist.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, NOT_LOADED = 9, NO_FUNCTION = 13 };

static int has(const char *word) {
    const char *text = getenv("FAKE_NVML");
    const size_t length = strlen(word);
    for (const char *at = text == NULL ? NULL : strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return 1;
    return 0;
}

static int open_count;
EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void) {
    if (has("no-init")) return NOT_LOADED;
    open_count++;
    return OK;
}
EXPORT int nvmlShutdown(void);
int nvmlShutdown(void) { return open_count-- > 0 ? OK : 1; }
EXPORT const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result) {
    switch (result) {
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case NOT_LOADED: return "Driver Not Loaded";
    default: return "Unknown Error";
    }
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    // The first device of fake_cuda.c, the simulated driver's first device, and a MIG partition.
    static const char *const known[] = {"GPU-11111111-1111-1111-1111-111111111111", "GPU-7672616d-2073-696d-756c-617465642000",
                                        "MIG-22222222-2222-2222-2222-222222222222"};
    for (size_t i = 0; i < sizeof known / sizeof known[0] && !has("stranger") && !has("nowhere"); i++) {
        if (strcmp(uuid, known[i]) != 0) continue;
        *device = &open_count;
        return OK;
    }
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device) {
    if (has("nowhere") || strcmp(bus_id, "0000:65:00.0") != 0) return NOT_FOUND;
    *device = &open_count;
    return OK;
}

// Writes the words of one list into entries of `stride` bytes.
static int list(int draws, size_t stride, unsigned *count, unsigned char *entries) {
    const char *text = getenv("FAKE_NVML");
    unsigned there = 0;
    char word[64];
    if (has("fails")) return NOT_SUPPORTED;
    for (int length = 0; text != NULL && sscanf(text, " %63s%n", word, &length) == 1; text += length) {
        const char *at = strncmp(word, "draws:", 6) == 0 ? word + 6 : word;
        const char *colon = strchr(at, ':');
        if (colon == NULL || (at != word) != draws) continue;
        const uint32_t id = strncmp(at, "self:", 5) == 0 ? (uint32_t)getpid() : (uint32_t)strtoul(at, NULL, 10);
        const uint64_t bytes = colon[1] == '-' ? UINT64_MAX : strtoull(colon + 1, NULL, 10);
        if (there < *count) {
            memset(entries + there * stride, 0, stride);
            memcpy(entries + there * stride, &id, sizeof id);
            memcpy(entries + there * stride + 8, &bytes, sizeof bytes);
        }
        there++;
    }
    const int result = there > *count ? TOO_SMALL : OK;
    *count = there;
    return result;
}

#define LIST(name, draws, stride)                                                                                                          \
    EXPORT int name(void *device, unsigned *count, void *entries);                                                                         \
    int name(void *device, unsigned *count, void *entries) {                                                                               \
        return device == &open_count && open_count > 0 ? list(draws, stride, count, entries) : 1;                                          \
    }
LIST(nvmlDeviceGetComputeRunningProcesses, 0, 16)
LIST(nvmlDeviceGetGraphicsRunningProcesses, 1, 16)
#ifndef FIRST_INTERFACE_ONLY
#define NEWER(name, draws)                                                                                                                 \
    EXPORT int name(void *device, unsigned *count, void *entries);                                                                         \
    int name(void *device, unsigned *count, void *entries) {                                                                               \
        if (has("old")) return NO_FUNCTION;                                                                                                \
        return device == &open_count && open_count > 0 ? list(draws, has("wide") ? 32 : 24, count, entries) : 1;                           \
    }
NEWER(nvmlDeviceGetComputeRunningProcesses_v3, 0)
NEWER(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
#endif
