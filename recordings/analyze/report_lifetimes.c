// Computes a report's facts about lifetimes: totals, call sites at the peak, the longest lifetimes, and memory that waited for other
// streams.
#include "analyze/report_parts.h"

// A lifetime kept during the pass.
struct kept_life {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t birth; // event, or VR_BEFORE_TRACE
    uint32_t death; // event, or VR_NEVER
    uint32_t stack;
    bool always; // live at an out-of-memory error, or at the end
};

// The progress of one kind of lifetime. Totals are relative to those before event 0, as two's complement.
struct course {
    struct vr_report_lifetimes *out;
    uint64_t bytes, count;
    uint64_t peak_bytes, peak_count;
    uint64_t run_bytes; // maximum in this run of events
    int64_t peak_event;
    struct kept_life *kept;
    size_t kept_count, kept_capacity;
    // The longest lifetimes so far, sorted, and the least age needed to be among them.
    struct kept_life *longest;
    size_t longest_count;
    uint32_t least_age;
};

// The last event at an address for one kind of lifetime, in half a word of a map's value. 0: no event yet.
#define AFTER_ALLOC(event) ((uint32_t)((event) + 1) << 1 | 1)
#define AFTER_FREE(event)  ((uint32_t)((event) + 1) << 1)
#define EVENT_OF(last)     ((size_t)((last) >> 1) - 1)
enum { HALF_BITS = 32 };

struct pass_forward {
    const struct vr_view *view;
    const struct vr_history *history;
    struct course course[VR_LIFETIME_KINDS];
    struct vr_map last; // by address
    size_t top;
    int64_t last_oom;
    uint64_t largest_bytes; // largest of all sizes
    bool failed;            // out of memory
};

static uint32_t age_of(const struct kept_life *life) { return life->death - life->birth; }

// Orders the longest lifetimes: longer, larger, earlier.
static bool lives_longer(const struct kept_life *a, const struct kept_life *b) {
    if (age_of(a) != age_of(b)) return age_of(a) > age_of(b);
    if (a->size_bytes != b->size_bytes) return a->size_bytes > b->size_bytes;
    return a->birth < b->birth;
}

// Enters an ended lifetime in the list of the longest; returns false if it is too short.
static bool enter_longest(struct pass_forward *pass, struct course *course, const struct kept_life *life) {
    struct kept_life *longest = course->longest;
    const bool full = course->longest_count == pass->top;
    if (pass->top == 0 || (full && !lives_longer(life, &longest[pass->top - 1]))) return false;
    size_t at = full ? pass->top - 1 : course->longest_count++;
    for (; at > 0 && lives_longer(life, &longest[at - 1]); at--) longest[at] = longest[at - 1];
    longest[at] = *life;
    course->least_age = course->longest_count == pass->top ? age_of(&longest[pass->top - 1]) : 0;
    return true;
}

static bool is_wanted(const struct pass_forward *pass, const struct course *course, const struct kept_life *life) {
    const bool inherited = life->birth == VR_BEFORE_TRACE;
    if (life->always) return true;
    if ((inherited || (int64_t)life->birth <= course->peak_event) && (int64_t)life->death > course->peak_event) return true;
    if (inherited || pass->top == 0) return false;
    return course->longest_count < pass->top || !lives_longer(&course->longest[pass->top - 1], life);
}

// Makes room for one more; first drops those that a later peak made irrelevant.
static bool make_course_room(struct pass_forward *pass, struct course *course) {
    size_t left = 0;
    if (course->kept_count < course->kept_capacity) return true;
    for (size_t i = 0; i < course->kept_count; i++)
        if (is_wanted(pass, course, &course->kept[i])) course->kept[left++] = course->kept[i];
    course->kept_count = left;
    const size_t wanted = left < course->kept_capacity / 2 ? left + 1 : course->kept_capacity + 1;
    if (vr_grow((void **)&course->kept, &course->kept_capacity, wanted, sizeof *course->kept) != VRAM_OK) pass->failed = true;
    return !pass->failed;
}

static void keep_life(struct pass_forward *pass, struct course *course, const struct kept_life *life) {
    if (make_course_room(pass, course)) course->kept[course->kept_count++] = *life;
}

