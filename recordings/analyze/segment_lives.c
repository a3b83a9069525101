// Finds every reservation of one device with its beginning and end.
#include "analyze/segment_lives.h"

// One word more than needed, so that looking just past the last one is safe.
static size_t words_for(size_t limit) { return limit / 64 + 2; }

enum vram_status vr_ordered_init(struct vr_ordered *set, size_t limit) {
    struct vr_ordered made = {.levels = 0};
    for (size_t words = words_for(limit);; words = words_for(words)) {
        made.level[made.levels] = calloc(words, sizeof(uint64_t));
        if (made.level[made.levels] == NULL) {
            vr_ordered_release(&made);
            return VRAM_NO_HOST_MEMORY;
        }
        made.levels++;
        if (words <= 2 || made.levels == VR_ORDERED_LEVELS) break;
    }
    *set = made;
    return VRAM_OK;
}

void vr_ordered_release(struct vr_ordered *set) {
    for (unsigned level = 0; level < set->levels; level++) free(set->level[level]);
    *set = (struct vr_ordered){.levels = 0};
}

void vr_ordered_add(struct vr_ordered *set, size_t number) {
    for (unsigned level = 0; level < set->levels; level++, number /= 64) set->level[level][number / 64] |= (uint64_t)1 << (number % 64);
}

void vr_ordered_remove(struct vr_ordered *set, size_t number) {
    for (unsigned level = 0; level < set->levels; level++, number /= 64) {
        set->level[level][number / 64] &= ~((uint64_t)1 << (number % 64));
        if (set->level[level][number / 64] != 0) return;
    }
}

// Descends from a member of a level to the first (or last) member of the lowest level below it.
static size_t descend_level(const struct vr_ordered *set, unsigned level, size_t number, bool first) {
    while (level-- > 0) {
        const uint64_t word = set->level[level][number];
        number = number * 64 + (size_t)(first ? __builtin_ctzll(word) : 63 - __builtin_clzll(word));
    }
    return number;
}

size_t vr_ordered_next(const struct vr_ordered *set, size_t number) {
    for (unsigned level = 0; level < set->levels; level++) {
        const uint64_t rest = set->level[level][number / 64] >> (number % 64);
        if (rest != 0) return descend_level(set, level, number + (size_t)__builtin_ctzll(rest), true);
        if (level + 1 == set->levels && number / 64 == 0 && set->level[level][1] != 0)
            return descend_level(set, level, 64 + (size_t)__builtin_ctzll(set->level[level][1]), true);
        number = number / 64 + 1;
    }
    return SIZE_MAX;
}

size_t vr_ordered_previous(const struct vr_ordered *set, size_t number) {
    for (unsigned level = 0; level < set->levels; level++) {
        const uint64_t rest = set->level[level][number / 64] << (63 - number % 64);
        if (rest != 0) return descend_level(set, level, number - (size_t)__builtin_clzll(rest), false);
        if (number / 64 == 0) return SIZE_MAX;
        number = number / 64 - 1;
    }
    return SIZE_MAX;
}

// Memory reserved by one event (or one final segment); split where a part of it ended earlier.
struct segment_piece {
    uint64_t address, end;
    uint64_t source; // final segment of the view, or segment_count + event
    uint32_t birth, death;
};

// The reserved memory during the walk over the history. All addresses where a piece can begin or end are collected beforehand.
struct walk {
    const struct vr_view *view;
    uint32_t *event; // events that reserve or release
    size_t event_count;
    uint64_t *place; // ascending, distinct
    size_t place_count;
    struct vr_ordered begins; // places where a live piece begins
    uint32_t *live;           // by place: 1 + the piece that begins there
    struct segment_piece *pieces;
    size_t count, capacity;
};

static bool adds_memory(uint8_t action) { return action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_MAP; }
static bool removes_memory(uint8_t action) { return action == VR_ACTION_SEGMENT_FREE || action == VR_ACTION_SEGMENT_UNMAP; }

