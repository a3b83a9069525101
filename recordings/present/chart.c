#include <stdio.h>

#include "present/chart.h"

#include "analyze/generation.h"

#define SCALE_COLUMNS 11u // "1023.9 GiB " before the axis

const char *vr_part_mark(const struct vr_part *part, const struct vram_style *style) {
    return style->unicode ? part->mark : part->ascii_mark;
}

void vr_chart_bar(struct vr_text *text, const struct vram_style *style, const struct vr_part *parts, size_t count, unsigned columns) {
    double whole = 0, before = 0;
    unsigned used = 0, left = 0; // parts that still wait for a column
    for (size_t i = 0; i < count; i++) {
        whole += (double)parts[i].bytes;
        left += parts[i].bytes != 0;
    }
    for (size_t i = 0; i < count && whole > 0; i++) {
        if (parts[i].bytes == 0) continue;
        before += (double)parts[i].bytes;
        unsigned until = (unsigned)(before / whole * columns + 0.5);
        left--;
        if (columns > left && until > columns - left) until = columns - left;
        if (until <= used) until = used + 1;
        if (until > columns) until = columns;
        vr_text_colour(text, style, parts[i].colour);
        vr_text_repeat(text, vr_part_mark(&parts[i], style), until - used);
        vr_text_colour(text, style, VR_PLAIN);
        used = until;
    }
    vr_text_repeat(text, " ", columns - used);
}

bool vr_shows_reserved(const struct vram_report *report, const struct vram_report_device *device) {
    return !device->whole_program && strcmp(report->generation, VR_EVENTS_ALONE) != 0;
}

// What one column of the chart shows: the largest values of its share of the points.
struct chart_column {
    uint64_t allocated, reserved;
    bool oom;
};

static struct chart_column column_at(const struct vram_report_device *device, unsigned column, unsigned columns) {
    struct chart_column result = {0};
    const size_t count = device->timeline_count;
    const size_t first = (size_t)column * count / columns;
    size_t end = ((size_t)column + 1) * count / columns;
    if (end <= first) end = first + 1;
    for (size_t p = first; p < end; p++) {
        const struct vram_report_point *point = &device->timeline[p];
        if (point->allocated_bytes > result.allocated) result.allocated = point->allocated_bytes;
        if (!device->whole_program && point->reserved_bytes > 0 && (uint64_t)point->reserved_bytes > result.reserved)
            result.reserved = (uint64_t)point->reserved_bytes;
    }
    return result;
}

// Eighths of rows that a value fills.
static unsigned height_in_eighths(uint64_t bytes, uint64_t top, unsigned rows) {
    const unsigned filled = (unsigned)((double)bytes / (double)top * rows * 8 + 0.5);
    return filled == 0 && bytes != 0 ? 1 : filled;
}

enum ink { INK_NONE, INK_ALLOCATED, INK_RESERVED };

