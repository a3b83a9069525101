#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"

static const struct {
    const char *name;
    const char *sentence;
} statuses[] = {
#define STATUS_ROW(name, sentence) {"VRAM_" #name, sentence},
    VRAM_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

const char *vram_status_name(enum vram_status status) {
    return (size_t)status < VR_COUNT_OF(statuses) ? statuses[status].name : "VRAM_UNKNOWN";
}

const char *vram_status_text(enum vram_status status) {
    return (size_t)status < VR_COUNT_OF(statuses) ? statuses[status].sentence : "unknown status";
}

enum vram_status vr_fail(struct vram_error *error, enum vram_status status, uint64_t offset, const char *format, ...) {
    if (error == NULL) return status;
    error->status = status;
    error->driver_result = 0;
    error->offset = offset;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}

enum vram_status vr_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes) {
    if (needed <= *capacity) return VRAM_OK;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < needed) {
        if (wanted > SIZE_MAX / 2) return VRAM_NO_HOST_MEMORY;
        wanted *= 2;
    }
    if (item_bytes != 0 && wanted > SIZE_MAX / item_bytes) return VRAM_NO_HOST_MEMORY;
    void *grown = realloc(*items, wanted * item_bytes);
    if (grown == NULL) return VRAM_NO_HOST_MEMORY;
    *items = grown;
    *capacity = wanted;
    return VRAM_OK;
}

int vr_order_u64(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return VR_ORDER(x[0], y[0]);
}

int vr_order_u64_pair(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return x[0] != y[0] ? VR_ORDER(x[0], y[0]) : VR_ORDER(x[1], y[1]);
}

void vr_error_clear(struct vram_error *error) {
    if (error != NULL) *error = (struct vram_error){.offset = VRAM_NO_OFFSET};
}

enum vram_status vr_error_complete(struct vram_error *error, enum vram_status status) {
    if (status == VRAM_OK || error == NULL || error->status == status) return status;
    return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
}
