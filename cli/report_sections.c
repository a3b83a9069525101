#include "report_sections.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "input_files.h"
#include "ui.h"
#include "vram/recording.h"
#include "vram/report.h"

enum { MOST_BYTES = 1 << 20 };

static char *refuse_rules(const char *path, const char *why, char *text) {
    ui_say("vram: --roles %s: %s", path, why);
    free(text);
    return NULL;
}

// Reads the file, at most 1 MiB and without NUL. The caller frees the text. Returns NULL after a line on standard error. The library checks
// the rules themselves.
static char *role_rules_file_read(const char *path) {
    char *text = malloc(MOST_BYTES + 1);
    if (text == NULL) return refuse_rules(path, "not enough host memory to read it", NULL);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return refuse_rules(path, strerror(errno), text);
    const size_t length = fread(text, 1, MOST_BYTES + 1, file);
    const bool failed = ferror(file) != 0;
    const int why = errno;
    (void)fclose(file);
    if (failed) return refuse_rules(path, strerror(why), text);
    if (length > MOST_BYTES) return refuse_rules(path, "the file is larger than 1 MiB: not a list of rules", text);
    if (memchr(text, '\0', length) != NULL) return refuse_rules(path, "it contains a NUL byte: not a text file", text);
    text[length] = '\0';
    return text;
}

enum { CHART_ROWS = 18 };

bool report_profile_settle(struct report_profile *profile) {
    struct moment_settings *moment = &profile->moment;
    if (profile->stack) moment->by = "stack";
    const bool moved = moment->at != NULL || moment->device != NULL || moment->active;
    profile->wanted = profile->site || profile->timeline || moved || moment->by != NULL || moment->regex != NULL || profile->roles != NULL;
    if (profile->timeline && profile->json) {
        ui_say("vram: --timeline prints a chart; for the numbers, use --json alone (key \"timeline\")");
        return false;
    }
    if (profile->roles != NULL && moment->by == NULL && moment->regex == NULL) moment->by = "role";
    if (!moment_options(moment, &profile->options)) return false;
    if (profile->roles == NULL) return true;
    profile->rules = role_rules_file_read(profile->roles);
    profile->options.roles = profile->rules;
    return profile->rules != NULL;
}

static enum vram_status print_timeline(const struct vram_recording *recording, const char *name, struct answers *answers,
                                       struct vram_error *error) {
    struct vram_report *report;
    const struct vram_style style = ui_style();
    enum vram_status status = vram_report_create(recording, NULL, &report, error);
    if (status != VRAM_OK) return status;
    status = vram_timeline_text(report, name, CHART_ROWS, &style, answers_write, answers);
    vram_report_destroy(report);
    return status;
}

static int show_opened(const struct input_opened *opened, void *context) {
    const struct report_profile *profile = context;
    const struct vram_recording *recording = opened->recording;
    const char *name = input_base_name(opened->facts.name);
    const struct vram_style style = ui_style();
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    enum vram_status status;
    if (profile->timeline)
        status = print_timeline(recording, name, opened->answers, &error);
    else if (profile->json)
        status = vram_profile_json(recording, &profile->options, name, answers_write, opened->answers, &error);
    else
        status = vram_profile_text(recording, &profile->options, name, &style, answers_write, opened->answers, &error);
    return ui_result(status, false, name, &error);
}

int report_profiles(struct report_profile *profile, char **operands, int count) {
    const struct input_work work = {.answer = show_opened, .context = profile, .json = profile->json, .between = "\n"};
    const int code = run_command(&work, operands, count);
    free(profile->rules);
    profile->rules = NULL;
    return code;
}

// Longer names are cut on the left, because ranks differ at the end.
enum { NAME_COLUMNS = 40, INDENT = 7, COLUMNS = 80 };

// With more rows, only unusual ones are shown.
enum { MOST_ROWS = 16 };

struct report_rank {
    char *name;
    uint32_t device;
    uint64_t allocated_bytes, reserved_bytes, end_bytes;
    size_t ooms;
    char *why; // of the last out-of-memory error; NULL: none, or no memory for the text
    bool knows_reserved;
    bool shown; // in a table without room for all rows
};

