// exact_ages.c: what a history tells of the ages of the segments that it began with (replay.md §ages).
#include "replay/exact_replay.h"

enum { DEVICE = 0, RIVALS_MAX = 64 };

// The free blocks of one size, one of which a recorded request took.
struct choice {
    uint64_t taken; // the recorded address
    uint64_t of;    // its segment; 0: it is none of them
    uint64_t first; // the segment of the first of them
    uint64_t segments[RIVALS_MAX];
    size_t count;
};

static bool look_at_rival(uint64_t address, uint64_t segment_address, void *user) {
    struct choice *choice = user;
    if (address == choice->taken) choice->of = segment_address;
    if (choice->count == 0) choice->first = segment_address;
    choice->segments[choice->count++] = segment_address;
    return choice->count < RIVALS_MAX;
}

static enum vram_status find_rivals(struct vr_exact *exact, size_t event, struct choice *choice) {
    const struct vr_history *history = exact->recorded->history;
    *choice = (struct choice){.taken = history->address[event]};
    return vr_drive_walk_rivals(exact->stage.allocator, DEVICE, history->size_bytes[event],
                                vr_stage_stream(&exact->stage, vr_entry_stream(history, event)), look_at_rival, choice);
}

// The segment of the start state that begins there, unless it has gone since; NULL: none.
static const struct vr_start_segment *of_the_start(const struct vr_exact *exact, uint64_t address) {
    const struct vr_start *start = exact->start;
    size_t above;
    VR_LOWER_BOUND(above, i, 0, start->segment_count, start->segments[i].address <= address);
    if (above == 0 || start->segments[above - 1].address != address || vr_map_get(&exact->gone, address) != 0) return NULL;
    return &start->segments[above - 1];
}

static enum vram_status note_age(struct vr_exact *exact, uint64_t older, uint64_t younger) {
    if (of_the_start(exact, older) == NULL || of_the_start(exact, younger) == NULL) return VRAM_OK;
    return vr_hindsight_age(exact->hindsight, older, younger);
}

enum vram_status vr_exact_learn_choice(struct vr_exact *exact, size_t event) {
    struct choice choice;
    if (!exact->hindsight->asks_ages) return VRAM_OK;
    VR_TRY(find_rivals(exact, event, &choice));
    const struct vr_start_segment *taken = choice.of == 0 ? NULL : of_the_start(exact, choice.of);
    // Of blocks in expandable segments the room behind them decides, too.
    if (taken == NULL || taken->expandable) return VRAM_OK;
    for (size_t i = 0; i < choice.count; i++) VR_TRY(note_age(exact, choice.of, choice.segments[i]));
    return VRAM_OK;
}

enum vram_status vr_exact_look_for_tie(struct vr_exact *exact, size_t event) {
    struct choice choice;
    if (exact->ties && !exact->hindsight->asks_ages) return VRAM_OK;
    VR_TRY(find_rivals(exact, event, &choice));
    if (choice.of == 0) return VRAM_OK;
    exact->ties = true;
    return !exact->hindsight->asks_ages ? VRAM_OK : note_age(exact, choice.of, choice.first);
}

// Whole segments of one size, stream and pool go in the order of their ages.
enum vram_status vr_exact_learn_releases(struct vr_exact *exact, size_t event, size_t end) {
    const struct vr_history *history = exact->recorded->history;
    size_t last = SIZE_MAX;
    for (size_t at = event; exact->hindsight->asks_ages && at < end; at++) {
        if (vr_action_is_ignored(history->action[at]) || vr_recorded_device_leaves_out(exact->recorded, at)) continue;
        const bool follows = last != SIZE_MAX && history->action[at] == VR_ACTION_SEGMENT_FREE &&
                             history->size_bytes[at] == history->size_bytes[last] &&
                             vr_entry_stream(history, at) == vr_entry_stream(history, last) &&
                             vr_recorded_device_pool(exact->recorded, at) == vr_recorded_device_pool(exact->recorded, last);
        if (follows) VR_TRY(note_age(exact, history->address[last], history->address[at]));
        last = history->action[at] == VR_ACTION_SEGMENT_FREE ? at : SIZE_MAX;
    }
    return VRAM_OK;
}

enum vram_status vr_exact_note_gone(struct vr_exact *exact, size_t event, size_t end) {
    const struct vr_history *history = exact->recorded->history;
    for (size_t at = event; at < end; at++) {
        if (history->action[at] == VR_ACTION_SEGMENT_FREE) VR_TRY(vr_map_set(&exact->gone, history->address[at], 1));
    }
    return VRAM_OK;
}
