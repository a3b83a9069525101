// Makes a recording of any length, like that of a long training job: bench_make_recording EVENTS OUT [FRAMES [own|oom]]. It has permanent
// parameters, steps whose activations are allocated and freed in reverse order, and short-lived buffers. Every event has one of 20,000
// stacks of FRAMES (30) frames; with `own` each event has its own list of frames, as in PyTorch's pickles, otherwise equal stacks are
// shared. With `oom` the last event is a failed request. OUT's extension (.vram or .pickle) chooses the format. The same arguments give the
// same bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/columns.h"
#include "model/recording.h"
#include "vram/export.h"

enum { STACKS = 20000, FUNCTIONS = 3000, PARAMETERS = 800, DEPTH = 400, SLOTS = 2048, MOST_FRAMES = 200 };
#define SLOT_BYTES ((uint64_t)64 << 20)
#define FIRST_SLOT UINT64_C(0x7f0000000000)
#define EVENT_HAS  (VR_HAS_ACTION | VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_STREAM | VR_HAS_TIME | VR_HAS_FRAMES)
#define SEGMENT_HAS                                                                                                                        \
    (VR_HAS_DEVICE | VR_HAS_ADDRESS | VR_HAS_TOTAL_SIZE | VR_HAS_ALLOCATED_SIZE | VR_HAS_ACTIVE_SIZE | VR_HAS_REQUESTED_SIZE |             \
     VR_HAS_STREAM | VR_HAS_SEGMENT_TYPE | VR_HAS_EXPANDABLE | VR_HAS_FRAMES | VR_HAS_BLOCKS)
#define BLOCK_HAS (VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_REQUESTED_SIZE | VR_HAS_STATE | VR_HAS_FRAMES)

struct maker {
    struct vr_builder builder;
    struct vr_model model;
    struct vr_history history;
    size_t capacity, wanted;
    uint64_t random;
    int64_t time_us;
    uint32_t stacks[STACKS];
    uint64_t held[SLOTS];  // bytes, 0: free
    uint32_t owner[SLOTS]; // stack
    bool mapped[SLOTS];
};

static uint64_t next(struct maker *maker) { return vr_mix64(maker->random += UINT64_C(0x9e3779b97f4a7c15)); }

static enum vram_status string(struct maker *maker, uint32_t *id, const char *format, unsigned a, unsigned b) {
    char text[96];
    // The format is one of the literals below.
    const int length = snprintf(text, sizeof text, format, a, b);
    return vr_builder_string(&maker->builder, text, (size_t)length, id);
}

// Stack i shares its outer functions with nearby stacks, as in the layers of a model.
static enum vram_status make_stacks(struct maker *maker, size_t frames) {
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t ids[MOST_FRAMES];
        for (size_t f = 0; f < frames; f++) {
            const uint64_t path = (uint64_t)i >> (f / 2 < 16 ? f / 2 : 16);
            const unsigned function = (unsigned)(vr_mix64(path * MOST_FRAMES + f) % FUNCTIONS);
            uint32_t name = 0, file = 0;
            VR_TRY(string(maker, &name, "layer_%u_call_%u", function / 8, function));
            VR_TRY(string(maker, &file, "/home/user/project/models/block_%u/module_%u.py", function / 64, function / 16));
            VR_TRY(vr_builder_frame(&maker->builder, name, file, 10 + (int64_t)(vr_mix64(path) % 400), &ids[f]));
        }
        VR_TRY(vr_builder_stack(&maker->builder, ids, frames, &maker->stacks[i]));
    }
    return VRAM_OK;
}

static bool done(const struct maker *maker) { return maker->history.count >= maker->wanted; }

static void event(struct maker *maker, enum vr_action action, uint32_t slot, uint64_t bytes, uint32_t stack) {
    struct vr_history *history = &maker->history;
    if (done(maker)) return;
    const size_t i = history->count++;
    history->action[i] = (uint8_t)action;
    history->address[i] = FIRST_SLOT + slot * SLOT_BYTES;
    history->size_bytes[i] = bytes;
    history->stream.common = 0;
    history->time_us[i] = maker->time_us += 1 + (int64_t)(next(maker) % 8);
    history->stack[i] = stack;
    history->has.common = EVENT_HAS;
}

static void take(struct maker *maker, uint32_t slot, uint64_t bytes) {
    const uint32_t stack = maker->stacks[next(maker) % STACKS];
    // Record an allocation and its segment together, or neither.
    if (maker->wanted - maker->history.count < 2) {
        maker->wanted = maker->history.count;
        return;
    }
    if (!maker->mapped[slot]) event(maker, VR_ACTION_SEGMENT_ALLOC, slot, SLOT_BYTES, stack);
    maker->mapped[slot] = true;
    event(maker, VR_ACTION_ALLOC, slot, bytes, stack);
    maker->held[slot] = bytes;
    maker->owner[slot] = stack;
}

