// Replays any history over a small address space exactly and with other settings: no crash, leak or hang, whatever it claims. A first byte
// chooses the settings, a second the number of final segments; then follow segments, blocks, events.
#include <stddef.h>
#include <stdint.h>

#include "model/recording.h"
#include "vram/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEGMENTS_MAX = 4, BLOCKS_MAX = 8, EVENTS_MAX = 400 };

struct source {
    const uint8_t *data;
    size_t left;
};

// Returns 0 at the end.
static uint64_t take(struct source *source, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes && source->left > 0; i++, source->left--) value = value << 8 | *source->data++;
    return value;
}

// Takes an address: 64 places of 2 MiB, and offsets in steps of 2 KiB.
static uint64_t take_address(struct source *source) {
    const uint64_t value = take(source, 2);
    return 0x10000000 + (value >> 10) * 2 * VR_MIB + (value & 1023) * 2048;
}

static uint64_t take_size(struct source *source) {
    const uint64_t value = take(source, 2);
    switch (value & 3) {
    case 0: return value >> 2;
    case 1: return 512 * (value >> 2 & 4095);
    case 2: return 2 * VR_MIB * (value >> 2 & 63);
    default: return (value >> 2 & 1) != 0 ? 20 * VR_MIB : (uint64_t)1 << (value >> 3 & 63);
    }
}

struct history {
    struct vram_recording recording;
    uint32_t segment_device[SEGMENTS_MAX], segment_has[SEGMENTS_MAX];
    uint64_t segment_address[SEGMENTS_MAX], segment_total[SEGMENTS_MAX], segment_stream[SEGMENTS_MAX];
    uint64_t pool_first[SEGMENTS_MAX], pool_second[SEGMENTS_MAX], counter[SEGMENTS_MAX], first_block[SEGMENTS_MAX + 1];
    uint8_t kind[SEGMENTS_MAX], expandable[SEGMENTS_MAX];
    uint64_t block_address[SEGMENTS_MAX * BLOCKS_MAX], block_size[SEGMENTS_MAX * BLOCKS_MAX], block_requested[SEGMENTS_MAX * BLOCKS_MAX];
    uint8_t block_state[SEGMENTS_MAX * BLOCKS_MAX];
    uint8_t action[EVENTS_MAX];
    uint64_t address[EVENTS_MAX], size[EVENTS_MAX], stream[EVENTS_MAX], event_pool[EVENTS_MAX], event_zero[EVENTS_MAX];
    uint32_t event_has[EVENTS_MAX];
    struct vr_history rows;
    struct vr_setting setting;
    uint64_t offsets[4];
};

static void take_segment(struct history *history, struct source *source) {
    struct vr_model *model = &history->recording.model;
    const size_t row = model->segments.count++;
    const uint64_t flags = take(source, 1);
    history->segment_address[row] = take_address(source);
    history->segment_total[row] = take_size(source);
    history->segment_stream[row] = flags >> 6;
    history->kind[row] = flags & 1 ? VR_KIND_SMALL : VR_KIND_LARGE;
    history->expandable[row] = flags >> 1 & 1;
    history->pool_first[row] = (flags >> 2 & 7) == 7;
    history->counter[row] = flags;
    history->segment_has[row] = flags & 32 ? VR_HAS_COUNTER : 0;
    uint64_t address = history->segment_address[row];
    for (uint64_t blocks = take(source, 1) % (BLOCKS_MAX + 1); blocks > 0; blocks--) {
        const size_t block = model->blocks.count++;
        history->block_address[block] = address;
        history->block_size[block] = take_size(source);
        history->block_requested[block] = history->block_size[block];
        history->block_state[block] = (uint8_t)(take(source, 1) % VR_STATE_COUNT);
        address += history->block_size[block];
    }
    history->first_block[row + 1] = model->blocks.count;
}

static void take_events(struct history *history, struct source *source) {
    while (source->left > 0 && history->rows.count < EVENTS_MAX) {
        const size_t row = history->rows.count++;
        const uint64_t head = take(source, 1);
        history->action[row] = (uint8_t)((head & 15) % VR_ACTION_COUNT);
        history->stream[row] = head >> 4 & 3;
        history->event_has[row] = head >> 6 == 3 ? VR_HAS_POOL_ID : 0;
        history->event_pool[row] = head >> 4 & 1;
        history->address[row] = take_address(source);
        history->size[row] = take_size(source);
    }
}

static void connect(struct history *history, const char *strings) {
    struct vr_model *model = &history->recording.model;
    model->segments = (struct vr_segments){.device = history->segment_device,
                                           .address = history->segment_address,
                                           .total_bytes = history->segment_total,
                                           .stream = history->segment_stream,
                                           .pool_first = history->pool_first,
                                           .pool_second = history->pool_second,
                                           .counter = history->counter,
                                           .has = history->segment_has,
                                           .kind = history->kind,
                                           .expandable = history->expandable,
                                           .first_block = history->first_block};
    model->blocks = (struct vr_blocks){.address = history->block_address,
                                       .size_bytes = history->block_size,
                                       .requested_bytes = history->block_requested,
                                       .state = history->block_state};
    history->rows = (struct vr_history){.action = history->action,
                                        .address = history->address,
                                        .size_bytes = history->size,
                                        .stream = {.apart = history->stream},
                                        .pool_first = history->event_pool,
                                        .pool_second = history->event_zero,
                                        .has = {.apart = history->event_has}};
    model->histories = &history->rows;
    model->history_count = 1;
    // String 1 is the key of the settings, string 2 its value.
    const size_t key = strlen(strings + 1) + 1;
    history->offsets[1] = 1;
    history->offsets[2] = 1 + key;
    history->offsets[3] = 1 + key + strlen(strings + 1 + key) + 1;
    model->strings = (struct vr_strings){.bytes = (char *)(uintptr_t)strings, .offset = history->offsets, .count = 3};
    history->setting = (struct vr_setting){1, 2};
    model->settings = &history->setting;
    model->setting_count = 1;
}

static void replay(const struct vram_recording *recording, uint64_t choice) {
    struct vram_error error;
    struct vram_exact_result *exact = NULL;
    if (vram_replay_exact(recording, NULL, &exact, &error) != VRAM_OK) __builtin_trap();
    vram_exact_result_destroy(exact);
    struct vram_whatif_result *whatif = NULL;
    const struct vram_whatif_options options = {.conf = choice & 64 ? "expandable_segments:True" : NULL,
                                                .start = choice & 128 ? VRAM_WHATIF_RECORDED : VRAM_WHATIF_COLD,
                                                .memory_bytes = choice & 32 ? 64 * VR_MIB : 0};
    if (vram_replay_whatif(recording, &options, &whatif, &error) != VRAM_OK) __builtin_trap();
    vram_whatif_result_destroy(whatif);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
#define CONF(text) "\0PYTORCH_CUDA_ALLOC_CONF\0\"" text "\"\0"
    static const char *const strings[] = {
        CONF(""),
        CONF("expandable_segments:True"),
        CONF("max_split_size_mb:32"),
        CONF("release_lock_on_cudamalloc:True"),
        CONF("garbage_collection_threshold:0.5"),
        CONF("roundup_power2_divisions:4"),
    };
    struct source source = {data, size};
    struct history history = {.rows = {0}};
    const uint64_t choice = take(&source, 1);
    connect(&history, strings[(choice & 31) % VR_COUNT_OF(strings)]);
    for (uint64_t segments = take(&source, 1) % (SEGMENTS_MAX + 1); segments > 0; segments--) take_segment(&history, &source);
    take_events(&history, &source);
    replay(&history.recording, choice);
    return 0;
}
