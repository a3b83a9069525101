#include "top_draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "ui.h"
#include "vram/log.h"

enum { BAR = 20, NUMBERS = 46, HEAD_ROWS = 6 };

static const char *const sort_names[] = {"live", "peak", "count", "made"};

// Control characters of a name do not reach the terminal; at most `columns` columns of it.
static void print_cut(const char *text, unsigned columns) {
    unsigned used = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0' && used < columns; c++) {
        putchar(*c < 0x20 || *c == 0x7f ? '?' : *c);
        used += (*c & 0xc0) != 0x80;
    }
    for (; used < columns; used++) putchar(' ');
}

static void colour(const struct top_view *view, const char *code) {
    if (view->style.colour) printf("\x1b[%sm", code);
}

static void end_line(bool live) { printf(live ? "\x1b[K\n" : "\n"); }

static void print_bar(const struct top_view *view, uint64_t part, uint64_t whole) {
    static const char *const eighths[] = {
        "", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d", "\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89"};
    const unsigned filled = whole == 0 ? 0 : (unsigned)((double)part / (double)whole * BAR * 8 + 0.5);
    unsigned used = 0;
    colour(view, "34");
    for (; used < filled / 8; used++) printf("%s", view->style.unicode ? "\xe2\x96\x88" : "#");
    if (view->style.unicode && filled % 8 != 0 && used < BAR) {
        printf("%s", eighths[filled % 8]);
        used++;
    }
    colour(view, "0");
    for (; used < BAR; used++) putchar(' ');
}

// --- what is shown ------------------------------------------------------------------------------------------------------------------
static enum top_sort sorting; // qsort() has no context

static uint64_t sort_value(const struct watch_group *group) {
    const uint64_t values[] = {group->bytes, group->peak_bytes, group->count, group->made};
    return values[sorting];
}

static int by_value(const void *a, const void *b) {
    const struct watch_group *x = *(const struct watch_group *const *)a, *y = *(const struct watch_group *const *)b;
    if (sort_value(x) != sort_value(y)) return sort_value(x) < sort_value(y) ? 1 : -1;
    return strcmp(x->label, y->label);
}

// The groups that the search leaves, in order. *shown is malloc'ed; NULL without memory.
static size_t select_groups(const struct watch *watch, const struct top_view *view, const struct watch_group ***shown) {
    size_t count = 0, kept = 0;
    const struct watch_group *groups = watch_groups(watch, view->by, &count);
    *shown = malloc((count + 1) * sizeof **shown);
    if (*shown == NULL) return 0;
    for (size_t i = 0; i < count; i++)
        if (view->search[0] == '\0' || strstr(groups[i].label, view->search) != NULL) (*shown)[kept++] = &groups[i];
    sorting = view->sort;
    qsort(*shown, kept, sizeof **shown, by_value);
    return kept;
}

static void print_head(const struct watch *watch, const struct top_view *view, bool live) {
    size_t count = 0;
    const struct watch_device *devices = watch_devices(watch, &count);
    const uint64_t seconds = (watch_last_ns(watch) - watch_first_ns(watch)) / 1000000000;
    colour(view, "1");
    ui_put(stdout, view->pid != 0 ? view->program : view->path);
    if (view->pid != 0) printf(" (%d)", view->pid);
    colour(view, "0");
    printf("   %" PRIu64 " event%s, %" PRIu64 ":%02" PRIu64 "%s%s", watch_events(watch), watch_events(watch) == 1 ? "" : "s", seconds / 60,
           seconds % 60, watch_ended(watch) ? ", ended" : "", view->paused ? ", PAUSED" : "");
    end_line(live);
    for (size_t i = 0; i < count; i++) {
        char now[UI_SIZE_CAPACITY], peak[UI_SIZE_CAPACITY], reserved[UI_SIZE_CAPACITY];
        if (devices[i].device == VRAM_LOG_HOST)
            printf("  pinned host ");
        else
            printf("  device %-5" PRIu32, devices[i].device);
        print_bar(view, devices[i].live_bytes, devices[i].peak_bytes);
        printf(" %10s live, %" PRIu64 " block%s, peak %s", ui_size(devices[i].live_bytes, now), devices[i].live_count,
               devices[i].live_count == 1 ? "" : "s", ui_size(devices[i].peak_bytes, peak));
        if (devices[i].reserved_bytes != 0) printf(", reserved %s", ui_size(devices[i].reserved_bytes, reserved));
        if (devices[i].ooms != 0) {
            colour(view, "31");
            printf(", %" PRIu64 " out of memory", devices[i].ooms);
            colour(view, "0");
        }
        end_line(live);
    }
    if (count == 0) {
        printf("  nothing yet");
        end_line(live);
    }
    end_line(live);
}

static void print_titles(const struct top_view *view, unsigned label_columns, bool live) {
    colour(view, "2");
    printf("  by ");
    print_cut(watch_by_name(view->by), label_columns - 3);
    printf("%*s %10s %10s %9s %10s", BAR, "", view->sort == TOP_BY_LIVE ? "[live]" : "live", view->sort == TOP_BY_PEAK ? "[peak]" : "peak",
           view->sort == TOP_BY_COUNT ? "[blocks]" : "blocks", view->sort == TOP_BY_MADE ? "[made]" : "made");
    colour(view, "0");
    end_line(live);
}

static void print_group(const struct top_view *view, const struct watch_group *group, uint64_t most, unsigned label_columns, bool live) {
    char now[UI_SIZE_CAPACITY], peak[UI_SIZE_CAPACITY];
    printf("  ");
    print_cut(group->label, label_columns);
    print_bar(view, sort_value(group), most);
    printf(" %10s %10s %9" PRIu64 " %10" PRIu64, ui_size(group->bytes, now), ui_size(group->peak_bytes, peak), group->count, group->made);
    end_line(live);
}

static void print_foot(const struct top_view *view, bool live) {
    if (!live) return;
    colour(view, "2");
    if (view->searching || view->search[0] != '\0')
        printf("  /%s%s", view->search, view->searching ? "_" : "   (Esc: all)");
    else
        printf("  1 library  2 kind  3 call site  4 stream  5 pool   s sort (%s)   / search   space pause   q end", sort_names[view->sort]);
    colour(view, "0");
    printf("\x1b[K");
}

void top_draw(const struct watch *watch, struct top_view *view, bool live) {
    const struct watch_group **shown = NULL;
    size_t devices = 0;
    (void)watch_devices(watch, &devices);
    const size_t count = select_groups(watch, view, &shown);
    const unsigned width = view->columns < 80 ? 80 : view->columns > 160 ? 160 : view->columns;
    const unsigned label_columns = width - BAR - NUMBERS;
    const size_t head = HEAD_ROWS - 1 + (devices == 0 ? 1 : devices);
    const size_t room = !live ? count : view->rows > head + 1 ? view->rows - head - 1 : 1;
    if (view->first + room > count) view->first = count > room ? count - room : 0;
    if (live) printf("\x1b[H");
    print_head(watch, view, live);
    print_titles(view, label_columns, live);
    const uint64_t most = count == 0 ? 0 : sort_value(shown[0]);
    for (size_t i = view->first; i < count && i < view->first + room; i++) print_group(view, shown[i], most, label_columns, live);
    if (live) printf("\x1b[J\n");
    print_foot(view, live);
    free(shown);
}

// --- JSON -------------------------------------------------------------------------------------------------------------------------------
static void put_device(struct vr_json *json, const struct watch_device *device) {
    vr_json_object(json, NULL);
    if (device->device == VRAM_LOG_HOST)
        vr_json_string(json, "device", "host");
    else
        vr_json_u64(json, "device", device->device);
    vr_json_u64(json, "live_bytes", device->live_bytes);
    vr_json_u64(json, "live_count", device->live_count);
    vr_json_u64(json, "peak_bytes", device->peak_bytes);
    vr_json_u64(json, "reserved_bytes", device->reserved_bytes);
    vr_json_u64(json, "ooms", device->ooms);
    vr_json_object_end(json);
}

static void put_group(struct vr_json *json, const struct watch_group *group) {
    vr_json_object(json, NULL);
    vr_json_string(json, "label", group->label);
    vr_json_u64(json, "live_bytes", group->bytes);
    vr_json_u64(json, "live_count", group->count);
    vr_json_u64(json, "peak_bytes", group->peak_bytes);
    vr_json_u64(json, "made", group->made);
    vr_json_object_end(json);
}

int top_json(const struct watch *watch, const struct top_view *view) {
    const struct watch_group **shown = NULL;
    size_t count = 0;
    const struct watch_device *devices = watch_devices(watch, &count);
    struct answer_json answer;
    struct vr_json *json = answer_json_begin(&answer);
    vr_json_object(json, NULL);
    vr_json_i64(json, "pid", view->pid);
    vr_json_string(json, "recording", view->path);
    vr_json_u64(json, "events", watch_events(watch));
    vr_json_bool(json, "ended", watch_ended(watch));
    vr_json_array(json, "devices");
    for (size_t i = 0; i < count; i++) put_device(json, &devices[i]);
    vr_json_array_end(json);
    vr_json_string(json, "by", watch_by_name(view->by));
    vr_json_array(json, "groups");
    const size_t groups = select_groups(watch, view, &shown);
    for (size_t i = 0; i < groups; i++) put_group(json, shown[i]);
    vr_json_array_end(json);
    vr_json_object_end(json);
    free(shown);
    return answer_json_end(&answer, NULL);
}