static void give(struct maker *maker, uint32_t slot) {
    if (maker->wanted - maker->history.count < 2) {
        maker->wanted = maker->history.count;
        return;
    }
    event(maker, VR_ACTION_FREE_REQUESTED, slot, maker->held[slot], maker->owner[slot]);
    event(maker, VR_ACTION_FREE_COMPLETED, slot, maker->held[slot], maker->owner[slot]);
    maker->held[slot] = 0;
}

static uint64_t size(struct maker *maker, unsigned most_shift) { return (512 + (next(maker) % 65536) * 8) << (next(maker) % most_shift); }

// Makes a forward pass, with scratch memory between its allocations, and a backward pass.
static void step(struct maker *maker) {
    const uint32_t first = PARAMETERS, scratch = PARAMETERS + DEPTH;
    for (uint32_t d = 0; d < DEPTH && !done(maker); d++) {
        const uint32_t slot = scratch + (uint32_t)(next(maker) % (SLOTS - scratch));
        take(maker, first + d, size(maker, 7));
        if (maker->held[slot] == 0 && !done(maker)) take(maker, slot, size(maker, 4));
        if (maker->held[slot] != 0 && !done(maker)) give(maker, slot);
    }
    for (uint32_t d = DEPTH; d-- > 0 && !done(maker);) {
        if (maker->held[first + d] != 0) give(maker, first + d);
    }
}

// Adds a request for more than the device has, with the previous event's stack.
static void fail(struct maker *maker) {
    struct vr_history *history = &maker->history;
    const uint32_t stack = history->stack[history->count - 1];
    const size_t i = history->count;
    maker->wanted = i + 1;
    event(maker, VR_ACTION_OOM, 0, UINT64_C(4) << 30, stack);
    history->address[i] = (uint64_t)512 << 20; // the driver's free memory
}

static enum vram_status make_events(struct maker *maker, bool fails) {
    VR_TRY(vr_columns_grow(&vr_history_columns, &maker->history, &maker->capacity, maker->wanted, &maker->builder.budget));
    maker->wanted -= fails;
    for (uint32_t p = 0; p < PARAMETERS && !done(maker); p++) take(maker, p, size(maker, 6));
    while (!done(maker)) step(maker);
    if (fails) fail(maker);
    VR_TRY(vr_columns_finish(&vr_history_columns, &maker->history, maker->history.count));
    if (!fails) return VRAM_OK;
    // The only event with different values.
    uint32_t *apart = calloc(maker->history.count, sizeof *apart);
    if (apart == NULL) return VRAM_NO_HOST_MEMORY;
    apart[maker->history.count - 1] = VR_HAS_ADDRESS | VR_HAS_DEVICE_FREE;
    maker->history.has.apart = apart;
    return VRAM_OK;
}

static void put_block(struct vr_blocks *blocks, uint64_t address, uint64_t bytes, uint64_t asked, uint32_t stack) {
    const size_t i = blocks->count++;
    blocks->address[i] = address;
    blocks->size_bytes[i] = bytes;
    blocks->requested_bytes[i] = asked;
    blocks->stack[i] = stack;
    blocks->has[i] = BLOCK_HAS;
    blocks->state[i] = (uint8_t)(asked != 0 ? VR_STATE_ALLOCATED : VR_STATE_INACTIVE);
}

// Every used slot becomes a segment with a live block and a free rest.
static enum vram_status make_picture(struct maker *maker) {
    struct vr_segments *segments = &maker->model.segments;
    size_t segment_capacity = 0, block_capacity = 0;
    VR_TRY(vr_columns_grow(&vr_segment_columns, segments, &segment_capacity, SLOTS, &maker->builder.budget));
    VR_TRY(vr_columns_grow(&vr_block_columns, &maker->model.blocks, &block_capacity, (size_t)2 * SLOTS, &maker->builder.budget));
    segments->first_block = calloc(SLOTS + 1, sizeof *segments->first_block);
    if (segments->first_block == NULL) return VRAM_NO_HOST_MEMORY;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        if (!maker->mapped[slot]) continue;
        const uint64_t address = FIRST_SLOT + slot * SLOT_BYTES, asked = maker->held[slot], given = vr_round_up(asked, 512);
        const size_t i = segments->count++;
        for (size_t c = 0; c < vr_segment_columns.count; c++)
            memset((char *)vr_column_pointer(&vr_segment_columns, segments, c) + i * vr_segment_columns.column[c].item_bytes, 0,
                   vr_segment_columns.column[c].item_bytes);
        segments->address[i] = address;
        segments->total_bytes[i] = SLOT_BYTES;
        segments->allocated_bytes[i] = segments->active_bytes[i] = given;
        segments->requested_bytes[i] = asked;
        segments->has[i] = SEGMENT_HAS;
        segments->kind[i] = VR_KIND_LARGE;
        if (given != 0) put_block(&maker->model.blocks, address, given, asked, maker->owner[slot]);
        if (given != SLOT_BYTES) put_block(&maker->model.blocks, address + given, SLOT_BYTES - given, 0, 0);
        segments->first_block[i + 1] = maker->model.blocks.count;
    }
    return VRAM_OK;
}