VR_NOINLINE static void consider_death(struct pass_forward *pass, struct course *course, size_t birth, size_t death) {
    const struct vr_history *history = pass->history;
    const struct kept_life life = {.address = history->address[birth],
                                   .size_bytes = history->size_bytes[birth],
                                   .birth = (uint32_t)birth,
                                   .death = (uint32_t)death,
                                   .stack = history->stack[birth],
                                   .always = pass->last_oom >= (int64_t)birth};
    const bool long_lived = enter_longest(pass, course, &life);
    if (long_lived || life.always || (int64_t)birth <= course->peak_event) keep_life(pass, course, &life);
}

VR_INLINE void end_life(struct pass_forward *pass, struct course *course, size_t birth, size_t death) {
    const uint64_t size = pass->history->size_bytes[birth];
    course->bytes -= size;
    course->count--;
    course->out->born_and_freed.count++;
    course->out->born_and_freed.bytes += size;
    // The row was live at the peak or at the last out-of-memory error if it was born by then, since both are before `death`.
    if (VR_UNLIKELY((int64_t)birth <= course->peak_event || pass->last_oom >= (int64_t)birth || death - birth >= course->least_age))
        consider_death(pass, course, birth, death);
}

VR_INLINE uint32_t begin_life(struct pass_forward *pass, struct course *course, uint32_t last, size_t event, uint64_t size) {
    struct vr_report_lifetimes *out = course->out;
    if (VR_UNLIKELY(last & 1)) {
        out->rows.anomalies[VRAM_ANOMALY_ALLOC_ON_LIVE]++;
        out->rows.anomalies[VRAM_ANOMALY_UNDO_ALLOC_NOT_LIVE]++;
        end_life(pass, course, EVENT_OF(last), event);
    }
    course->bytes += size;
    course->count++;
    if (size > out->largest_bytes) out->largest_bytes = size;
    return AFTER_ALLOC(event);
}

// Handles a free of an allocation that was never made in the history, so it existed before.
VR_NOINLINE static void end_inherited(struct pass_forward *pass, struct course *course, size_t event, uint64_t size) {
    struct vr_report_lifetimes *out = course->out;
    const struct kept_life life = {.address = pass->history->address[event],
                                   .size_bytes = size,
                                   .birth = VR_BEFORE_TRACE,
                                   .death = (uint32_t)event,
                                   .always = pass->last_oom >= 0};
    out->inherited_and_freed.count++;
    out->inherited_and_freed.bytes += size;
    course->bytes -= size;
    course->count--;
    keep_life(pass, course, &life);
}

VR_INLINE uint32_t free_one(struct pass_forward *pass, struct course *course, uint32_t last, size_t event, uint64_t size) {
    uint64_t *anomalies = course->out->rows.anomalies;
    if (VR_LIKELY(last & 1)) {
        const bool differs = pass->history->size_bytes[EVENT_OF(last)] != size;
        anomalies[VRAM_ANOMALY_FREE_SIZE_DIFFERS] += differs;
        anomalies[VRAM_ANOMALY_UNDO_ALLOC_SIZE_DIFFERS] += differs;
        end_life(pass, course, EVENT_OF(last), event);
    } else if (last == 0) {
        end_inherited(pass, course, event, size);
    } else {
        anomalies[VRAM_ANOMALY_FREE_NOT_LIVE]++;
        anomalies[VRAM_ANOMALY_UNDO_FREE_ALREADY_LIVE]++;
    }
    return AFTER_FREE(event);
}

VR_INLINE void watch_total(struct course *course, size_t event) {
    if ((int64_t)course->bytes > (int64_t)course->run_bytes) course->run_bytes = course->bytes;
    if ((int64_t)course->bytes <= (int64_t)course->peak_bytes) return;
    course->peak_bytes = course->bytes;
    course->peak_count = course->count;
    course->peak_event = (int64_t)event;
}

// The effect of each action; an alloc begins both kinds.
enum { BEGINS = 4, ENDS_ALLOCATED = 1 << VR_LIFETIME_ALLOCATED, ENDS_ACTIVE = 1 << VR_LIFETIME_ACTIVE };
static const uint8_t effects[VR_ACTION_COUNT] = {[VR_ACTION_ALLOC] = BEGINS,
                                                 [VR_ACTION_FREE_REQUESTED] = ENDS_ALLOCATED,
                                                 [VR_ACTION_FREE_COMPLETED] = ENDS_ACTIVE,
                                                 [VR_ACTION_FREE] = ENDS_ALLOCATED | ENDS_ACTIVE};

