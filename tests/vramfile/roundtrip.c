// roundtrip FILE...: reads each recording, writes it in our own format and reads that again: every column and table must be equal. Prints
// the size per event; exits with 1 if one differs.
#include <stdio.h>

#include "history/logbytes.h"
#include "model/recording.h"
#include "snapshot/formats.h"
#include "support/same_model.h"

static bool collect(void *user, const char *bytes, size_t length) {
    vr_bytes_add(user, bytes, length);
    return !((struct vr_bytes *)user)->failed;
}

static int check(const char *path) {
    struct vram_recording *first = NULL, *second = NULL;
    struct vram_error error;
    struct vr_bytes file = {0};
    char difference[200] = "";
    int bad = 1;
    if (vram_recording_read_file(path, &first, &error) != VRAM_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 0;
    }
    const struct vr_model *model = vr_recording_model(first);
    if (vr_log_write_model(model, collect, &file, &error) != VRAM_OK ||
        vram_recording_read_memory(file.data, file.count, path, &second, &error) != VRAM_OK)
        (void)fprintf(stderr, "%s: %s\n", path, error.message);
    else if (!same_model(model, vr_recording_model(second), difference))
        (void)fprintf(stderr, "%s: %s\n", path, difference);
    else
        bad = vr_recording_model(second)->ending != VR_ENDING_WHOLE;
    size_t events = 0;
    for (size_t i = 0; i < model->history_count; i++) events += model->histories[i].count;
    (void)printf("%s: %zu bytes, %zu events, %u stacks\n", path, file.count, events, model->stacks.count - 1);
    vr_bytes_release(&file);
    vram_recording_destroy(first);
    vram_recording_destroy(second);
    return bad;
}

int main(int argc, char **argv) {
    int bad = 0;
    for (int i = 1; i < argc; i++) bad |= check(argv[i]);
    return bad;
}
