// nvml_library.c: initialization, versions, errors, and device handles.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml.h"

struct nvml_device {
    char unused; // makes every handle's address distinct
};

struct vram_sim_options nvml_options;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned references; // calls of nvmlInit minus calls of nvmlShutdown
static struct nvml_device handles[VRAM_SIM_MOST_DEVICES];

// --- initialization -------------------------------------------------------------------------------------------------

// Returns the newest driver version in the tables, the default of libcuda.so.1, too.
static uint32_t newest_driver(void) {
    static const uint16_t versions[] = {
#define X(exported, base, first, last, result, parameters) last,
#include "../facts/cuda.def"
#include "vram/sim.h"
#undef X
    };
    uint32_t newest = 0;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        if (versions[i] > newest) newest = versions[i];
    return newest;
}

// Reads options only at initialization: a variable that a program sets for its children does not apply to itself.
static bool read_nvml_options(void) {
    const char *text = getenv("VRAM_SIM");
    struct vram_sim_options options = {.driver_version = newest_driver()};
    if (text != NULL && vr_sim_parse_into(text, &options, NULL) != VRAM_OK) return false;
    if (!vr_sim_options_complete(&options)) return false;
    nvml_options = options;
    return true;
}

NVML_EXPORT int nvmlInitWithFlags(unsigned flags);
int nvmlInitWithFlags(unsigned flags) {
    (void)flags; // say whether a machine without devices is an error; the simulator always has a device
    (void)pthread_mutex_lock(&lock);
    const bool good = references > 0 || read_nvml_options();
    references += good;
    (void)pthread_mutex_unlock(&lock);
    return good ? NVML_SUCCESS : NVML_DRIVER_NOT_LOADED;
}

NVML_EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
NVML_EXPORT int nvmlInit(void);
int nvmlInit(void) { return nvmlInitWithFlags(0); }

NVML_EXPORT int nvmlShutdown(void);
int nvmlShutdown(void) {
    (void)pthread_mutex_lock(&lock);
    const bool was_open = references > 0;
    references -= was_open;
    (void)pthread_mutex_unlock(&lock);
    return was_open ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

enum nvml_result nvml_ready(void) {
    (void)pthread_mutex_lock(&lock);
    const bool is_open = references > 0;
    (void)pthread_mutex_unlock(&lock);
    return is_open ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

enum nvml_result nvml_put(char *into, unsigned capacity, const char *text) {
    if (into == NULL) return NVML_INVALID_ARGUMENT;
    const size_t bytes = strlen(text) + 1;
    if (bytes > capacity) return NVML_INSUFFICIENT_SIZE;
    memcpy(into, text, bytes);
    return NVML_SUCCESS;
}

NVML_EXPORT const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result) {
    static const struct {
        int result;
        const char *text;
    } texts[] = {{NVML_SUCCESS, "Success"},
                 {NVML_UNINITIALIZED, "Uninitialized"},
                 {NVML_INVALID_ARGUMENT, "Invalid Argument"},
                 {NVML_NOT_SUPPORTED, "Not Supported"},
                 {NVML_NOT_FOUND, "Not Found"},
                 {NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
                 {NVML_DRIVER_NOT_LOADED, "Driver Not Loaded"},
                 {NVML_VERSION_MISMATCH, "Argument Version Mismatch"},
                 {NVML_DEPRECATED, "Deprecated"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].result == result) return texts[i].text;
    return "Unknown Error";
}

// --- versions ---------------------------------------------------------------------------------------------------------------

// Returns the driver version for a CUDA version: from NVIDIA's captures if there is one (12.8, 13.0, 13.2; devices.def), else the version
// released with that CUDA (release notes). It has three numbers, as programs expect.
static const char *driver_version(void) {
    static const struct {
        uint32_t cuda;
        const char *driver;
    } first[] = {{13020, "595.91.07"},  {13010, "590.44.01"}, {13000, "580.105.08"}, {12090, "575.51.03"},
                 {12080, "570.148.08"}, {12060, "560.28.03"}, {12050, "555.42.02"},  {12040, "550.54.14"},
                 {12030, "545.23.06"},  {12020, "535.54.03"}, {12010, "530.30.02"}};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (nvml_options.driver_version >= first[i].cuda) return first[i].driver;
    return "525.60.13";
}

unsigned nvml_driver_branch(void) { return (unsigned)strtoul(driver_version(), NULL, 10); }

NVML_EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    return (int)nvml_put(version, length, driver_version());
}

NVML_EXPORT int nvmlSystemGetNVMLVersion(char *version, unsigned length);
int nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    char text[24];
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    snprintf(text, sizeof text, "%u.%s", nvml_options.driver_version / 1000, driver_version());
    return (int)nvml_put(version, length, text);
}

