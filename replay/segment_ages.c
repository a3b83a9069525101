// Infers the relative ages of the initial state's segments from a history (replay.md §ages).
#include "replay/segment_ages.h"

#include "replay/exact_replay.h"

void vr_ages_release(struct vr_ages *ages) {
    free(ages->pairs);
    vr_map_release(&ages->known);
    *ages = (struct vr_ages){0};
}

enum vram_status vr_ages_note(struct vr_ages *ages, uint64_t older, uint64_t younger) {
    // A pair with the same hash as another one is dropped; what it would have shown appears as a difference.
    const uint64_t mix = vr_mix64(vr_mix64(older) + younger);
    if (older == younger || vr_map_get(&ages->known, mix) != 0) return VRAM_OK;
    VR_TRY(vr_grow((void **)&ages->pairs, &ages->capacity, ages->count + 1, sizeof *ages->pairs));
    VR_TRY(vr_map_set(&ages->known, mix, 1));
    ages->pairs[ages->count++] = (struct vr_age_pair){older, younger};
    return VRAM_OK;
}

// --- the order --------------------------------------------------------------------------------------------------------------------
#define NONE UINT32_MAX

// A pair, in the list of its older segment.
struct edge {
    uint32_t younger;
    uint32_t next; // NONE: the last
};

struct age_sorting {
    struct vr_start *start;
    struct edge *edges;
    size_t edge_count;
    uint32_t *first;   // by segment: its first edge; NONE: no edges
    uint32_t *waiting; // by segment: number of older ones not yet placed
    uint32_t *ready;   // heap of segments that do not wait, with the first in rank on top
    size_t ready_count;
    uint32_t *rank;    // by segment: its position without any pairs
    uint32_t *by_rank; // the inverse of rank
    size_t placed;     // all segments before this index in by_rank are placed
};

static uint32_t segment_at(const struct vr_start *start, uint64_t address) {
    size_t above;
    VR_LOWER_BOUND(above, i, 0, start->segment_count, start->segments[i].address <= address);
    return above == 0 || start->segments[above - 1].address != address ? NONE : (uint32_t)(above - 1);
}

static void add_edge(struct age_sorting *sorting, uint32_t older, uint32_t younger) {
    sorting->edges[sorting->edge_count] = (struct edge){younger, sorting->first[older]};
    sorting->first[older] = (uint32_t)sorting->edge_count++;
    sorting->waiting[younger]++;
}

static void push_ready(struct age_sorting *sorting, uint32_t segment) {
    size_t at = sorting->ready_count++;
    for (; at > 0 && sorting->rank[sorting->ready[(at - 1) / 2]] > sorting->rank[segment]; at = (at - 1) / 2)
        sorting->ready[at] = sorting->ready[(at - 1) / 2];
    sorting->ready[at] = segment;
}

