#include "live/file.h"

#include <errno.h>

#include "os/os.h"
#include "vram/history.h"

static enum vram_status fail_file(const struct vr_file *file, const char *what, struct vram_error *error) {
    return vr_fail(error, VRAM_IO, VRAM_NO_OFFSET, "%s: %s: %s", file->path, what, strerror(errno));
}

enum vram_status vr_file_open(struct vr_file *file, const char *pattern, struct vram_error *error) {
    size_t length = 0;
    const enum vram_status status = vram_expand_path(pattern, file->path, sizeof file->path, &length);
    if (status != VRAM_OK || length >= sizeof file->path) {
        return vr_fail(error, status == VRAM_OK ? VRAM_INVALID_ARGUMENT : status, VRAM_NO_OFFSET, "invalid file name \"%s\": %s", pattern,
                       status == VRAM_OK ? "it is too long" : "% must be followed by p, r, h, t or %");
    }
    file->partial[0] = '\0';
    const enum vram_status device = vr_os_stream_open(file->path, &file->stream);
    if (device == VRAM_UNSUPPORTED) {
        // Several threads may write under one name: the last one's complete file remains.
        if (vr_os_file_create_temporary(file->path, file->partial, sizeof file->partial, &file->stream) == VRAM_OK) return VRAM_OK;
    }
    return device != VRAM_OK ? fail_file(file, "cannot be written", error) : VRAM_OK;
}

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

enum vram_recording_format vr_file_format(const struct vr_file *file) {
    return ends_with(file->path, ".json") ? VRAM_FORMAT_JSON : ends_with(file->path, ".vram") ? VRAM_FORMAT_VRAM : VRAM_FORMAT_PICKLE;
}

bool vr_file_write(void *user, const char *bytes, size_t length) {
    struct vr_file *file = user;
    return fwrite(bytes, 1, length, file->stream) == length;
}

enum vram_status vr_file_close(struct vr_file *file, enum vram_status status, struct vram_error *error) {
    const bool bad = ferror(file->stream) != 0;
    if ((fclose(file->stream) != 0 || bad) && (status == VRAM_OK || status == VRAM_IO))
        status = fail_file(file, "cannot be written", error);
    if (file->partial[0] == '\0') return status;
    if (status == VRAM_OK && rename(file->partial, file->path) != 0) status = fail_file(file, "cannot be renamed to its final name", error);
    if (status != VRAM_OK) (void)remove(file->partial);
    return status;
}
