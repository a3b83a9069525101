// Prints the allocator's counters: as JSON with PyTorch's flat keys, and as PyTorch's memory summary.
#include <stdio.h>

#include "base/text.h"
#include "os/once.h"
#include "vram/stats.h"

// --- JSON -----------------------------------------------------------------------------------------------------------------
enum counter_shape {
    SHAPE_POOLS,
    SHAPE_STAT,
    SHAPE_NUMBER,
    SHAPE_OURS /* PyTorch has no such key, so it is written only if it is not 0 */
};

struct stat_row {
    const char *name;
    size_t field; // offset in struct vram_stats
    enum counter_shape shape;
};

static const struct stat_row counters[] = {
#define FAMILY_ROW(name, is_bytes, text) {#name, offsetof(struct vram_stats, name), SHAPE_POOLS},
    VRAM_STAT_FAMILIES(FAMILY_ROW)
#undef FAMILY_ROW
#define SCALAR_ROW(name, text) {#name, offsetof(struct vram_stats, name), SHAPE_NUMBER},
        VRAM_STAT_SCALARS(SCALAR_ROW)
#undef SCALAR_ROW
            {"oversize_allocations", offsetof(struct vram_stats, oversize_allocations), SHAPE_STAT},
    {"oversize_segments", offsetof(struct vram_stats, oversize_segments), SHAPE_STAT},
    {"moved_bytes", offsetof(struct vram_stats, moved_bytes), SHAPE_OURS},
};

// Prints one member, preceded by a comma unless it is the first.
static void print_member(struct vr_sink *sink, const char *name, const char *pool, const char *field, int64_t value) {
    vr_sink_printf(sink, "%s\n  \"%s%s%s\": %lld", sink->length == 1 ? "" : ",", name, pool, field, (long long)value);
}

static void print_stat(struct vr_sink *sink, const char *name, const char *pool, const struct vram_stat *stat) {
    print_member(sink, name, pool, ".allocated", stat->allocated);
    print_member(sink, name, pool, ".current", stat->current);
    print_member(sink, name, pool, ".freed", stat->freed);
    print_member(sink, name, pool, ".peak", stat->peak);
}

static void print_counter(struct vr_sink *sink, const struct stat_row *counter, const struct vram_stats *stats) {
    const void *field = (const char *)stats + counter->field;
    const struct vram_stat *stat = field;
    switch (counter->shape) {
    case SHAPE_POOLS:
        print_stat(sink, counter->name, ".all", &stat[VRAM_STAT_ALL]);
        print_stat(sink, counter->name, ".large_pool", &stat[VRAM_STAT_LARGE_POOL]);
        print_stat(sink, counter->name, ".small_pool", &stat[VRAM_STAT_SMALL_POOL]);
        break;
    case SHAPE_STAT: print_stat(sink, counter->name, "", stat); break;
    case SHAPE_NUMBER: print_member(sink, counter->name, "", "", *(const int64_t *)field); break;
    case SHAPE_OURS:
        if (*(const int64_t *)field != 0) print_member(sink, counter->name, "", "", *(const int64_t *)field);
        break;
    }
}

// Rows sorted by name, which sorts the keys by byte. A name that is a prefix of another comes first in both orders, because '.' is less
// than '_'.
static const struct stat_row *sorted[VR_COUNT_OF(counters)];

static void sort_rows(void) {
    for (size_t i = 0; i < VR_COUNT_OF(counters); i++) {
        size_t at = i;
        for (; at > 0 && strcmp(sorted[at - 1]->name, counters[i].name) > 0; at--) sorted[at] = sorted[at - 1];
        sorted[at] = &counters[i];
    }
}

size_t vram_stats_json(const struct vram_stats *stats, char *text, size_t capacity) {
    if (stats == NULL) return vr_sink_begin(text, capacity).length;
    static struct vr_once once;
    vr_once(&once, sort_rows);
    struct vr_sink sink = vr_sink_begin(text, capacity);
    vr_sink_printf(&sink, "{");
    for (size_t i = 0; i < VR_COUNT_OF(counters); i++) print_counter(&sink, sorted[i], stats);
    vr_sink_printf(&sink, "\n}\n");
    return sink.length;
}

// --- the summary ------------------------------------------------------------------------------------------------------------
// Widths, units and limits: see allocator.md §counters.
struct metric {
    const char *title;
    size_t field;
    bool is_bytes;
    bool has_pools;
};