// Computes the range of an event that reserves or releases; returns false if it is empty or exceeds the address space.
static bool range_of(const struct vr_history *history, size_t event, uint64_t *address, uint64_t *end) {
    *address = history->address[event];
    return history->size_bytes[event] != 0 && vr_add_u64(*address, history->size_bytes[event], end);
}

static bool segment_range(const struct vr_view *view, size_t i, uint64_t *address, uint64_t *end) {
    const struct vr_segments *segments = &view->model->segments;
    *address = segments->address[view->segments[i]];
    return segments->total_bytes[view->segments[i]] != 0 && vr_add_u64(*address, segments->total_bytes[view->segments[i]], end);
}

static enum vram_status find_events(struct walk *walk) {
    const struct vr_history *history = walk->view->history;
    bool wanted[UINT8_MAX + 1] = {false};
    size_t count = 0;
    for (unsigned a = 0; a < VR_ACTION_COUNT; a++) wanted[a] = adds_memory((uint8_t)a) || removes_memory((uint8_t)a);
    for (size_t i = 0; i < history->count; i++) count += wanted[history->action[i]];
    walk->event = malloc((count + 1) * sizeof *walk->event);
    if (walk->event == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; walk->event_count < count; i++) {
        if (wanted[history->action[i]]) walk->event[walk->event_count++] = (uint32_t)i;
    }
    return VRAM_OK;
}

static enum vram_status find_places(struct walk *walk) {
    const struct vr_history *history = walk->view->history;
    const size_t most = 2 * (walk->view->segment_count + walk->event_count);
    walk->place = malloc((most + 1) * sizeof *walk->place);
    walk->live = calloc(most + 1, sizeof *walk->live);
    if (walk->place == NULL || walk->live == NULL) return VRAM_NO_HOST_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < walk->view->segment_count; i++) {
        if (segment_range(walk->view, i, &walk->place[count], &walk->place[count + 1])) count += 2;
    }
    for (size_t i = 0; i < walk->event_count; i++) {
        if (range_of(history, walk->event[i], &walk->place[count], &walk->place[count + 1])) count += 2;
    }
    if (count != 0) qsort(walk->place, count, sizeof *walk->place, vr_order_u64);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || walk->place[i] != walk->place[walk->place_count - 1]) walk->place[walk->place_count++] = walk->place[i];
    }
    return vr_ordered_init(&walk->begins, walk->place_count + 1);
}

static size_t piece_place(const struct walk *walk, uint64_t address) {
    size_t place;
    VR_LOWER_BOUND(place, i, 0, walk->place_count, walk->place[i] < address);
    return place;
}

static enum vram_status begin_piece(struct walk *walk, const struct segment_piece *piece) {
    if (walk->count >= UINT32_MAX - 1) return VRAM_LIMIT;
    VR_TRY(vr_grow((void **)&walk->pieces, &walk->capacity, walk->count + 1, sizeof *walk->pieces));
    walk->pieces[walk->count++] = *piece;
    const size_t place = piece_place(walk, piece->address);
    walk->live[place] = (uint32_t)walk->count;
    vr_ordered_add(&walk->begins, place);
    return VRAM_OK;
}

// Splits the live piece that begins at a place, so that one begins at `address`.
static enum vram_status cut_piece(struct walk *walk, size_t place, uint64_t address) {
    struct segment_piece upper = walk->pieces[walk->live[place] - 1];
    upper.address = address;
    walk->pieces[walk->live[place] - 1].end = address;
    return begin_piece(walk, &upper);
}

// Ends everything in [address, end), which must be places.
static enum vram_status clear_range(struct walk *walk, uint64_t address, uint64_t end, uint32_t event) {
    size_t place = piece_place(walk, address);
    const size_t below = vr_ordered_previous(&walk->begins, place);
    if (below != SIZE_MAX && below != place && walk->pieces[walk->live[below] - 1].end > address) VR_TRY(cut_piece(walk, below, address));
    for (place = vr_ordered_next(&walk->begins, place); place != SIZE_MAX && walk->place[place] < end;
         place = vr_ordered_next(&walk->begins, place)) {
        if (walk->pieces[walk->live[place] - 1].end > end) VR_TRY(cut_piece(walk, place, end));
        walk->pieces[walk->live[place] - 1].death = event;
        walk->live[place] = 0;
        vr_ordered_remove(&walk->begins, place);
    }
    return VRAM_OK;
}

