// Reads any bytes as a page of `vram view`: the names and bytes of its recordings are the same whether the text comes at once or in small
// pieces, and the output never exceeds what the text can contain.
#include <stdint.h>
#include <stdlib.h>

#include "../../cli/embedded.h"
#include "base/text.h"
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_whole(void *context, void *buffer, size_t capacity) {
    struct pieces *pieces = context;
    const size_t count = pieces->left < capacity ? pieces->left : capacity;
    if (count != 0) memcpy(buffer, pieces->data, count);
    *pieces = (struct pieces){(const char *)pieces->data + count, pieces->left - count};
    return count;
}

// Collects everything in a page, in order.
static void take_out(const uint8_t *data, size_t size, size_t (*read)(void *, void *, size_t), size_t step, struct vr_text *out) {
    struct pieces pieces = {data, size};
    struct embedded *page = calloc(1, sizeof *page);
    char name[EMBEDDED_NAME], bytes[4096];
    if (page == NULL) return;
    *page = (struct embedded){.read = read, .context = &pieces};
    while (embedded_next(page, name)) {
        vr_text_append(out, name, strlen(name) + 1);
        for (size_t count = step; count == step;) {
            count = embedded_read(page, bytes, step);
            if (count != SIZE_MAX) vr_text_append(out, bytes, count);
        }
    }
    vr_text_puts(out, page->error == NULL ? "" : page->error);
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vr_text whole = {0}, pieced = {0};
    (void)embedded_is_page((const char *)data, size);
    take_out(data, size, read_whole, 4096, &whole);
    take_out(data, size, pieces_read, 5, &pieced);
    if (whole.length != pieced.length || (whole.length != 0 && memcmp(whole.bytes, pieced.bytes, whole.length) != 0)) __builtin_trap();
    if (whole.length > size + 100) __builtin_trap();
    vr_text_release(&whole);
    vr_text_release(&pieced);
    return 0;
}