static bool grow_ranks(struct report_ranks *ranks) {
    if (ranks->count < ranks->capacity) return true;
    const size_t capacity = ranks->capacity == 0 ? 16 : 2 * ranks->capacity;
    struct report_rank *rows = realloc(ranks->rows, capacity * sizeof *rows);
    if (rows == NULL) return false;
    ranks->rows = rows;
    ranks->capacity = capacity;
    return true;
}

void report_ranks_add(struct report_ranks *ranks, const char *name, const struct vram_report *report) {
    ranks->recordings++;
    for (size_t i = 0; i < report->device_count && !ranks->failed; i++) {
        const struct vram_report_device *device = &report->devices[i];
        if (device->is_host) continue;
        char *copy = grow_ranks(ranks) ? strdup(name) : NULL;
        if (copy == NULL) {
            ranks->failed = true;
            return;
        }
        ranks->rows[ranks->count++] =
            (struct report_rank){.name = copy,
                                 .device = device->device,
                                 .allocated_bytes = device->allocated.peak.bytes,
                                 .reserved_bytes = device->reserved.peak_bytes < 0 ? 0 : (uint64_t)device->reserved.peak_bytes,
                                 .end_bytes = device->allocated.end.bytes,
                                 .ooms = device->oom_count,
                                 .why = device->oom_count == 0 ? NULL : strdup(device->ooms[device->oom_count - 1].text),
                                 .knows_reserved = device->reserved.peak_bytes > 0 && !device->whole_program};
    }
}

// Returns the last `most` bytes of a name at most, starting at a whole character.
static const char *name_tail(const char *name, size_t most) {
    const size_t length = strlen(name);
    const char *at = length <= most ? name : name + length - most;
    while (((unsigned char)*at & 0xc0) == 0x80) at++;
    return at;
}

static void print_row(const struct report_rank *row) {
    char allocated[UI_SIZE_CAPACITY], reserved[UI_SIZE_CAPACITY], end[UI_SIZE_CAPACITY];
    printf("  %6" PRIu32 "  %10s  %10s  %10s  ", row->device, ui_size(row->allocated_bytes, allocated),
           row->knows_reserved ? ui_size(row->reserved_bytes, reserved) : "not known", ui_size(row->end_bytes, end));
    if (row->ooms == 0) {
        printf("%13s", "");
    } else {
        printf("%13zu", row->ooms);
    }
    const char *name = name_tail(row->name, NAME_COLUMNS);
    printf("  %s", name == row->name ? "" : "...");
    ui_put(stdout, name);
    printf("\n");
}

// Returns whether a shell takes the name without quotes. Names may be foreign.
static bool is_plain(const char *name) {
    return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-=,@%:")] == '\0' && *name != '-';
}

// Suggests what to ask if one recording has a much higher peak than another.
static void print_apart(const struct report_ranks *ranks) {
    const struct report_rank *high = &ranks->rows[0], *low = high;
    for (size_t i = 1; i < ranks->count; i++) {
        if (ranks->rows[i].allocated_bytes > high->allocated_bytes) high = &ranks->rows[i];
        if (ranks->rows[i].allocated_bytes < low->allocated_bytes) low = &ranks->rows[i];
    }
    const uint64_t apart = high->allocated_bytes - low->allocated_bytes;
    if (apart <= high->allocated_bytes / 20) return;
    char size[UI_SIZE_CAPACITY];
    printf("\n  The highest and the lowest peak are %s apart", ui_size(apart, size));
    if (strcmp(high->name, low->name) != 0 && high->device == low->device && is_plain(high->name) && is_plain(low->name)) {
        printf("; where:\n    vram diff ");
        if (ranks->count > ranks->recordings) printf("--device %" PRIu32 " ", high->device);
        printf("%s %s", low->name, high->name);
    }
    printf("\n");
}