static enum vram_status reserve_address(struct walk *walk, uint64_t address, uint64_t end, uint32_t event, uint64_t source) {
    VR_TRY(clear_range(walk, address, end, event));
    return begin_piece(walk, &(struct segment_piece){address, end, source, event, VR_NEVER});
}

// Walks from the final segments back to the state before event 0.
static enum vram_status undo_segments(struct walk *walk) {
    const struct vr_history *history = walk->view->history;
    uint64_t address, end;
    for (size_t i = 0; i < walk->view->segment_count; i++) {
        if (segment_range(walk->view, i, &address, &end)) VR_TRY(reserve_address(walk, address, end, VR_BEFORE_TRACE, i));
    }
    for (size_t i = walk->event_count; i-- > 0;) {
        const uint32_t event = walk->event[i];
        if (!range_of(history, event, &address, &end)) continue;
        if (adds_memory(history->action[event]))
            VR_TRY(clear_range(walk, address, end, 0));
        else
            VR_TRY(reserve_address(walk, address, end, VR_BEFORE_TRACE, walk->view->segment_count + event));
    }
    return VRAM_OK;
}

// Drops pieces that are not live.
static enum vram_status keep_live(struct walk *walk) {
    size_t kept = 0;
    for (size_t place = vr_ordered_next(&walk->begins, 0); place != SIZE_MAX; place = vr_ordered_next(&walk->begins, place + 1)) kept++;
    struct segment_piece *pieces = malloc((kept + 1) * sizeof *pieces);
    if (pieces == NULL) return VRAM_NO_HOST_MEMORY;
    kept = 0;
    for (size_t place = vr_ordered_next(&walk->begins, 0); place != SIZE_MAX; place = vr_ordered_next(&walk->begins, place + 1)) {
        pieces[kept++] = walk->pieces[walk->live[place] - 1];
        walk->live[place] = (uint32_t)kept;
    }
    free(walk->pieces);
    walk->pieces = pieces;
    walk->count = kept;
    walk->capacity = kept + 1;
    return VRAM_OK;
}

static enum vram_status walk_segments(struct walk *walk) {
    const struct vr_history *history = walk->view->history;
    for (size_t i = 0; i < walk->event_count; i++) {
        const uint32_t event = walk->event[i];
        uint64_t address, end;
        if (!range_of(history, event, &address, &end)) continue;
        if (removes_memory(history->action[event]))
            VR_TRY(clear_range(walk, address, end, event));
        else
            VR_TRY(reserve_address(walk, address, end, event, walk->view->segment_count + event));
    }
    return VRAM_OK;
}

static int by_birth(const void *a, const void *b) {
    const struct segment_piece *x = a, *y = b;
    const uint32_t born_x = x->birth + 1, born_y = y->birth + 1; // pieces from before the recording come first
    if (born_x != born_y) return VR_ORDER(born_x, born_y);
    return VR_ORDER(x->address, y->address);
}

static enum vram_status allocate_lives(struct vr_segment_lives *lives, size_t count) {
    struct vr_lifetimes *rows = &lives->lifetimes;
    rows->address = malloc((count + 1) * sizeof *rows->address);
    rows->size_bytes = malloc((count + 1) * sizeof *rows->size_bytes);
    rows->birth = malloc((count + 1) * sizeof *rows->birth);
    rows->death = malloc((count + 1) * sizeof *rows->death);
    rows->stack = malloc((count + 1) * sizeof *rows->stack);
    lives->stream = malloc((count + 1) * sizeof *lives->stream);
    lives->pool_first = calloc(count + 1, sizeof *lives->pool_first);
    lives->pool_second = calloc(count + 1, sizeof *lives->pool_second);
    lives->flags = calloc(count + 1, sizeof *lives->flags);
    lives->by_address = malloc((count + 1) * sizeof *lives->by_address);
    const bool good = rows->address != NULL && rows->size_bytes != NULL && rows->birth != NULL && rows->death != NULL &&
                      rows->stack != NULL && lives->stream != NULL && lives->pool_first != NULL && lives->pool_second != NULL &&
                      lives->flags != NULL && lives->by_address != NULL;
    return good ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}

