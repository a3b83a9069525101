// CUPTI: traces contain no records; hardware counters are not simulated.
#define _GNU_SOURCE
#include <time.h>

#include "../common/calls.h"

enum { INVALID_PARAMETER = 1, MAX_LIMIT_REACHED = 12, NOT_INITIALIZED = 15, QUEUE_EMPTY = 18, NOT_SUPPORTED = 27, UNKNOWN = 999 };

#define SUBSCRIBER UINT64_C(0x6375707469000001)

static const struct standin_codes codes = {SUBSCRIBER, NOT_INITIALIZED, INVALID_PARAMETER, UNKNOWN, UNKNOWN, NOT_SUPPORTED};

int cuptiGetVersion(uint32_t *version) {
    if (version == NULL) return INVALID_PARAMETER;
    *version = (uint32_t)standin_library_version;
    return 0;
}

int cuptiSubscribe(void **subscriber, void *callback, void *data) {
    void *made = subscriber == NULL ? NULL : standin_new(SUBSCRIBER, sizeof(struct standin_object));
    if (made == NULL) return subscriber == NULL ? INVALID_PARAMETER : UNKNOWN;
    *subscriber = made;
    return 0;
}

int cuptiSubscribe_v2(void **subscriber, void *callback, void *data, void *parameters) {
    return cuptiSubscribe(subscriber, callback, data);
}
int cuptiUnsubscribe(void *subscriber) { return standin_destroy(subscriber, SUBSCRIBER) ? 0 : INVALID_PARAMETER; }

// Buffers contain no records.
int cuptiActivityGetNextRecord(const uint8_t *buffer, size_t bytes, void **record) {
    if (record == NULL) return INVALID_PARAMETER;
    *record = NULL;
    return MAX_LIMIT_REACHED;
}

int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last) {
    PUT(last, 0);
    return 0;
}

int cuptiGetTimestamp(uint64_t *nanoseconds) {
    struct timespec now;
    if (nanoseconds == NULL || clock_gettime(CLOCK_REALTIME, &now) != 0) return INVALID_PARAMETER;
    *nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return 0;
}

static const char *result_text(int result) {
    switch (result) {
    case 0: return "CUPTI_SUCCESS";
    case INVALID_PARAMETER: return "CUPTI_ERROR_INVALID_PARAMETER";
    case MAX_LIMIT_REACHED: return "CUPTI_ERROR_MAX_LIMIT_REACHED";
    case NOT_INITIALIZED: return "CUPTI_ERROR_NOT_INITIALIZED";
    case QUEUE_EMPTY: return "CUPTI_ERROR_QUEUE_EMPTY";
    case NOT_SUPPORTED: return "CUPTI_ERROR_NOT_SUPPORTED";
    default: return "CUPTI_ERROR_UNKNOWN";
    }
}

int cuptiGetResultString(int result, const char **text) {
    if (text == NULL) return INVALID_PARAMETER;
    *text = result_text(result);
    return 0;
}

int cuptiGetErrorMessage(int result, const char **text) { return cuptiGetResultString(result, text); }

int cuptiGetCallbackName(int domain, uint32_t number, const char **name) {
    if (name == NULL) return INVALID_PARAMETER;
    *name = "unknown";
    return 0;
}

int cuptiGetDeviceId(void *context, uint32_t *device) {
    const struct standin_driver *driver = standin_begin();
    int number = 0;
    if (device == NULL || driver == NULL || driver->ctx_get_device(&number) != 0) return INVALID_PARAMETER;
    *device = (uint32_t)number;
    return 0;
}

#include "cupti_calls.def"