// Confidential computing, which these devices do not have.
struct confidential_state {
    unsigned environment, feature, developer_tools;
};
NVML_EXPORT int nvmlSystemGetConfComputeState(struct confidential_state *state);
int nvmlSystemGetConfComputeState(struct confidential_state *state) {
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    NVML_NEEDS(state != NULL);
    *state = (struct confidential_state){0};
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    NVML_NEEDS(version != NULL);
    if (nvml_ready() != NVML_SUCCESS && !read_nvml_options()) return NVML_DRIVER_NOT_LOADED; // NVIDIA's NVML answers before nvmlInit, too
    *version = (int)nvml_options.driver_version;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlSystemGetCudaDriverVersion(int *version);
int nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

NVML_EXPORT int nvmlSystemGetProcessName(unsigned process, char *name, unsigned length);
int nvmlSystemGetProcessName(unsigned process, char *name, unsigned length) {
    char path[40], text[256] = "";
    NVML_NEEDS(name != NULL && length > 0);
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    snprintf(path, sizeof path, "/proc/%u/comm", process);
    FILE *file = fopen(path, "re");
    if (file == NULL) return NVML_NOT_FOUND;
    const bool read = fgets(text, sizeof text, file) != NULL;
    (void)fclose(file);
    if (!read) return NVML_NOT_FOUND;
    text[strcspn(text, "\n")] = '\0';
    if (strlen(text) >= length) text[length - 1] = '\0';
    return (int)nvml_put(name, length, text);
}

NVML_EXPORT int nvmlUnitGetCount(unsigned *count);
int nvmlUnitGetCount(unsigned *count) {
    NVML_NEEDS(count != NULL);
    *count = 0;
    return nvml_ready() == NVML_SUCCESS ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

// --- handles ----------------------------------------------------------------------------------------------------------------

const struct vr_sim_card *nvml_card_of(uint32_t device) { return vr_sim_options_card(&nvml_options, device); }

struct nvml_device *nvml_handle_of(uint32_t device) {
    return &handles[device];
}

enum nvml_result nvml_device_of(const struct nvml_device *handle, uint32_t *device) {
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    for (uint32_t i = 0; i < nvml_options.device_count; i++) {
        if (handle != &handles[i]) continue;
        *device = i;
        return NVML_SUCCESS;
    }
    return NVML_INVALID_ARGUMENT;
}

NVML_EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count) {
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    NVML_NEEDS(count != NULL);
    *count = nvml_options.device_count;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetCount(unsigned *count);
int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

NVML_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **handle);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **handle) {
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    NVML_NEEDS(handle != NULL && index < nvml_options.device_count);
    *handle = &handles[index];
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_device **handle);
int nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_device **handle) { return nvmlDeviceGetHandleByIndex_v2(index, handle); }

NVML_EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **handle);
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **handle) {
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    NVML_NEEDS(uuid != NULL && handle != NULL);
    for (uint32_t i = 0; i < nvml_options.device_count; i++) {
        char text[41];
        vr_sim_card_uuid_text(i, text);
        if (strcmp(text, uuid) != 0) continue;
        *handle = &handles[i];
        return NVML_SUCCESS;
    }
    return NVML_NOT_FOUND;
}

// Finds a device by `domain:bus:device.function` in hexadecimal; the domain and the function are optional.
NVML_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *text, struct nvml_device **handle);
int nvmlDeviceGetHandleByPciBusId_v2(const char *text, struct nvml_device **handle) {
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    NVML_NEEDS(text != NULL && handle != NULL);
    unsigned part[3] = {0, 0, 0};
    const int parts = sscanf(text, "%8x:%2x:%2x", &part[0], &part[1], &part[2]);
    if (parts == 2) {
        part[2] = part[1];
        part[1] = part[0];
        part[0] = 0;
    }
    NVML_NEEDS(parts >= 2);
    if (part[0] != 0 || part[2] != 0 || part[1] < VR_SIM_PCI_BUS(0) || part[1] >= (unsigned)VR_SIM_PCI_BUS(nvml_options.device_count))
        return NVML_NOT_FOUND;
    *handle = &handles[part[1] - VR_SIM_PCI_BUS(0)];
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetHandleByPciBusId(const char *text, struct nvml_device **handle);
int nvmlDeviceGetHandleByPciBusId(const char *text, struct nvml_device **handle) { return nvmlDeviceGetHandleByPciBusId_v2(text, handle); }

// Finds a device by its serial number, which is its index with leading zeros.
NVML_EXPORT int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **handle);
int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **handle) {
    if (nvml_ready() != NVML_SUCCESS) return NVML_UNINITIALIZED;
    NVML_NEEDS(serial != NULL && handle != NULL);
    char *end;
    const unsigned long device = strtoul(serial, &end, 10);
    if (strlen(serial) != 13 || *end != '\0' || device >= nvml_options.device_count) return NVML_NOT_FOUND;
    *handle = &handles[device];
    return NVML_SUCCESS;
}