static void put_segment_life(const struct vr_view *view, struct vr_segment_lives *lives, size_t row, size_t segment, bool with_stack) {
    const struct vr_segments *segments = &view->model->segments;
    lives->pool_first[row] = segments->pool_first[segment];
    lives->pool_second[row] = segments->pool_second[segment];
    lives->flags[row] |= (segments->has[segment] & VR_HAS_POOL_ID) != 0 ? VR_SEGMENT_POOL_KNOWN : 0;
    lives->flags[row] |= segments->expandable[segment] ? VR_SEGMENT_MAPPED : 0;
    if (!with_stack) return;
    lives->stream[row] = segments->stream[segment];
    lives->lifetimes.stack[row] = segments->stack[segment];
}

// Returns the final segment that contains an address; SIZE_MAX if none exists. `order`: the view's segments by address.
static size_t final_segment(const struct vr_view *view, const uint64_t *order, uint64_t address) {
    const struct vr_segments *segments = &view->model->segments;
    size_t above;
    VR_LOWER_BOUND(above, i, 0, view->segment_count, order[2 * i] <= address);
    if (above == 0) return SIZE_MAX;
    const size_t segment = (size_t)order[2 * above - 1];
    return address - segments->address[segment] < segments->total_bytes[segment] ? segment : SIZE_MAX;
}

static void put_piece(const struct vr_view *view, struct vr_segment_lives *lives, const uint64_t *order,
                      const struct segment_piece *piece) {
    const struct vr_history *history = view->history;
    struct vr_lifetimes *rows = &lives->lifetimes;
    const size_t row = rows->count++;
    rows->address[row] = piece->address;
    rows->size_bytes[row] = piece->end - piece->address;
    rows->birth[row] = piece->birth;
    rows->death[row] = piece->death;
    rows->stack[row] = 0;
    rows->start_count += piece->birth == VR_BEFORE_TRACE;
    if (piece->source < view->segment_count) {
        put_segment_life(view, lives, row, view->segments[piece->source], true);
        return;
    }
    const size_t event = (size_t)(piece->source - view->segment_count);
    const uint8_t action = history->action[event];
    lives->stream[row] = vr_entry_stream(history, event);
    lives->flags[row] = action == VR_ACTION_SEGMENT_MAP || action == VR_ACTION_SEGMENT_UNMAP ? VR_SEGMENT_MAPPED : 0;
    if (piece->birth != VR_BEFORE_TRACE) rows->stack[row] = history->stack[event];
    const size_t segment = piece->death == VR_NEVER ? final_segment(view, order, piece->address) : SIZE_MAX;
    if ((vr_entry_has(history, event) & VR_HAS_POOL_ID) != 0) {
        lives->pool_first[row] = history->pool_first[event];
        lives->pool_second[row] = history->pool_second[event];
        lives->flags[row] |= VR_SEGMENT_POOL_KNOWN;
    } else if (segment != SIZE_MAX) {
        put_segment_life(view, lives, row, segment, false);
    }
}

static enum vram_status sort_by_address(struct vr_segment_lives *lives) {
    const size_t count = lives->lifetimes.count;
    uint64_t *pairs = malloc((count + 1) * 2 * sizeof *pairs);
    if (pairs == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) {
        pairs[2 * i] = lives->lifetimes.address[i];
        pairs[2 * i + 1] = i;
    }
    if (count != 0) qsort(pairs, count, 2 * sizeof *pairs, vr_order_u64_pair);
    for (size_t i = 0; i < count; i++) lives->by_address[i] = (uint32_t)pairs[2 * i + 1];
    free(pairs);
    return VRAM_OK;
}