// Returns the slot of an address, adding it if necessary. Returns NULL if the host is out of memory.
VR_INLINE struct vr_map_slot *slot_at(struct vr_map *map, uint64_t address) {
    struct vr_map_slot *slot = vr_map_slot_of(map, address);
    if (VR_LIKELY(slot->value != 0)) return slot;
    if (vr_map_reserve(map, 1) != VRAM_OK) return NULL;
    slot = vr_map_slot_of(map, address);
    slot->key = address;
    map->count++;
    return slot;
}

VR_INLINE void apply_event(struct pass_forward *pass, struct vr_map_slot *slot, uint8_t effect, size_t event) {
    const uint64_t size = pass->history->size_bytes[event];
    struct course *allocated = &pass->course[VR_LIFETIME_ALLOCATED], *active = &pass->course[VR_LIFETIME_ACTIVE];
    uint32_t last_allocated = (uint32_t)slot->value, last_active = (uint32_t)(slot->value >> HALF_BITS);
    if (size > pass->largest_bytes) pass->largest_bytes = size;
    if (effect == BEGINS) {
        last_allocated = begin_life(pass, allocated, last_allocated, event, size);
        last_active = begin_life(pass, active, last_active, event, size);
    } else {
        if (effect & ENDS_ALLOCATED) last_allocated = free_one(pass, allocated, last_allocated, event, size);
        if (effect & ENDS_ACTIVE) last_active = free_one(pass, active, last_active, event, size);
    }
    slot->value = (uint64_t)last_active << HALF_BITS | last_allocated;
    watch_total(allocated, event);
    watch_total(active, event);
}

static void run_events(struct pass_forward *pass, size_t first, size_t end) {
    const struct vr_history *history = pass->history;
    struct vr_map_slot *slot = NULL; // cached, because a free and its completion have the same address
    for (size_t i = first; i < end && !pass->failed; i++) {
        const uint8_t action = history->action[i], effect = effects[action];
        if (effect == 0) {
            if (action == VR_ACTION_OOM) pass->last_oom = (int64_t)i;
            continue;
        }
        if (slot == NULL || slot->key != history->address[i]) slot = slot_at(&pass->last, history->address[i]);
        if (slot == NULL)
            pass->failed = true;
        else
            apply_event(pass, slot, effect, i);
    }
}

static void run_all(struct pass_forward *pass, uint64_t *const totals[VR_LIFETIME_KINDS], size_t point_count) {
    const size_t events = pass->history->count;
    for (size_t p = 0; p < (point_count == 0 ? 1 : point_count); p++) {
        for (size_t k = 0; k < VR_LIFETIME_KINDS; k++) pass->course[k].run_bytes = pass->course[k].bytes;
        run_events(pass, point_count == 0 ? 0 : vr_point_first(events, point_count, p),
                   point_count == 0 ? events : vr_point_first(events, point_count, p + 1));
        for (size_t k = 0; k < VR_LIFETIME_KINDS && point_count != 0; k++) totals[k][p] = pass->course[k].run_bytes;
    }
}

// --- the end of the history -------------------------------------------------------------------------------------------------------

// Collects the live blocks of the final state. Of two blocks at one address the later one counts.
static enum vram_status collect_final(const struct vr_view *view, enum vr_lifetime_kind kind, struct vr_lifetimes *rows) {
    const struct vr_blocks *blocks = &view->model->blocks;
    for (size_t i = 0; i < view->block_count; i++) {
        const uint8_t state = blocks->state[view->blocks[i]];
        if (kind == VR_LIFETIME_ALLOCATED ? !vr_state_allocated(state) : !vr_state_active(state)) continue;
        VR_TRY(vr_map_set(&rows->final_blocks, blocks->address[view->blocks[i]], (uint32_t)i + 1));
    }
    size_t at = 0;
    for (struct vr_map_slot block; vr_map_next(&rows->final_blocks, &at, &block);) {
        rows->final_state.count++;
        rows->final_state.bytes += blocks->requested_bytes[view->blocks[block.value - 1]];
    }
    return VRAM_OK;
}