static uint32_t pop_ready(struct age_sorting *sorting) {
    uint32_t *heap = sorting->ready, *rank = sorting->rank;
    const uint32_t top = heap[0], last = heap[--sorting->ready_count];
    size_t at = 0;
    for (size_t child = 1; child < sorting->ready_count; child = 2 * at + 1) {
        child += child + 1 < sorting->ready_count && rank[heap[child + 1]] < rank[heap[child]];
        if (rank[heap[child]] >= rank[last]) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

struct aged_segment {
    uint64_t counter;
    uint64_t address;
    uint32_t segment;
};

static int rank_order(const void *left, const void *right) {
    const struct aged_segment *a = left, *b = right;
    if (a->counter != b->counter) return VR_ORDER(a->counter, b->counter);
    return VR_ORDER(a->address, b->address);
}

// Ranks the segments as if there were no pairs. Recorded counters are kept as pairs, because their order is certain.
static enum vram_status rank_segments(struct age_sorting *sorting) {
    const size_t count = sorting->start->segment_count;
    struct aged_segment *aged = malloc((count + 1) * sizeof *aged);
    if (aged == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++)
        aged[i] = (struct aged_segment){sorting->start->segments[i].counter, sorting->start->segments[i].address, (uint32_t)i};
    if (count > 1) qsort(aged, count, sizeof *aged, rank_order);
    for (size_t i = 0; i < count; i++) {
        sorting->rank[aged[i].segment] = (uint32_t)i;
        sorting->by_rank[i] = aged[i].segment;
        const bool known = i > 0 && aged[i - 1].counter != 0 && aged[i - 1].counter != aged[i].counter;
        if (known) add_edge(sorting, aged[i - 1].segment, aged[i].segment);
    }
    free(aged);
    return VRAM_OK;
}

// Breaks a cycle: returns the first in rank of the segments that still wait.
static uint32_t break_circle(struct age_sorting *sorting) {
    while (sorting->waiting[sorting->by_rank[sorting->placed]] == 0) sorting->placed++;
    const uint32_t first = sorting->by_rank[sorting->placed];
    sorting->waiting[first] = 0;
    return first;
}

static void take_oldest(struct age_sorting *sorting, uint32_t segment, size_t place) {
    sorting->start->segments[segment].counter = place + 1;
    for (uint32_t e = sorting->first[segment]; e != NONE; e = sorting->edges[e].next) {
        uint32_t *waiting = &sorting->waiting[sorting->edges[e].younger];
        if (*waiting != 0 && --*waiting == 0) push_ready(sorting, sorting->edges[e].younger);
    }
}

static enum vram_status sort_by_age(struct age_sorting *sorting, const struct vr_ages *ages, size_t *inferred) {
    const size_t count = sorting->start->segment_count;
    for (size_t i = 0; i < count; i++) sorting->first[i] = NONE;
    VR_TRY(rank_segments(sorting));
    for (size_t i = 0; i < ages->count; i++) {
        const uint32_t older = segment_at(sorting->start, ages->pairs[i].older);
        const uint32_t younger = segment_at(sorting->start, ages->pairs[i].younger);
        if (older != NONE && younger != NONE) add_edge(sorting, older, younger);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (sorting->waiting[i] == 0) push_ready(sorting, i);
    }
    for (size_t place = 0; place < count; place++) {
        const uint32_t next = sorting->ready_count == 0 ? break_circle(sorting) : pop_ready(sorting);
        *inferred += sorting->rank[next] != place;
        take_oldest(sorting, next, place);
    }
    return VRAM_OK;
}

enum vram_status vr_ages_apply(const struct vr_ages *ages, struct vr_start *start, size_t *inferred) {
    const size_t count = start->segment_count;
    struct age_sorting sorting = {.start = start};
    *inferred = 0;
    if (ages->count == 0 || count == 0) return VRAM_OK;
    sorting.edges = malloc((ages->count + count) * sizeof *sorting.edges);
    sorting.first = malloc(count * sizeof *sorting.first);
    sorting.waiting = calloc(count, sizeof *sorting.waiting);
    sorting.ready = malloc(count * sizeof *sorting.ready);
    sorting.rank = malloc(count * sizeof *sorting.rank);
    sorting.by_rank = malloc(count * sizeof *sorting.by_rank);
    const bool made = sorting.edges && sorting.first && sorting.waiting && sorting.ready && sorting.rank && sorting.by_rank;
    const enum vram_status status = made ? sort_by_age(&sorting, ages, inferred) : VRAM_NO_HOST_MEMORY;
    free(sorting.edges);
    free(sorting.first);
    free(sorting.waiting);
    free(sorting.ready);
    free(sorting.rank);
    free(sorting.by_rank);
    return status;
}

// ---- What a history shows about the ages of the segments of its initial state (replay.md §ages).

enum { DEVICE = 0, RIVALS_MAX = 64 };

// The free blocks of one size, one of which a recorded request took.
struct choice {
    uint64_t taken; // recorded address
    uint64_t of;    // its segment; 0: it is not one of these blocks
    uint64_t first; // segment of the first of these blocks
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

// Returns the initial state's segment that begins at the address; NULL if none exists or it was released since.
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
    // In expandable segments, the choice also depends on the room after the blocks.
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

// Whole segments of the same size, stream and pool are released in the order of their ages.
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
