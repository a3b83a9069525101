// rewrite FORMAT IN OUT: reads a recording and writes it, for round_trip.py. FORMAT is a value of enum vram_recording_format.
#include <stdio.h>
#include <stdlib.h>

#include "model/recording.h"
#include "vram/export.h"

static bool write_to_file(void *user, const char *bytes, size_t length) { return fwrite(bytes, 1, length, user) == length; }

int main(int argc, char **argv) {
    struct vram_recording *recording = NULL;
    struct vram_error error;
    if (argc != 4) return 2;
    enum vram_status status = vram_recording_read_file(argv[2], &recording, &error);
    if (status == VRAM_OK) status = vr_model_check(vr_recording_model(recording), &error);
    FILE *file = status == VRAM_OK ? fopen(argv[3], "wb") : NULL;
    if (file != NULL) {
        status = vram_recording_write(recording, (enum vram_recording_format)atoi(argv[1]), write_to_file, file, &error);
        if (fclose(file) != 0) status = VRAM_IO;
    }
    if (status != VRAM_OK) fprintf(stderr, "%s\n", error.message);
    vram_recording_destroy(recording);
    return status == VRAM_OK ? 0 : 3;
}