// Keeps an allocation that was always live: a final block without events at its address.
static void keep_untouched(struct pass_forward *pass, struct course *course, const struct vr_map_slot *block) {
    const struct vr_blocks *blocks = &pass->view->model->blocks;
    const size_t row = pass->view->blocks[block->value - 1];
    const struct kept_life life = {.address = block->key,
                                   .size_bytes = blocks->requested_bytes[row],
                                   .birth = VR_BEFORE_TRACE,
                                   .death = VR_NEVER,
                                   .stack = blocks->stack[row],
                                   .always = true};
    course->out->inherited_and_kept.count++;
    course->out->inherited_and_kept.bytes += life.size_bytes;
    if (life.size_bytes > pass->largest_bytes) pass->largest_bytes = life.size_bytes;
    keep_life(pass, course, &life);
}

// Keeps an allocation live at the end of the history, and compares it with the final block at its address (1 + block; 0: no block).
static void keep_living(struct pass_forward *pass, struct course *course, size_t birth, uint64_t block) {
    const struct vr_history *history = pass->history;
    uint64_t *anomalies = course->out->rows.anomalies;
    const struct kept_life life = {.address = history->address[birth],
                                   .size_bytes = history->size_bytes[birth],
                                   .birth = (uint32_t)birth,
                                   .death = VR_NEVER,
                                   .stack = history->stack[birth],
                                   .always = true};
    anomalies[VRAM_ANOMALY_UNDO_ALLOC_NOT_LIVE] += block == 0;
    anomalies[VRAM_ANOMALY_END_LIVE_NOT_BLOCK] += block == 0;
    anomalies[VRAM_ANOMALY_UNDO_ALLOC_SIZE_DIFFERS] +=
        block != 0 && pass->view->model->blocks.requested_bytes[pass->view->blocks[block - 1]] != life.size_bytes;
    course->out->born_and_kept.count++;
    course->out->born_and_kept.bytes += life.size_bytes;
    keep_life(pass, course, &life);
}

static void meet_end(struct pass_forward *pass, enum vr_lifetime_kind kind) {
    struct course *course = &pass->course[kind];
    struct vr_lifetimes *rows = &course->out->rows;
    const unsigned shift = kind == VR_LIFETIME_ALLOCATED ? 0 : HALF_BITS;
    size_t at = 0;
    for (struct vr_map_slot slot; vr_map_next(&pass->last, &at, &slot);) {
        const uint32_t last = (uint32_t)(slot.value >> shift);
        if (last & 1) keep_living(pass, course, EVENT_OF(last), vr_map_get(&rows->final_blocks, slot.key));
    }
    at = 0;
    for (struct vr_map_slot block; vr_map_next(&rows->final_blocks, &at, &block);) {
        const uint32_t last = (uint32_t)(vr_map_get(&pass->last, block.key) >> shift);
        if (last == 0) keep_untouched(pass, course, &block);
        if (last == 0 || last & 1) continue;
        rows->anomalies[VRAM_ANOMALY_UNDO_FREE_ALREADY_LIVE]++;
        rows->anomalies[VRAM_ANOMALY_END_BLOCK_NOT_LIVE]++;
    }
}

static void settle_totals(struct course *course) {
    struct vr_report_lifetimes *out = course->out;
    struct vr_lifetimes *rows = &out->rows;
    rows->start = (struct vram_report_sum){.count = out->inherited_and_freed.count + out->inherited_and_kept.count,
                                           .bytes = out->inherited_and_freed.bytes + out->inherited_and_kept.bytes};
    rows->peak = (struct vram_report_sum){.count = rows->start.count + course->peak_count, .bytes = rows->start.bytes + course->peak_bytes};
    rows->end = (struct vram_report_sum){.count = rows->start.count + course->count, .bytes = rows->start.bytes + course->bytes};
    rows->peak_event = course->peak_event;
}

// --- rows -------------------------------------------------------------------------------------------------------------------------

// Orders allocations from before the history by address, before the others by birth, which is unique.
static int by_place(const void *a, const void *b) {
    const struct kept_life *x = a, *y = b;
    const uint32_t first = x->birth + 1, second = y->birth + 1; // VR_BEFORE_TRACE + 1 is 0
    return first != second ? VR_ORDER(first, second) : VR_ORDER(x->address, y->address);
}

static enum vram_status make_rows(struct pass_forward *pass, struct course *course) {
    struct vr_lifetimes *rows = &course->out->rows;
    size_t count = 0;
    for (size_t i = 0; i < course->kept_count; i++)
        if (is_wanted(pass, course, &course->kept[i])) course->kept[count++] = course->kept[i];
    if (count != 0) qsort(course->kept, count, sizeof *course->kept, by_place);
    VR_TRY(vr_lifetimes_allocate(rows, count));
    rows->count = count;
    for (size_t i = 0; i < count; i++) {
        const struct kept_life *life = &course->kept[i];
        rows->address[i] = life->address;
        rows->size_bytes[i] = life->size_bytes;
        rows->birth[i] = life->birth;
        rows->death[i] = life->death;
        rows->stack[i] = life->stack;
        rows->start_count += life->birth == VR_BEFORE_TRACE;
    }
    return VRAM_OK;
}

