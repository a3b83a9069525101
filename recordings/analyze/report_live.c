// One notion's facts: totals, who held the peak, and the longest lives.
#include "analyze/report_parts.h"

static uint32_t row_age(const struct vr_lifetimes *lifetimes, size_t row) { return lifetimes->death[row] - lifetimes->birth[row]; }

// Does the life of row a come before that of row b in the list of the longest: longer, larger, earlier.
static bool lives_longer(const struct vr_lifetimes *lifetimes, size_t a, size_t b) {
    if (row_age(lifetimes, a) != row_age(lifetimes, b)) return row_age(lifetimes, a) > row_age(lifetimes, b);
    if (lifetimes->size_bytes[a] != lifetimes->size_bytes[b]) return lifetimes->size_bytes[a] > lifetimes->size_bytes[b];
    return a < b;
}

// The rows of the longest completed lives in order; returns how many.
static size_t select_longest(const struct vr_lifetimes *lifetimes, size_t top, size_t *rows) {
    size_t kept = 0;
    for (size_t i = lifetimes->start_count; i < lifetimes->count && top != 0; i++) {
        if (lifetimes->death[i] == VR_NEVER) continue;
        if (kept == top && !lives_longer(lifetimes, i, rows[top - 1])) continue;
        if (kept < top) kept++;
        size_t at = kept - 1;
        for (; at > 0 && lives_longer(lifetimes, i, rows[at - 1]); at--) rows[at] = rows[at - 1];
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
        // Unsigned, since times of a damaged file may be as far apart as numbers go.
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