static int by_peak(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Returns the median of the peaks; 0 if memory runs out.
static uint64_t median_peak(const struct report_ranks *ranks) {
    uint64_t *peaks = malloc(ranks->count * sizeof *peaks);
    if (peaks == NULL) return 0;
    for (size_t i = 0; i < ranks->count; i++) peaks[i] = ranks->rows[i].allocated_bytes;
    qsort(peaks, ranks->count, sizeof *peaks, by_peak);
    const uint64_t middle = peaks[ranks->count / 2];
    free(peaks);
    return middle;
}

static uint64_t apart_from(uint64_t bytes, uint64_t middle) { return bytes > middle ? bytes - middle : middle - bytes; }

// Orders rows by how unusual they are: out of memory first, then by distance from the median.
static bool is_more_unlike(const struct report_rank *a, const struct report_rank *b, uint64_t middle) {
    if ((a->ooms != 0) != (b->ooms != 0)) return a->ooms != 0;
    return apart_from(a->allocated_bytes, middle) > apart_from(b->allocated_bytes, middle);
}

// Marks the rows to show: all if there are few, else those that ran out of memory or differ from the median by a twentieth, the most
// unusual first, while there is room. Returns their number.
static size_t mark_rows(struct report_ranks *ranks, uint64_t middle) {
    const bool all = ranks->count <= MOST_ROWS;
    size_t shown = 0;
    for (size_t i = 0; i < ranks->count && all; i++) ranks->rows[i].shown = true;
    for (; !all && shown < MOST_ROWS; shown++) {
        struct report_rank *next = NULL;
        for (size_t i = 0; i < ranks->count; i++) {
            struct report_rank *row = &ranks->rows[i];
            const bool unlike = row->ooms != 0 || apart_from(row->allocated_bytes, middle) > middle / 20;
            if (!row->shown && unlike && (next == NULL || is_more_unlike(row, next, middle))) next = row;
        }
        if (next == NULL) break;
        next->shown = true;
    }
    return all ? ranks->count : shown;
}

// Prints one line about the rows not shown.
static void print_others(const struct report_ranks *ranks, size_t shown) {
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < ranks->count; i++) {
        const struct report_rank *row = &ranks->rows[i];
        if (row->shown) continue;
        if (row->allocated_bytes < least) least = row->allocated_bytes;
        if (row->allocated_bytes > most) most = row->allocated_bytes;
    }
    char low[UI_SIZE_CAPACITY], high[UI_SIZE_CAPACITY];
    if (shown != ranks->count)
        printf("  %zu %s: %s to %s allocated at the peak\n", ranks->count - shown, shown == 0 ? "similar devices" : "others",
               ui_size(least, low), ui_size(most, high));
}

// Prints which rank ran out of memory first, and why, and how many others did.
static void print_ooms(const struct report_ranks *ranks) {
    const struct report_rank *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < ranks->count; i++) {
        if (ranks->rows[i].ooms == 0) continue;
        if (first == NULL) first = &ranks->rows[i];
        count++;
    }
    if (first == NULL) return;
    printf("\n  Out of memory: ");
    ui_put(stdout, first->name);
    printf(", device %" PRIu32, first->device);
    if (count > 1) printf(", and %zu more", count - 1);
    if (first->why != NULL) {
        printf("\n  why: ");
        ui_wrap(stdout, first->why, INDENT, COLUMNS);
    }
    if (is_plain(first->name)) printf("\n  Full report: vram report %s", first->name);
    printf("\n");
}

static void print_table(struct report_ranks *ranks) {
    const uint64_t middle = median_peak(ranks);
    const size_t shown = mark_rows(ranks, middle);
    printf("Peaks of %zu recordings\n", ranks->recordings);
    if (shown != 0) printf("  %6s  %10s  %10s  %10s  %13s  recording\n", "device", "allocated", "reserved", "at the end", "out of memory");
    for (size_t i = 0; i < ranks->count; i++) {
        if (ranks->rows[i].shown) print_row(&ranks->rows[i]);
    }
    print_others(ranks, shown);
}

void report_ranks_end(struct report_ranks *ranks) {
    if (ranks->recordings > 1 && ranks->count > 1 && !ranks->failed) {
        if (!ranks->only_table) printf("\n\n");
        print_table(ranks);
        if (ranks->only_table) print_ooms(ranks);
        print_apart(ranks);
        if (ranks->only_table) printf("\n  --full prints the report of each\n");
    }
    for (size_t i = 0; i < ranks->count; i++) {
        free(ranks->rows[i].name);
        free(ranks->rows[i].why);
    }
    free(ranks->rows);
    *ranks = (struct report_ranks){.rows = NULL};
}
