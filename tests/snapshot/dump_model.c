// Prints every column of a recording's model as text, one row a line, for compare_readers.py.
#include <inttypes.h>
#include <stdio.h>

#include "model/recording.h"

static void put_string(const struct vr_model *model, uint32_t id) {
    const char *bytes = vr_model_string(model, id);
    size_t length = vr_model_string_length(model, id);
    putchar(' ');
    putchar('x');
    for (size_t i = 0; i < length; i++) printf("%02x", (unsigned char)bytes[i]);
}

static void put_tables(const struct vr_model *model) {
    printf("form %d\n", (int)model->form);
    for (uint32_t i = 0; i < model->frames.count; i++) {
        printf("frame");
        put_string(model, model->frames.name[i]);
        put_string(model, model->frames.filename[i]);
        printf(" %" PRId64 "\n", model->frames.line[i]);
    }
    for (uint32_t i = 0; i < model->stacks.count; i++) {
        printf("stack");
        for (uint64_t f = model->stacks.offset[i]; f < model->stacks.offset[i + 1]; f++) printf(" %" PRIu32, model->stacks.frame[f]);
        printf("\n");
    }
}

static void put_segments(const struct vr_model *model) {
    const struct vr_segments *s = &model->segments;
    for (size_t i = 0; i < s->count; i++) {
        printf("segment %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
               " %" PRIu32 " %" PRIu32 " %d %d %" PRIu64 "\n",
               s->device[i], s->address[i], s->total_bytes[i], s->allocated_bytes[i], s->active_bytes[i], s->requested_bytes[i],
               s->stream[i], s->pool_first[i], s->pool_second[i], s->stack[i], s->has[i], s->kind[i], s->expandable[i],
               s->first_block[i + 1] - s->first_block[i]);
    }
    const struct vr_blocks *b = &model->blocks;
    for (size_t i = 0; i < b->count; i++) {
        printf("block %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %s\n", b->address[i], b->size_bytes[i],
               b->requested_bytes[i], b->stack[i], b->has[i], vr_block_state_name((enum vr_block_state)b->state[i]));
    }
}

static void put_history(const struct vr_model *model, const struct vr_history *h) {
    printf("device %zu\n", h->count);
    for (size_t i = 0; i < h->count; i++) {
        printf("event %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32,
               vr_action_name((enum vr_action)h->action[i]), h->address[i], h->size_bytes[i], vr_entry_stream(h, i), h->time_us[i],
               h->stack[i], h->pool_first[i], h->pool_second[i], vr_entry_has(h, i));
        put_string(model, h->context[i]);
        put_string(model, h->metadata[i]);
        put_string(model, h->unknown[i]);
        printf("\n");
    }
}

static void put_rest(const struct vr_model *model) {
    for (size_t i = 0; i < model->annotation_count; i++) {
        printf("annotation");
        put_string(model, model->annotations[i].name);
        put_string(model, model->annotations[i].stage);
        printf(" %" PRId64 " %" PRId64 "\n", model->annotations[i].device, model->annotations[i].time_us);
    }
    for (size_t i = 0; i < model->setting_count; i++) {
        printf("setting");
        put_string(model, model->settings[i].key);
        put_string(model, model->settings[i].value);
        printf("\n");
    }
    for (size_t i = 0; i < model->top_level_key_count; i++) {
        printf("key");
        put_string(model, model->top_level_keys[i]);
        printf("\n");
    }
}

int main(int argc, char **argv) {
    struct vram_recording *recording;
    struct vram_error error;
    bool quiet = argc == 3 && strcmp(argv[1], "--quiet") == 0;
    if (argc != 2 && !quiet) return 2;
    enum vram_status status = vram_recording_read_file(argv[argc - 1], &recording, &error);
    if (status == VRAM_OK) {
        const struct vr_model *model = vr_recording_model(recording);
        status = vr_model_check(model, &error);
        if (status == VRAM_OK && !quiet) {
            put_tables(model);
            put_segments(model);
            for (size_t i = 0; i < model->history_count; i++) put_history(model, &model->histories[i]);
            put_rest(model);
        }
        vram_recording_destroy(recording);
    }
    if (status != VRAM_OK) fprintf(stderr, "%s\n", error.message);
    return status == VRAM_OK ? 0 : 3;
}
