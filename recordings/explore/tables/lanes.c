// Groups segments by the requests that they serve.
#include "explore/tables/lanes.h"

#include "base/hash.h"

// The size of segments of the small pool, and of the smallest segments of the large pool.
#define SMALL_SEGMENT (2 * VR_MIB)
#define LEAST_LARGE   (10 * VR_MIB)

// Stores the recorded kinds of segments of the final state.
static enum vram_status final_kinds(const struct vr_view *view, const struct vr_segment_lives *lives, uint8_t *kind) {
    const struct vr_segments *segments = &view->model->segments;
    const struct vr_lifetimes *rows = &lives->lifetimes;
    uint64_t(*order)[2] = malloc((view->segment_count + 1) * sizeof *order);
    if (order == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < view->segment_count; i++) {
        order[i][0] = segments->address[view->segments[i]];
        order[i][1] = view->segments[i];
    }
    if (view->segment_count != 0) qsort(order, view->segment_count, sizeof *order, vr_order_u64_pair);
    size_t next = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t row = lives->by_address[i];
        while (next < view->segment_count && order[next][0] <= rows->address[row]) next++;
        if (next == 0 || rows->death[row] != VR_NEVER) continue;
        const size_t segment = (size_t)order[next - 1][1];
        if (rows->address[row] - segments->address[segment] < segments->total_bytes[segment]) kind[row] = (uint8_t)segments->kind[segment];
    }
    free(order);
    return VRAM_OK;
}

// Derives the kinds from sizes: small segments have 2 MiB, and small pages are mapped 2 MiB at a time.
enum vram_status vr_segment_kinds(const struct vr_view *view, const struct vr_segment_lives *segments, uint8_t **kind) {
    const struct vr_lifetimes *rows = &segments->lifetimes;
    uint8_t *made = malloc(rows->count + 1);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < rows->count; row++) {
        const bool mapped = (segments->flags[row] & VR_SEGMENT_MAPPED) != 0;
        const bool small = mapped ? rows->size_bytes[row] < LEAST_LARGE : rows->size_bytes[row] == SMALL_SEGMENT;
        made[row] = small ? VRAM_REPORT_KIND_SMALL : VRAM_REPORT_KIND_LARGE;
    }
    const enum vram_status status = final_kinds(view, segments, made);
    if (status == VRAM_OK)
        *kind = made;
    else
        free(made);
    return status;
}

// A lane that may be among the largest.
struct lane_candidate {
    struct vr_lane lane;
    uint64_t bytes; // current total during the walk
    uint32_t number;
};

struct sorting {
    const struct vr_segment_lives *segments;
    uint8_t *kind;    // by row
    uint64_t *deaths; // event << 32 | row, ascending
    size_t death_count;
    struct vr_hash_index index; // index of the candidates
    struct lane_candidate *candidate;
    size_t count, candidate_capacity;
    uint32_t *of; // by row: its candidate
};

static bool is_mapped(const struct vr_segment_lives *segments, size_t row) { return (segments->flags[row] & VR_SEGMENT_MAPPED) != 0; }

static struct vr_lane lane_of(const struct sorting *sorting, size_t row) {
    const struct vr_segment_lives *segments = sorting->segments;
    return (struct vr_lane){.stream = segments->stream[row],
                            .pool_first = segments->pool_first[row],
                            .pool_second = segments->pool_second[row],
                            .kind = (enum vram_report_kind)sorting->kind[row],
                            .expandable = is_mapped(segments, row)};
}

static bool same_lane(const struct vr_lane *a, const struct vr_lane *b) {
    return a->stream == b->stream && a->pool_first == b->pool_first && a->pool_second == b->pool_second && a->kind == b->kind &&
           a->expandable == b->expandable;
}

static uint64_t hash_of_lane(const struct vr_lane *lane, uint64_t secret) {
    const uint64_t words[] = {lane->stream, lane->pool_first, lane->pool_second, (uint64_t)lane->kind * 2 + lane->expandable};
    return vr_hash_bytes(secret, words, sizeof words);
}

static enum vram_status add_lane(struct sorting *sorting, const struct vr_lane *lane, uint64_t hash) {
    VR_TRY(vr_hash_index_reserve(&sorting->index));
    VR_TRY(VR_GROW(sorting, candidate, sorting->count + 1));
    sorting->candidate[sorting->count] = (struct lane_candidate){.lane = *lane, .number = (uint32_t)sorting->count};
    vr_hash_index_add(&sorting->index, hash, (uint32_t)sorting->count++);
    return VRAM_OK;
}

