// events.c: prints a recording as lines to compare: device, action, address, size, tag, requesting library, thread, stack depth.
#include <inttypes.h>
#include <stdio.h>

#include "model/recording.h"

static uint64_t depth(const struct vr_model *model, uint32_t stack) {
    return model->stacks.offset[stack + 1] - model->stacks.offset[stack];
}

int main(int argc, char **argv) {
    struct vram_recording *recording;
    struct vram_error error = {.status = VRAM_OK};
    if (argc != 2 || vram_recording_read_file(argv[1], &recording, &error) != VRAM_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 3;
    }
    const struct vr_model *model = vr_recording_model(recording);
    for (size_t device = 0; device < model->history_count; device++) {
        const struct vr_history *history = &model->histories[device];
        for (size_t i = 0; i < history->count; i++)
            printf("%s%zu\t%s\t0x%" PRIx64 "\t%" PRIu64 "\t%s\t%s\t%" PRIu32 "\t%" PRIu64 "\n",
                   vr_model_is_host(model, device) ? "host" : "", vr_model_is_host(model, device) ? 0 : device,
                   vr_action_name(history->action[i]), history->address[i], history->size_bytes[i], vr_model_string(model, history->tag[i]),
                   vr_model_string(model, history->metadata[i]), history->thread[i], depth(model, history->stack[i]));
    }
    vram_recording_destroy(recording);
    return 0;
}