static enum vram_status pass_over(struct pass_forward *pass, uint64_t *const totals[VR_LIFETIME_KINDS], size_t point_count) {
    VR_TRY(vr_map_reserve(&pass->last, 1));
    for (size_t k = 0; k < VR_LIFETIME_KINDS; k++) {
        struct course *course = &pass->course[k];
        course->peak_event = -1;
        course->longest = malloc((pass->top + 1) * sizeof *course->longest);
        if (course->longest == NULL) return VRAM_NO_HOST_MEMORY;
        VR_TRY(collect_final(pass->view, (enum vr_lifetime_kind)k, &course->out->rows));
    }
    run_all(pass, totals, point_count);
    for (size_t k = 0; k < VR_LIFETIME_KINDS && !pass->failed; k++) {
        struct course *course = &pass->course[k];
        meet_end(pass, (enum vr_lifetime_kind)k);
        settle_totals(course);
        for (size_t p = 0; p < point_count; p++) totals[k][p] += course->out->rows.start.bytes;
        if (!pass->failed) VR_TRY(make_rows(pass, course));
    }
    return pass->failed ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

// --- impossible sizes -------------------------------------------------------------------------------------------------------------

static void add_life(struct vram_report_sum *sum, uint64_t bytes) {
    sum->count++;
    sum->bytes += bytes;
}

static void sum_lives(struct vr_report_lifetimes *out) {
    const struct vr_lifetimes *rows = &out->rows;
    for (size_t i = 0; i < rows->count; i++) {
        const uint64_t size = rows->size_bytes[i];
        const bool inherited = i < rows->start_count, freed = rows->death[i] != VR_NEVER;
        if (inherited)
            add_life(freed ? &out->inherited_and_freed : &out->inherited_and_kept, size);
        else
            add_life(freed ? &out->born_and_freed : &out->born_and_kept, size);
        if (!inherited && size > out->largest_bytes) out->largest_bytes = size;
    }
}

// Makes all rows, instead of only those that the report shows: where totals wrap, only the totals before event 0 show which is larger.
static enum vram_status find_by_rows(const struct vr_view *view, uint64_t *const totals[VR_LIFETIME_KINDS], size_t point_count,
                                     struct vr_report_lifetimes found[VR_LIFETIME_KINDS]) {
    struct vr_address_ids addresses = {0};
    VR_TRY(vr_address_ids_build(view, &addresses));
    enum vram_status status = VRAM_OK;
    for (size_t k = 0; k < VR_LIFETIME_KINDS && status == VRAM_OK; k++) {
        uint64_t *to = point_count == 0 ? NULL : totals[k];
        status = vr_lifetimes_build_by(view, &addresses, (enum vr_lifetime_kind)k, to, point_count, &found[k].rows);
        if (status == VRAM_OK) sum_lives(&found[k]);
    }
    vr_address_ids_release(&addresses);
    return status;
}

static bool may_wrap(const struct vr_view *view, uint64_t largest_bytes) {
    return largest_bytes > (uint64_t)INT64_MAX / 2 / (view->history->count + view->block_count + 1);
}

void vr_report_lifetimes_release(struct vr_report_lifetimes found[VR_LIFETIME_KINDS]) {
    for (size_t k = 0; k < VR_LIFETIME_KINDS; k++) {
        vr_lifetimes_release(&found[k].rows);
        found[k] = (struct vr_report_lifetimes){.largest_bytes = 0};
    }
}

enum vram_status vr_report_lifetimes_find(const struct vr_view *view, size_t top, uint64_t *const totals[VR_LIFETIME_KINDS],
                                          size_t point_count, struct vr_report_lifetimes found[VR_LIFETIME_KINDS]) {
    // 1 + event and one bit must fit in half a word.
    if (view->history->count > UINT32_MAX / 4 || view->block_count > UINT32_MAX / 4) return VRAM_LIMIT;
    struct pass_forward pass = {.view = view, .history = view->history, .top = top, .last_oom = -1};
    for (size_t k = 0; k < VR_LIFETIME_KINDS; k++) {
        found[k] = (struct vr_report_lifetimes){.largest_bytes = 0};
        pass.course[k].out = &found[k];
    }
    enum vram_status status = pass_over(&pass, totals, point_count);
    vr_map_release(&pass.last);
    for (size_t k = 0; k < VR_LIFETIME_KINDS; k++) {
        free(pass.course[k].kept);
        free(pass.course[k].longest);
    }
    if (status == VRAM_OK && may_wrap(view, pass.largest_bytes)) {
        vr_report_lifetimes_release(found);
        status = find_by_rows(view, totals, point_count, found);
    }
    if (status != VRAM_OK) vr_report_lifetimes_release(found);
    return status;
}

// ---- The facts of one kind of lifetime: totals, call sites at the peak, and the longest lifetimes.

static uint32_t row_age(const struct vr_lifetimes *lifetimes, size_t row) { return lifetimes->death[row] - lifetimes->birth[row]; }

// Orders the longest lifetimes: longer, larger, earlier.
static bool row_lives_longer(const struct vr_lifetimes *lifetimes, size_t a, size_t b) {
    if (row_age(lifetimes, a) != row_age(lifetimes, b)) return row_age(lifetimes, a) > row_age(lifetimes, b);
    if (lifetimes->size_bytes[a] != lifetimes->size_bytes[b]) return lifetimes->size_bytes[a] > lifetimes->size_bytes[b];
    return a < b;
}

// Selects the rows of the longest completed lifetimes, sorted; returns their number.
static size_t select_longest(const struct vr_lifetimes *lifetimes, size_t top, size_t *rows) {
    size_t kept = 0;
    for (size_t i = lifetimes->start_count; i < lifetimes->count && top != 0; i++) {
        if (lifetimes->death[i] == VR_NEVER) continue;
        if (kept == top && !row_lives_longer(lifetimes, i, rows[top - 1])) continue;
        if (kept < top) kept++;
        size_t at = kept - 1;
        for (; at > 0 && row_lives_longer(lifetimes, i, rows[at - 1]); at--) rows[at] = rows[at - 1];
        rows[at] = i;
    }
    return kept;
}

static enum vram_status describe_longest(const struct vr_view *view, struct vr_sites *sites, const struct vr_lifetimes *lifetimes,
                                         const size_t *rows, size_t count, struct vr_arena *arena, struct vram_report_live *out) {
    const struct vr_history *history = view->history;
    void *room;
    VR_TRY(vr_arena_array(arena, count, sizeof(struct vram_report_lifetime), &room));
    struct vram_report_lifetime *longest = room;
    for (size_t i = 0; i < count; i++) {
        const size_t row = rows[i];
        const uint32_t birth = lifetimes->birth[row], death = lifetimes->death[row];
        longest[i] = (struct vram_report_lifetime){
            .birth_event = birth, .death_event = death, .address = lifetimes->address[row], .size_bytes = lifetimes->size_bytes[row]};
        longest[i].has_time = (vr_entry_has(history, birth) & vr_entry_has(history, death) & VR_HAS_TIME) != 0;
        // Unsigned, because times of a damaged file may be arbitrarily far apart.
        if (longest[i].has_time) longest[i].elapsed_us = (int64_t)((uint64_t)history->time_us[death] - (uint64_t)history->time_us[birth]);
        VR_TRY(vr_sites_name(sites, vr_sites_frame(sites, lifetimes->stack[row]), arena, &longest[i].site));
    }
    out->longest = longest;
    out->longest_count = count;
    return VRAM_OK;
}

enum vram_status vr_report_live(const struct vr_view *view, struct vr_sites *sites, const struct vr_report_lifetimes *found, size_t top,
                                struct vr_arena *arena, struct vram_report_live *out) {
    const struct vr_lifetimes *lifetimes = &found->rows;
    out->start = lifetimes->start;
    out->peak = lifetimes->peak;
    out->peak_event = lifetimes->peak_event;
    out->end = lifetimes->end;
    out->final_state = lifetimes->final_state;
    out->consistent = true;
    for (size_t a = 0; a < VRAM_ANOMALY_COUNT; a++) {
        out->anomalies[a] = lifetimes->anomalies[a];
        out->consistent = out->consistent && lifetimes->anomalies[a] == 0;
    }
    out->born_and_freed = found->born_and_freed;
    out->born_and_kept = found->born_and_kept;
    out->inherited_and_freed = found->inherited_and_freed;
    out->inherited_and_kept = found->inherited_and_kept;
    out->largest_bytes = found->largest_bytes;
    VR_TRY(vr_sites_at_peak(sites, lifetimes, top, arena, out));