static enum vram_status add_lane_row(struct sorting *sorting, size_t row) {
    const struct vr_lane lane = lane_of(sorting, row);
    const uint64_t hash = hash_of_lane(&lane, sorting->index.secret);
    uint32_t number = (uint32_t)sorting->count;
    bool found;
    VR_HASH_INDEX_FIND(&sorting->index, hash, number, same_lane(&sorting->candidate[number].lane, &lane), found);
    if (!found) {
        number = (uint32_t)sorting->count;
        VR_TRY(add_lane(sorting, &lane, hash));
    }
    if ((sorting->segments->flags[row] & VR_SEGMENT_POOL_KNOWN) != 0) sorting->candidate[number].lane.pool_known = true;
    sorting->of[row] = number;
    return VRAM_OK;
}

static void list_deaths(struct sorting *sorting) {
    const struct vr_lifetimes *rows = &sorting->segments->lifetimes;
    for (size_t row = 0; row < rows->count; row++) {
        if (rows->death[row] != VR_NEVER) sorting->deaths[sorting->death_count++] = (uint64_t)rows->death[row] << 32 | row;
    }
    if (sorting->death_count != 0) qsort(sorting->deaths, sorting->death_count, sizeof *sorting->deaths, vr_order_u64);
}

// Calls `change` for every beginning and end, by ascending event; at the same event, ends come before beginnings.
typedef enum vram_status (*changer)(void *user, uint32_t event, size_t row, bool begins);
static enum vram_status walk_lanes(const struct sorting *sorting, changer change, void *user) {
    const struct vr_lifetimes *rows = &sorting->segments->lifetimes;
    size_t row = 0, death = 0;
    for (; row < rows->start_count; row++) VR_TRY(change(user, VR_BEFORE_TRACE, row, true));
    while (row < rows->count || death < sorting->death_count) {
        const uint64_t dies = death < sorting->death_count ? sorting->deaths[death] >> 32 : UINT64_MAX;
        if (row < rows->count && rows->birth[row] < dies) {
            VR_TRY(change(user, rows->birth[row], row, true));
            row++;
        } else {
            VR_TRY(change(user, (uint32_t)dies, (uint32_t)sorting->deaths[death], false));
            death++;
        }
    }
    return VRAM_OK;
}

static enum vram_status find_peak(void *user, uint32_t event, size_t row, bool begins) {
    struct sorting *sorting = user;
    struct lane_candidate *candidate = &sorting->candidate[sorting->of[row]];
    const uint64_t bytes = sorting->segments->lifetimes.size_bytes[row];
    (void)event;
    candidate->bytes += begins ? bytes : 0 - bytes;
    if (begins && candidate->bytes > candidate->lane.peak_bytes) candidate->lane.peak_bytes = candidate->bytes;
    return VRAM_OK;
}

static int largest_first(const void *a, const void *b) {
    const struct lane_candidate *x = a, *y = b;
    if (x->lane.peak_bytes != y->lane.peak_bytes) return VR_ORDER(y->lane.peak_bytes, x->lane.peak_bytes);
    return VR_ORDER(x->number, y->number);
}

static int in_order(const void *a, const void *b) {
    const struct vr_lane *x = &((const struct lane_candidate *)a)->lane, *y = &((const struct lane_candidate *)b)->lane;
    if (x->pool_first != y->pool_first) return VR_ORDER(x->pool_first, y->pool_first);
    if (x->pool_second != y->pool_second) return VR_ORDER(x->pool_second, y->pool_second);
    if (x->kind != y->kind) return VR_ORDER(y->kind, x->kind);
    if (x->expandable != y->expandable) return VR_ORDER(y->expandable, x->expandable);
    return VR_ORDER(x->stream, y->stream);
}

// Gives the largest lanes places of their own, in order; the others share the last place.
static enum vram_status place_lanes(struct sorting *sorting, struct vr_lanes *lanes) {
    uint8_t *place = malloc(sorting->count + 1);
    if (place == NULL) return VRAM_NO_HOST_MEMORY;
    const bool all = sorting->count <= VR_MOST_LANES;
    const size_t own = all ? sorting->count : VR_MOST_LANES - 1;
    if (sorting->count != 0) qsort(sorting->candidate, sorting->count, sizeof *sorting->candidate, largest_first);
    if (own != 0) qsort(sorting->candidate, own, sizeof *sorting->candidate, in_order);
    for (size_t i = 0; i < sorting->count; i++) {
        place[sorting->candidate[i].number] = (uint8_t)(i < own ? i : own);
        if (i < own) lanes->lane[i] = sorting->candidate[i].lane;
        lanes->several_streams = lanes->several_streams || sorting->candidate[i].lane.stream != sorting->candidate[0].lane.stream;
    }
    if (!all) lanes->lane[own] = (struct vr_lane){.others = sorting->count - own};
    lanes->count = all ? own : own + 1;
    for (size_t row = 0; row < sorting->segments->lifetimes.count; row++) lanes->of[row] = place[sorting->of[row]];
    free(place);
    return VRAM_OK;
}