static const struct metric metrics[] = {
    {"Allocated memory", offsetof(struct vram_stats, allocated_bytes), true, true},
    {"Active memory", offsetof(struct vram_stats, active_bytes), true, true},
    {"Requested memory", offsetof(struct vram_stats, requested_bytes), true, true},
    {"GPU reserved memory", offsetof(struct vram_stats, reserved_bytes), true, true},
    {"Non-releasable memory", offsetof(struct vram_stats, inactive_split_bytes), true, true},
    {"Allocations", offsetof(struct vram_stats, allocation), false, true},
    {"Active allocs", offsetof(struct vram_stats, active), false, true},
    {"GPU reserved segments", offsetof(struct vram_stats, segment), false, true},
    {"Non-releasable allocs", offsetof(struct vram_stats, inactive_split), false, true},
    {"Oversize allocations", offsetof(struct vram_stats, oversize_allocations), false, false},
    {"Oversize GPU segments", offsetof(struct vram_stats, oversize_segments), false, false},
};

static int64_t divide_down(int64_t value, int64_t divisor) { return value / divisor - (value % divisor < 0); }

// Prints one cell with its border. `guide`, the value in the group's first row, chooses the column's unit.
static void print_cell(struct vr_sink *sink, bool is_bytes, int64_t value, int64_t guide) {
    static const char *const units[2][6] = {{" ", "K", "M"}, {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"}};
    const int64_t step = is_bytes ? 1024 : 1000;
    const double limit = is_bytes ? 768.0 * 1024.0 : 750.0 * 1000.0;
    const size_t last = is_bytes ? 5 : 2;
    double rest = (double)guide;
    size_t unit = 0;
    for (; unit < last && rest >= limit; unit++) {
        rest /= (double)step;
        value = divide_down(value, step);
    }
    if (is_bytes)
        vr_sink_printf(sink, " %6lld %s |", (long long)value, units[1][unit]);
    else
        vr_sink_printf(sink, " %7lld %s  |", (long long)value, units[0][unit]);
}

static void print_stat_row(struct vr_sink *sink, const char *title, bool is_bytes, const struct vram_stat *stat,
                           const struct vram_stat *guide) {
    vr_sink_printf(sink, "| %-21s |", title);
    print_cell(sink, is_bytes, stat->current, guide->current);
    print_cell(sink, is_bytes, stat->peak, guide->peak);
    print_cell(sink, is_bytes, stat->allocated, guide->allocated);
    print_cell(sink, is_bytes, stat->freed, guide->freed);
    vr_sink_printf(sink, "\n");
}

static void print_rule(struct vr_sink *sink, char c) {
    char rule[76];
    memset(rule, c, 75);
    rule[75] = '\0';
    vr_sink_printf(sink, "|%s|\n", rule);
}

size_t vram_stats_summary(const struct vram_stats *stats, uint32_t device, int abbreviated, char *text, size_t capacity) {
    if (stats == NULL) return vr_sink_begin(text, capacity).length;
    struct vr_sink sink = vr_sink_begin(text, capacity);
    print_rule(&sink, '=');
    vr_sink_printf(&sink, "|%18s%s%-18u |\n", "", "vram: CUDA memory summary, device ID  ", device);
    print_rule(&sink, '-');
    vr_sink_printf(&sink, "|%12sCUDA OOMs: %-12lld |%8scudaMalloc retries: %-8lld  |\n", "", (long long)stats->num_ooms, "",
                   (long long)stats->num_alloc_retries);
    print_rule(&sink, '=');
    vr_sink_printf(&sink, "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n");
    for (size_t i = 0; i < VR_COUNT_OF(metrics); i++) {
        const struct metric *metric = &metrics[i];
        const struct vram_stat *stat = (const void *)((const char *)stats + metric->field);
        print_rule(&sink, '-');
        print_stat_row(&sink, metric->title, metric->is_bytes, &stat[VRAM_STAT_ALL], stat);
        if (abbreviated || !metric->has_pools) continue;
        print_stat_row(&sink, "      from large pool", metric->is_bytes, &stat[VRAM_STAT_LARGE_POOL], stat);
        print_stat_row(&sink, "      from small pool", metric->is_bytes, &stat[VRAM_STAT_SMALL_POOL], stat);
    }
    print_rule(&sink, '=');
    return sink.length;
}
