// play_pictures.c: writes statistics, blocks and events as PyTorch's player does.
#include <inttypes.h>
#include <string.h>

#include "play.h"

// --- statistics: changes since the last output ------------------------------------------------------------------------------------------
static void say_stat(struct play *play, uint32_t device, const char *name, const struct vram_stat *now, const struct vram_stat *known) {
    if (memcmp(now, known, sizeof *now) == 0) return;
    play_say(play, "stat %u %s=%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", (unsigned)device, name, now->current, now->peak,
             now->allocated, now->freed);
}

static void say_stats(struct play *play, uint32_t device, const struct vram_stats *now, const struct vram_stats *known) {
#define FAMILY(name)                                                                                                                       \
    say_stat(play, device, #name ".all", &now->name[VRAM_STAT_ALL], &known->name[VRAM_STAT_ALL]);                                          \
    say_stat(play, device, #name ".small_pool", &now->name[VRAM_STAT_SMALL_POOL], &known->name[VRAM_STAT_SMALL_POOL]);                     \
    say_stat(play, device, #name ".large_pool", &now->name[VRAM_STAT_LARGE_POOL], &known->name[VRAM_STAT_LARGE_POOL]);
    FAMILY(allocation)
    FAMILY(segment)
    FAMILY(active)
    FAMILY(inactive_split)
    FAMILY(allocated_bytes)
    FAMILY(reserved_bytes)
    FAMILY(active_bytes)
    FAMILY(inactive_split_bytes)
    FAMILY(requested_bytes)
#undef FAMILY
    say_stat(play, device, "oversize_allocations", &now->oversize_allocations, &known->oversize_allocations);
    say_stat(play, device, "oversize_segments", &now->oversize_segments, &known->oversize_segments);
#define SCALAR(name, text)                                                                                                                 \
    if (now->name != known->name) play_say(play, "stat %u " #name "=%" PRId64 "\n", (unsigned)device, now->name);
    VRAM_STAT_SCALARS(SCALAR)
#undef SCALAR
}

enum vram_status play_stats(struct play *play) {
    for (uint32_t device = 0; device < play->world.device_count; device++) {
        struct vram_stats now;
        VR_TRY(vram_get_stats(play->world.allocator, device, &now));
        say_stats(play, device, &now, &play->known[device]);
        play->known[device] = now;
    }
    return VRAM_OK;
}

// --- blocks -----------------------------------------------------------------------------------------------------------------------------
static bool say_block(const struct vram_block_view *view, void *user) {
    static const char *const states[] = {[VRAM_BLOCK_FREE] = "free", [VRAM_BLOCK_ALLOCATED] = "live", [VRAM_BLOCK_PENDING] = "pending"};
    struct play *play = user;
    const struct vram_block_info *block = &view->block;
    play_say(play, "block %u %" PRIx64 " %" PRIu64 " %s %" PRIu64 " %d %d %s%s\n", (unsigned)block->device, block->address,
             block->size_bytes, states[view->state], view->state == VRAM_BLOCK_FREE ? 0 : block->requested_bytes,
             play_stream_number(play, block->device, block->stream), play_pool_number(play, block->pool),
             view->small_pool ? "small" : "large", block->expandable ? " expandable" : "");
    return true;
}

enum vram_status play_map(struct play *play) {
    for (uint32_t device = 0; device < play->world.device_count; device++)
        VR_TRY(vram_walk(play->world.allocator, device, say_block, play));
    return VRAM_OK;
}

// --- events -----------------------------------------------------------------------------------------------------------------------------
void play_events(struct play *play) {
    static const char *const names[] = {
        [VR_RECORD_ALLOC] = "alloc",
        [VR_RECORD_FREE_REQUESTED] = "free_requested",
        [VR_RECORD_FREE_COMPLETED] = "free_completed",
        [VR_RECORD_SEGMENT_ALLOC] = "segment_alloc",
        [VR_RECORD_SEGMENT_FREE] = "segment_free",
        [VR_RECORD_SEGMENT_MAP] = "segment_map",
        [VR_RECORD_SEGMENT_UNMAP] = "segment_unmap",
        [VR_RECORD_OOM] = "oom",
    };
    for (uint32_t device = 0; device < play->world.device_count; device++)
        for (size_t i = 0; i < play->world.record_count; i++) {
            const struct vr_record *record = &play->world.records[i];
            if (record->device != device || record->action > VR_RECORD_OOM) continue;
            play_say(play, "event %u %s %" PRIx64 " %" PRIu64 " %d", (unsigned)device, names[record->action], record->address,
                     record->size_bytes, play_stream_number(play, device, record->stream));
            // PyTorch's events have a pool since 2.12.
            if (play->version >= 2012) play_say(play, " %d", play_pool_number(play, record->pool));
            play_say(play, "\n");
        }
}
