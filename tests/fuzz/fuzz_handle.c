// Reads any bytes as the handle of a shared block: gives a result, never a crash; an accepted handle keeps its promises.
#include <stddef.h>
#include <stdint.h>

#include "core/share/share.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vr_handle handle;
    const unsigned char *pages = NULL;
    struct vram_error error;
    // In an allocation of exact size, so that a sanitizer detects accesses beyond it.
    unsigned char *bytes = malloc(size + 1);
    if (bytes == NULL) return 0;
    if (size != 0) memcpy(bytes, data, size);
    const enum vram_status status = vr_handle_parse(bytes, size, &handle, &pages, &error);
    if (status != VRAM_OK && status != VRAM_BAD_INPUT) __builtin_trap();
    if (status == VRAM_OK) {
        if (handle.offset_bytes + handle.size_bytes > handle.extent_bytes || handle.size_bytes == 0) __builtin_trap();
        if ((pages == NULL) != (handle.pages == 0)) __builtin_trap();
        if (handle.extent_bytes != handle.pages * handle.page_bytes && handle.pages != 0) __builtin_trap();
        volatile uint64_t sum = 0;
        for (uint64_t i = 0; i < handle.pages; i++) sum = sum + vr_handle_page_at(pages, i).serial;
    }
    free(bytes);
    return 0;
}
