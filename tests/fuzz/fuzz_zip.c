// Reads any bytes as a ZIP archive: the names and bytes of its files are the same in large and small steps, no file exceeds its listed
// size, and one with a correct checksum is complete.
#include <stdint.h>
#include <stdlib.h>

#include "../../cli/zip.h"
#include "base/text.h"

enum { MOST_BYTES = 1 << 20, MOST_FILES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct archive {
    const uint8_t *data;
    size_t size;
};

static size_t read_at(void *context, uint64_t offset, void *buffer, size_t count) {
    const struct archive *archive = context;
    if (offset >= archive->size) return 0;
    const size_t left = archive->size - (size_t)offset, got = left < count ? left : count;
    if (got != 0) memcpy(buffer, archive->data + offset, got);
    return got;
}

static void take_file(struct zip *zip, const struct zip_file *file, size_t step, struct vr_text *out) {
    char bytes[4096];
    uint64_t sum = 0;
    const size_t before = out->length;
    if (!zip_begin(zip, file)) return;
    for (size_t count = step; count == step && sum < MOST_BYTES;) {
        count = zip_read(zip, bytes, step);
        if (count == SIZE_MAX) break;
        vr_text_append(out, bytes, count);
        sum += count;
    }
    if (sum > file->bytes) __builtin_trap();
    if (zip->error == NULL && sum < MOST_BYTES && sum != file->bytes) __builtin_trap();
    if (zip->error != NULL) out->length = before; // how far zlib gets in damaged data depends on its buffer
}

static void take_out(const uint8_t *data, size_t size, size_t step, struct vr_text *out) {
    struct archive archive = {data, size};
    struct zip *zip = calloc(1, sizeof *zip);
    if (zip == NULL) return;
    *zip = (struct zip){.read_at = read_at, .context = &archive, .archive_bytes = size};
    const bool opened = zip_open(zip);
    for (size_t i = 0; opened && i < zip->count && i < MOST_FILES; i++) {
        vr_text_puts(out, zip->files[i].name);
        zip->error = NULL;
        take_file(zip, &zip->files[i], step, out);
    }
    zip_close(zip);
    free(zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vr_text large = {0}, small = {0};
    (void)zip_begins(data, size);
    take_out(data, size, 4096, &large);
    take_out(data, size, 64, &small);
    if (large.length != small.length || (large.length != 0 && memcmp(large.bytes, small.bytes, large.length) != 0)) __builtin_trap();
    vr_text_release(&large);
    vr_text_release(&small);
    return 0;
}