// The character of one cell; row 0 is the lowest.
static enum ink chart_cell(const struct chart_column *column, uint64_t top, unsigned rows, unsigned row, bool unicode,
                           const char **character) {
    static const char *const steps[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const unsigned allocated = height_in_eighths(column->allocated, top, rows), reserved = height_in_eighths(column->reserved, top, rows);
    const unsigned floor = row * 8;
    if (allocated > floor) {
        const unsigned part = allocated - floor > 8 ? 8 : allocated - floor;
        *character = unicode ? steps[part - 1] : "#";
        if (unicode || part >= 4 || reserved <= floor) return INK_ALLOCATED;
    }
    if (reserved >= floor + 4 || (reserved > floor && row == 0)) {
        *character = unicode ? "░" : ".";
        return INK_RESERVED;
    }
    *character = " ";
    return INK_NONE;
}

static void print_chart_row(struct vr_text *text, const struct vram_style *style, const struct chart_column *columns, unsigned count,
                            uint64_t top, unsigned rows, unsigned row) {
    static const enum vr_colour colours[] = {VR_PLAIN, VR_CYAN, VR_DIM};
    enum ink ink = INK_NONE;
    for (unsigned c = 0; c < count; c++) {
        const char *character;
        const enum ink next = chart_cell(&columns[c], top, rows, row, style->unicode, &character);
        if (next != ink) {
            if (ink != INK_NONE) vr_text_colour(text, style, VR_PLAIN);
            if (next != INK_NONE) vr_text_colour(text, style, colours[next]);
            ink = next;
        }
        vr_text_puts(text, character);
    }
    if (ink != INK_NONE) vr_text_colour(text, style, VR_PLAIN);
}

static void trim_line(struct vr_text *text) {
    while (text->length != 0 && text->bytes[text->length - 1] == ' ') text->bytes[--text->length] = '\0';
    vr_text_puts(text, "\n");
}

static void print_axis(struct vr_text *text, const struct vram_style *style, const struct vram_report_device *device,
                       const struct chart_column *columns, unsigned count, unsigned indent) {
    char right[96];
    vr_text_repeat(text, " ", indent);
    vr_text_printf(text, "%*s", (int)SCALE_COLUMNS, "0 ");
    vr_text_puts(text, style->unicode ? "└" : "+");
    bool any = false;
    for (unsigned c = 0; c < count; c++) any = any || columns[c].oom;
    for (unsigned c = 0; c < count; c++) {
        if (columns[c].oom) vr_text_colour(text, style, VR_RED);
        vr_text_puts(text, columns[c].oom ? "X" : style->unicode ? "─" : "-");
        if (columns[c].oom) vr_text_colour(text, style, VR_PLAIN);
    }
    vr_text_puts(text, "\n");
    int length = snprintf(right, sizeof right, "%s event%s", vr_count(device->events).text, device->events == 1 ? "" : "s");
    if (device->has_times && device->last_time_us > device->first_time_us) {
        const uint64_t us = (uint64_t)device->last_time_us - (uint64_t)device->first_time_us;
        length += snprintf(right + length, sizeof right - (size_t)length, ", %s",
                           vr_duration_ns(us < UINT64_MAX / 1000 ? us * 1000 : UINT64_MAX).text);
    }
    vr_text_repeat(text, " ", indent + SCALE_COLUMNS + 1);
    const char *left = any ? "0   X = out of memory" : "0";
    vr_text_printf(text, "%s%*s\n", left, (int)count - (int)strlen(left), right);
}

static void mark_ooms(const struct vram_report_device *device, struct chart_column *columns, unsigned count) {
    for (size_t i = 0; i < device->oom_count; i++) {
        const size_t at = (size_t)((double)device->ooms[i].event / (double)device->events * count);
        columns[at < count ? at : count - 1].oom = true;
    }
}

void vr_chart_timeline(struct vr_text *text, const struct vram_style *style, const struct vram_report_device *device, unsigned rows,
                       unsigned indent) {
    struct chart_column columns[VRAM_REPORT_POINTS];
    unsigned count = style->columns - indent - SCALE_COLUMNS - 1;
    if (count > VRAM_REPORT_POINTS) count = VRAM_REPORT_POINTS;
    uint64_t top = 0;
    for (unsigned c = 0; c < count; c++) {
        columns[c] = column_at(device, c, count);
        if (columns[c].allocated > top) top = columns[c].allocated;
        if (columns[c].reserved > top) top = columns[c].reserved;
    }
    if (top == 0) return;
    mark_ooms(device, columns, count);
    for (unsigned row = rows; row-- > 0;) {
        // The scale stands at the top row and in the middle.
        const bool labelled = row == rows - 1 || row + 1 == rows / 2;
        const uint64_t value = row == rows - 1 ? top : top / 2;
        vr_text_repeat(text, " ", indent);
        vr_text_printf(text, "%*s ", (int)SCALE_COLUMNS - 1, labelled ? vr_bytes(value).text : "");
        vr_text_puts(text, style->unicode ? (labelled ? "┤" : "│") : "|");
        print_chart_row(text, style, columns, count, top, rows, row);
        trim_line(text);
    }
    print_axis(text, style, device, columns, count, indent);
}