    size_t *rows = malloc((top + 1) * sizeof *rows);
    if (rows == NULL) return VRAM_NO_HOST_MEMORY;
    const size_t count = select_longest(lifetimes, top, rows);
    const enum vram_status status = describe_longest(view, sites, lifetimes, rows, count, arena, out);
    free(rows);
    return status;
}

// ---- Memory that was freed and waited for other streams, at the moment of its maximum.

// The waiting memory, by address.
struct waiting_work {
    const struct vr_history *history;
    struct vr_map born;    // address -> 1 + event of its allocation
    struct vr_map waiting; // address -> 1 + event of its free_requested
    struct vr_map by_site; // frame -> bytes
};

static uint64_t take_waiting(struct waiting_work *work, uint64_t address) {
    const uint64_t since = vr_map_take(&work->waiting, address);
    return since == 0 ? 0 : work->history->size_bytes[since - 1];
}

// Walks the events before `end`. *most_event is the first at which the most waits.
static enum vram_status walk_waiting(struct waiting_work *work, size_t end, size_t *most_event) {
    const struct vr_history *history = work->history;
    uint64_t bytes = 0, most = 0;
    for (size_t i = 0; i < end; i++) {
        const uint64_t address = history->address[i];
        const enum vr_action action = (enum vr_action)history->action[i];
        if (action == VR_ACTION_ALLOC) VR_TRY(vr_map_set(&work->born, address, i + 1));
        if (action == VR_ACTION_ALLOC || action == VR_ACTION_FREE_COMPLETED) bytes -= take_waiting(work, address);
        if (action != VR_ACTION_FREE_REQUESTED) continue;
        bytes -= take_waiting(work, address);
        VR_TRY(vr_map_set(&work->waiting, address, i + 1));
        bytes += history->size_bytes[i];
        if (bytes <= most) continue;
        most = bytes;
        *most_event = i;
    }
    return VRAM_OK;
}

static enum vram_status add_up(struct waiting_work *work, struct vr_sites *sites, struct vram_report_sum *sum, uint32_t *largest) {
    struct vr_map_slot entry;
    size_t at = 0;
    uint64_t most = 0;
    while (vr_map_next(&work->waiting, &at, &entry)) {
        const uint64_t born = vr_map_get(&work->born, entry.key), bytes = work->history->size_bytes[entry.value - 1];
        const uint32_t frame = vr_sites_frame(sites, work->history->stack[(born == 0 ? entry.value : born) - 1]);
        const uint64_t of_site = vr_map_get(&work->by_site, frame) + bytes;
        sum->count++;
        sum->bytes += bytes;
        if (of_site != 0) VR_TRY(vr_map_set(&work->by_site, frame, of_site));
        if (of_site <= most) continue;
        most = of_site;
        *largest = frame;
    }
    return VRAM_OK;
}

enum vram_status vr_report_waiting(const struct vr_view *view, struct vr_sites *sites, struct vr_arena *arena,
                                   struct vram_report_device *out) {
    struct waiting_work work = {.history = view->history};
    uint32_t largest = VR_NO_SITE;
    if (out->active.peak.bytes <= out->allocated.peak.bytes || out->active.peak_event < 0) return VRAM_OK;
    size_t most = 0, again;
    enum vram_status status = walk_waiting(&work, view->history->count, &most);
    vr_map_clear(&work.born);
    vr_map_clear(&work.waiting);
    if (status == VRAM_OK) status = walk_waiting(&work, most + 1, &again);
    out->waiting_event = most;
    if (status == VRAM_OK) status = add_up(&work, sites, &out->waiting, &largest);
    vr_map_release(&work.born);
    vr_map_release(&work.waiting);
    vr_map_release(&work.by_site);
    if (status != VRAM_OK || out->waiting.count == 0) return status;
    out->has_waited_for = out->trace_stream_count == 2;
    if (out->has_waited_for) out->waited_for = out->trace_streams[vr_entry_stream(view->history, 0) == (uint64_t)out->trace_streams[0]];
    return vr_sites_name(sites, largest, arena, &out->waiting_site);
}
