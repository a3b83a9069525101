// NVENC for cards without an encoder (most data centre cards): programs find the library, as with every driver, but opening a session
// returns that the device is not supported. Nothing is encoded.
#include <stddef.h>
#include <stdint.h>

#include "../common/missing.h"

enum status { SUCCESS = 0, UNSUPPORTED_DEVICE = 2, INVALID_POINTER = 6, INVALID_VERSION = 15 };

// Members of the function list that the program passes in: those that have been functions since API version 11.1, and the one that returns
// a text. Members that newer versions added after them are not changed.
enum { PLACES = 41, RESERVED = 33, LAST_ERROR_STRING = 37 };
enum { MAX_MAJOR = 13, MAX_MINOR = 0 };

struct function_list {
    uint32_t version, reserved;
    void *functions[PLACES];
};

int NvEncodeAPIGetMaxSupportedVersion(uint32_t *version);
int NvEncodeAPICreateInstance(struct function_list *list);

static int unsupported(void) {
    vr_missing_count("libnvidia-encode", "a session of the encoder", __builtin_return_address(0));
    return UNSUPPORTED_DEVICE;
}

static const char *last_error_string(void *encoder) {
    (void)encoder;
    return "no encoder is simulated";
}

int NvEncodeAPIGetMaxSupportedVersion(uint32_t *version) {
    if (version == NULL) return INVALID_POINTER;
    *version = MAX_MAJOR << 4 | MAX_MINOR;
    return SUCCESS;
}

// The low byte of a structure's version is the API's major version.
int NvEncodeAPICreateInstance(struct function_list *list) {
    if (list == NULL) return INVALID_POINTER;
    const uint32_t major = list->version & 0xff;
    if (major == 0 || major > MAX_MAJOR) return INVALID_VERSION;
    for (size_t i = 0; i < PLACES; i++)
        if (i != RESERVED)
            list->functions[i] = i == LAST_ERROR_STRING ? (void *)(uintptr_t)last_error_string : (void *)(uintptr_t)unsupported;
    return SUCCESS;
}
