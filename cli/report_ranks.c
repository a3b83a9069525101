#include "report_ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui.h"

// Names longer than this are cut from the left: what tells ranks apart is at the end.
enum { NAME_COLUMNS = 40 };

struct report_rank {
    char *name;
    uint32_t device;
    uint64_t allocated_bytes, reserved_bytes, end_bytes;
    size_t ooms;
    bool knows_reserved;
};

static bool grow(struct report_ranks *ranks) {
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
        char *copy = grow(ranks) ? strdup(name) : NULL;
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
                                 .knows_reserved = device->reserved.peak_bytes > 0 && !device->whole_program};
    }
}

// The end of a name from a whole character on, at most so many bytes.
static const char *tail(const char *name, size_t most) {
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
    const char *name = tail(row->name, NAME_COLUMNS);
    printf("  %s", name == row->name ? "" : "...");
    ui_put(stdout, name);
    printf("\n");
}

// A name that a shell takes as it stands, or can: names may come from strangers.
static bool is_plain(const char *name) {
    return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-=,@%:")] == '\0' && *name != '-';
}

// What to ask next where one recording holds much more than another.
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

void report_ranks_end(struct report_ranks *ranks) {
    if (ranks->recordings > 1 && ranks->count > 1 && !ranks->failed) {
        printf("\n\n%zu recordings, with their peaks\n  %6s  %10s  %10s  %10s  %13s  recording\n", ranks->recordings, "device", "allocated",
               "reserved", "at the end", "out of memory");
        for (size_t i = 0; i < ranks->count; i++) print_row(&ranks->rows[i]);
        print_apart(ranks);
    }
    for (size_t i = 0; i < ranks->count; i++) free(ranks->rows[i].name);
    free(ranks->rows);
    *ranks = (struct report_ranks){.rows = NULL};
}