static enum vram_status add_keys(struct maker *maker) {
    static const char *const keys[] = {"segments", "device_traces"};
    maker->model.top_level_keys = calloc(VR_COUNT_OF(keys), sizeof *maker->model.top_level_keys);
    if (maker->model.top_level_keys == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < VR_COUNT_OF(keys); i++)
        VR_TRY(
            vr_builder_string(&maker->builder, keys[i], strlen(keys[i]), &maker->model.top_level_keys[maker->model.top_level_key_count++]));
    return VRAM_OK;
}

// Gives every event its own copy of its stack.
static enum vram_status own_stacks(struct maker *maker) {
    struct vr_stacks *shared = &maker->builder.stacks;
    struct vr_history *history = &maker->history;
    uint64_t frames = shared->offset[shared->count];
    for (size_t i = 0; i < history->count; i++) frames += shared->offset[history->stack[i] + 1] - shared->offset[history->stack[i]];
    uint32_t *frame = realloc(shared->frame, frames * sizeof *frame);
    if (frame == NULL) return VRAM_NO_HOST_MEMORY;
    shared->frame = frame;
    uint64_t *offset = realloc(shared->offset, ((size_t)shared->count + history->count + 1) * sizeof *offset);
    if (offset == NULL) return VRAM_NO_HOST_MEMORY;
    shared->offset = offset;
    for (size_t i = 0; i < history->count; i++) {
        const uint64_t begin = offset[history->stack[i]], length = offset[history->stack[i] + 1] - begin, end = offset[shared->count];
        memcpy(frame + end, frame + begin, length * sizeof *frame);
        offset[shared->count + 1] = end + length;
        history->stack[i] = shared->count++;
    }
    return VRAM_OK;
}

static enum vram_status make(struct maker *maker, size_t frames, bool own, bool fails, struct vram_recording **recording,
                             struct vram_error *error) {
    VR_TRY(vr_builder_init(&maker->builder, UINT64_MAX));
    VR_TRY(make_stacks(maker, frames));
    VR_TRY(make_events(maker, fails));
    VR_TRY(make_picture(maker));
    VR_TRY(add_keys(maker));
    if (own) VR_TRY(own_stacks(maker));
    maker->model.histories = malloc(sizeof maker->history);
    if (maker->model.histories == NULL) return VRAM_NO_HOST_MEMORY;
    maker->model.histories[0] = maker->history;
    maker->model.history_count = 1;
    vr_builder_finish(&maker->builder, &maker->model);
    VR_TRY(vr_model_check(&maker->model, error));
    return vr_recording_create(&maker->model, recording);
}

static bool put(void *user, const char *bytes, size_t length) { return fwrite(bytes, 1, length, user) == length; }

int main(int argc, char **argv) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {.status = VRAM_OK};
    struct maker *maker = calloc(1, sizeof *maker);
    const bool own_lists = argc == 5 && strcmp(argv[4], "own") == 0;
    const bool fails = argc == 5 && strcmp(argv[4], "oom") == 0;
    if (argc < 3 || argc > 5 || (argc == 5 && !own_lists && !fails) || maker == NULL) {
        fprintf(stderr, "usage: bench_make_recording EVENTS OUT [FRAMES [own|oom]]\n");
        return 2;
    }
    const long frames = argc > 3 ? atol(argv[3]) : 30;
    maker->wanted = (size_t)strtoull(argv[1], NULL, 10);
    FILE *file = fopen(argv[2], "wb");
    if (frames < 1 || frames > MOST_FRAMES || maker->wanted < 2 || file == NULL) return 2;
    const char *extension = strrchr(argv[2], '.');
    const bool own = extension != NULL && strcmp(extension, ".vram") == 0;
    enum vram_status status = make(maker, (size_t)frames, own_lists, fails, &recording, &error);
    if (status == VRAM_OK) status = vram_recording_write(recording, own ? VRAM_FORMAT_VRAM : VRAM_FORMAT_PICKLE, put, file, &error);
    if (fclose(file) != 0 && status == VRAM_OK) status = VRAM_IO;
    if (status != VRAM_OK) fprintf(stderr, "%s\n", error.message[0] != '\0' ? error.message : vram_status_text(status));
    vram_recording_destroy(recording);
    free(maker);
    return status == VRAM_OK ? 0 : 3;
}