struct lane_filling {
    struct vr_lanes *lanes;
    const struct vr_lifetimes *rows;
    uint64_t bytes[VR_MOST_LANES];
};

static enum vram_status fill_totals(void *user, uint32_t event, size_t row, bool begins) {
    struct lane_filling *filling = user;
    const size_t place = filling->lanes->of[row];
    struct vr_lane *lane = &filling->lanes->lane[place];
    uint64_t *bytes = &filling->bytes[place];
    *bytes += begins ? filling->rows->size_bytes[row] : 0 - filling->rows->size_bytes[row];
    if (lane->others != 0 && begins && *bytes > lane->peak_bytes) lane->peak_bytes = *bytes;
    if (event == VR_BEFORE_TRACE) {
        lane->start_bytes = *bytes;
        return VRAM_OK;
    }
    if (lane->count == 0 || lane->event[lane->count - 1] != event) {
        VR_TRY(VR_GROW(lane, event, lane->count + 1));
        VR_TRY(VR_GROW(lane, total, lane->count + 1));
        lane->event[lane->count++] = event;
    }
    lane->total[lane->count - 1] = *bytes;
    return VRAM_OK;
}

static enum vram_status sort_all(const struct vr_view *view, struct sorting *sorting, struct vr_lanes *lanes) {
    const size_t rows = sorting->segments->lifetimes.count;
    VR_TRY(vr_segment_kinds(view, sorting->segments, &sorting->kind));
    sorting->deaths = malloc((rows + 1) * sizeof *sorting->deaths);
    sorting->of = malloc((rows + 1) * sizeof *sorting->of);
    lanes->of = malloc(rows + 1);
    if (sorting->deaths == NULL || sorting->of == NULL || lanes->of == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < rows; row++) VR_TRY(add_lane_row(sorting, row));
    list_deaths(sorting);
    VR_TRY(walk_lanes(sorting, find_peak, sorting));
    VR_TRY(place_lanes(sorting, lanes));
    struct lane_filling filling = {.lanes = lanes, .rows = &sorting->segments->lifetimes};
    return walk_lanes(sorting, fill_totals, &filling);
}

enum vram_status vr_lanes_create(const struct vr_view *view, const struct vr_segment_lives *segments, struct vr_lanes **lanes) {
    struct vr_lanes *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    struct sorting sorting = {.segments = segments};
    vr_hash_index_init(&sorting.index);
    const enum vram_status status = sort_all(view, &sorting, made);
    free(sorting.kind);
    free(sorting.deaths);
    free(sorting.candidate);
    free(sorting.of);
    vr_hash_index_release(&sorting.index);
    if (status == VRAM_OK) *lanes = made;
    if (status != VRAM_OK) vr_lanes_destroy(made);
    return status;
}

void vr_lanes_destroy(struct vr_lanes *lanes) {
    if (lanes == NULL) return;
    for (size_t i = 0; i < VR_MOST_LANES; i++) {
        free(lanes->lane[i].event);
        free(lanes->lane[i].total);
    }
    free(lanes->of);
    free(lanes);
}

uint64_t vr_lane_largest(const struct vr_lane *lane, size_t first, size_t end) {
    assert(first <= end);
    size_t at;
    VR_LOWER_BOUND(at, i, 0, lane->count, lane->event[i] < first);
    uint64_t largest = at == 0 ? lane->start_bytes : lane->total[at - 1];
    for (; at < lane->count && lane->event[at] < end; at++) largest = lane->total[at] > largest ? lane->total[at] : largest;
    return largest;
}

static bool lane_holds(const struct vr_lane *lane) {
    if (lane->start_bytes > lane->peak_bytes) return false;
    for (size_t i = 0; i < lane->count; i++) {
        if (lane->total[i] > lane->peak_bytes || (i != 0 && lane->event[i] <= lane->event[i - 1])) return false;
    }
    return true;
}

bool vr_lanes_check(const struct vr_lanes *lanes, const struct vr_segment_lives *segments) {
    uint64_t live = 0, total = 0;
    for (size_t row = 0; row < segments->lifetimes.count; row++) {
        if (lanes->of[row] >= lanes->count) return false;
        if (segments->lifetimes.death[row] == VR_NEVER) live += segments->lifetimes.size_bytes[row];
    }
    for (size_t i = 0; i < lanes->count; i++) {
        const struct vr_lane *lane = &lanes->lane[i];
        if (!lane_holds(lane)) return false;
        total += lane->count == 0 ? lane->start_bytes : lane->total[lane->count - 1];
    }
    return total == live;
}
