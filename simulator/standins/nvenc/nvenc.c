// The encoder's interface of cards that have no encoder (those of data centres for the most part): programs find the library, as beside
// every driver, and are told that the device is not supported when they ask for a session. Nothing is encoded.
#include <stddef.h>
#include <stdint.h>

#include "../common/missing.h"

enum status { SUCCESS = 0, UNSUPPORTED_DEVICE = 2, INVALID_POINTER = 6, INVALID_VERSION = 15 };

// Of the list of functions that a program gives to be filled: the places that have had a function since the interface's version 11.1, and
// the one that gives a text. What newer versions have behind them stays as it was.
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

// The version of a structure has the interface's major one in its low byte.
int NvEncodeAPICreateInstance(struct function_list *list) {
    if (list == NULL) return INVALID_POINTER;
    const uint32_t major = list->version & 0xff;
    if (major == 0 || major > MAX_MAJOR) return INVALID_VERSION;
    for (size_t i = 0; i < PLACES; i++)
        if (i != RESERVED)
            list->functions[i] = i == LAST_ERROR_STRING ? (void *)(uintptr_t)last_error_string : (void *)(uintptr_t)unsupported;
    return SUCCESS;
}