static int lives_by_event(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return VR_ORDER(x, y);
}

// Counts the rows live before event 0, and the most rows live at once.
static enum vram_status count_live(struct vr_lifetimes *rows) {
    uint32_t *deaths = malloc((rows->count + 1) * sizeof *deaths);
    if (deaths == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(deaths, rows->death, rows->count * sizeof *deaths);
    qsort(deaths, rows->count, sizeof *deaths, lives_by_event);
    rows->start.count = rows->start_count;
    rows->peak.count = rows->start_count;
    for (size_t row = rows->start_count, dead = 0; row < rows->count; row++) {
        while (deaths[dead] <= rows->birth[row]) dead++;
        if (row + 1 - dead > rows->peak.count) rows->peak.count = row + 1 - dead;
    }
    free(deaths);
    return VRAM_OK;
}

static enum vram_status put_pieces(struct walk *walk, struct vr_segment_lives *lives) {
    const struct vr_view *view = walk->view;
    uint64_t *order = malloc((view->segment_count + 1) * 2 * sizeof *order);
    if (order == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < view->segment_count; i++) {
        order[2 * i] = view->model->segments.address[view->segments[i]];
        order[2 * i + 1] = view->segments[i];
    }
    if (view->segment_count != 0) qsort(order, view->segment_count, 2 * sizeof *order, vr_order_u64_pair);
    enum vram_status status = allocate_lives(lives, walk->count);
    if (walk->count != 0) qsort(walk->pieces, walk->count, sizeof *walk->pieces, by_birth);
    for (size_t i = 0; i < walk->count && status == VRAM_OK; i++) put_piece(view, lives, order, &walk->pieces[i]);
    free(order);
    if (status == VRAM_OK) status = sort_by_address(lives);
    return status == VRAM_OK ? count_live(&lives->lifetimes) : status;
}

static enum vram_status build_lives(struct walk *walk, struct vr_segment_lives *lives) {
    VR_TRY(find_events(walk));
    VR_TRY(find_places(walk));
    VR_TRY(undo_segments(walk));
    VR_TRY(keep_live(walk));
    VR_TRY(walk_segments(walk));
    return put_pieces(walk, lives);
}

enum vram_status vr_segment_lives_build(const struct vr_view *view, struct vr_segment_lives *lives) {
    if (view->history->count > UINT32_MAX / 4) return VRAM_LIMIT;
    struct walk walk = {.view = view};
    struct vr_segment_lives made = {.stream = NULL};
    const enum vram_status status = build_lives(&walk, &made);
    free(walk.event);
    free(walk.place);
    free(walk.live);
    free(walk.pieces);
    vr_ordered_release(&walk.begins);
    if (status == VRAM_OK) *lives = made;
    if (status != VRAM_OK) vr_segment_lives_release(&made);
    return status;
}

void vr_segment_lives_release(struct vr_segment_lives *lives) {
    vr_lifetimes_release(&lives->lifetimes);
    free(lives->stream);
    free(lives->pool_first);
    free(lives->pool_second);
    free(lives->flags);
    free(lives->by_address);
    *lives = (struct vr_segment_lives){.stream = NULL};
}

// Maximum number of rows to look at for one address, which may have been reserved many times.
enum { MOST_LOOKED_AT = 4096 };

size_t vr_segment_lives_find(const struct vr_segment_lives *lives, uint64_t address, int64_t event) {
    const struct vr_lifetimes *rows = &lives->lifetimes;
    size_t above;
    VR_LOWER_BOUND(above, i, 0, rows->count, rows->address[lives->by_address[i]] <= address);
    for (size_t looked = 0; above-- > 0 && looked < MOST_LOOKED_AT; looked++) {
        const size_t row = lives->by_address[above];
        if (address - rows->address[row] < rows->size_bytes[row] && vr_lifetimes_live_at(rows, row, event)) return row;
    }
    return SIZE_MAX;
}
