// history.c: records a program's memory, saves it as a snapshot in PyTorch's format, and reads it again. Needs no GPU.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vram/recordings.h>
#include <vram/sim.h>
#include <vram/vram.h>

#define MIB (1ull << 20)

// A growing buffer for vram_snapshot_write().
struct bytes {
    char *data;
    size_t count;
};

static bool append(void *user, const char *piece, size_t length) {
    struct bytes *bytes = user;
    char *grown = realloc(bytes->data, bytes->count + length + 1);
    if (grown == NULL) return false;
    memcpy(grown + bytes->count, piece, length);
    bytes->data = grown, bytes->count += length;
    return true;
}

// Runs and marks one step. Tags name the purpose of its memory.
static enum vram_status run_step(struct vram_allocator *allocator, uint64_t *weights) {
    uint64_t activations;
    enum vram_status status = vram_step(allocator, 0, "step");
    if (status == VRAM_OK) status = vram_push_tag("weights");
    if (status == VRAM_OK && *weights == 0) status = vram_malloc(allocator, 0, 24 * MIB, 0, weights);
    vram_pop_tag();
    if (status == VRAM_OK) status = vram_push_tag("activations");
    if (status == VRAM_OK) status = vram_push_context("forward_0"); // a region of compiled code
    char tag[32], context[32];
    (void)vram_tag(tag, sizeof tag), (void)vram_compile_context(context, sizeof context);
    if (strcmp(tag, "activations") != 0 || strcmp(context, "forward_0") != 0) return VRAM_MISMATCH;
    if (status == VRAM_OK) status = vram_malloc(allocator, 0, 40 * MIB, 0, &activations);
    vram_pop_context();
    vram_pop_tag();
    if (status == VRAM_OK) status = vram_free(allocator, activations);
    return status;
}

static int read_back(const struct bytes *bytes) {
    struct vram_recording *recording;
    struct vram_error error;
    if (vram_recording_read_memory(bytes->data, bytes->count, "history", &recording, &error) != VRAM_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    const char *conf = vram_recording_setting(recording, "max_split_size");
    printf("%zu bytes: %llu events, %llu segments, %llu blocks, %u stacks of %u frames, max_split_size %s\n", bytes->count,
           (unsigned long long)vram_recording_event_count(recording, 0), (unsigned long long)vram_recording_segment_count(recording),
           (unsigned long long)vram_recording_block_count(recording), vram_recording_stack_count(recording),
           vram_recording_frame_count(recording), conf == NULL ? "is absent" : conf);
    const bool good = vram_recording_event_count(recording, 0) >= 7 && vram_recording_segment_count(recording) == 2;
    vram_recording_destroy(recording);
    return !good;
}

int main(void) {
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    struct vram_error error = {0};
    struct bytes bytes = {NULL, 0};
    uint64_t weights = 0;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &allocator, NULL) != VRAM_OK) return 1;
    // compile_context: events carry the name from vram_push_context().
    if (vram_history_start(allocator, &(struct vram_history_options){.compile_context = true}, &error) != VRAM_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int step = 0; step < 3; step++) {
        if (run_step(allocator, &weights) != VRAM_OK) return 1;
    }
    const struct vram_pair pairs[] = {{"name", "checkpoint"}, {"file", "step3.pt"}}; // describes this moment in the program's own words
    if (vram_annotation_pairs(allocator, 0, pairs, 2) != VRAM_OK) return 1;

    struct vram_history_counts counts;
    vram_get_history_counts(allocator, &counts);
    printf("%llu events, %llu kept, %llu lost\n", (unsigned long long)counts.events, (unsigned long long)counts.kept,
           (unsigned long long)counts.lost);
    if (vram_snapshot_write(allocator, NULL, VRAM_FORMAT_PICKLE, append, &bytes, &error) != VRAM_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    const int wrong = read_back(&bytes);
    free(bytes.data);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    return wrong;
}
