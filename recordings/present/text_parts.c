// Prints parts of texts: titles, items, names, and charts of characters.
#include "present/text_parts.h"

#include <stdio.h>

#include "analyze/report_parts.h"

#define INDENT 4u

enum vram_status vr_text_hand_over(const struct vr_text *text, vram_write write, void *user) {
    VR_TRY(vr_text_status(text));
    return text->length == 0 || write(user, text->bytes, text->length) ? VRAM_OK : VRAM_IO;
}

enum vram_status vr_text_finish(struct vr_text *text, vram_write write, void *user) {
    const enum vram_status status = vr_text_hand_over(text, write, user);
    vr_text_release(text);
    return status;
}

const struct vram_report_source *vr_report_replayed(struct vr_report_output *output) {
    if (output->replayed || output->source == NULL || output->source->replay == NULL) return output->source;
    output->replayed = true;
    output->refused = vr_text_hand_over(output->text, output->write, output->user) == VRAM_IO || output->refused;
    output->text->length = 0;
    output->source = output->source->replay(output->source->replay_user);
    return output->source;
}

void vr_text_title(struct vr_text *text, const struct vram_style *style, const char *file) {
    if (file == NULL) return;
    vr_text_colour(text, style, VR_BOLD);
    vr_text_printable(text, file, strlen(file));
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, "\n");
}

void vr_text_flow(struct vr_text *text, const struct vram_style *style, unsigned at, unsigned indent, const char *string) {
    size_t column = at;
    size_t gap = 0; // spaces before the word; 0: it is the first
    for (const char *word = string; *word != '\0';) {
        const size_t length = strcspn(word, " "), width = vr_text_width(word, length);
        if (gap != 0 && column + gap + width > vr_style_columns(style)) {
            vr_text_puts(text, "\n");
            vr_text_repeat(text, " ", indent);
            column = indent;
        } else {
            vr_text_repeat(text, " ", gap);
            column += gap;
        }
        vr_text_append(text, word, length);
        column += width;
        gap = strspn(word + length, " ");
        word += length + gap;
    }
}

void vr_text_heading(struct vr_text *text, const struct vram_style *style, const char *title, const char *rest) {
    const size_t gap = strspn(rest, " ");
    vr_text_puts(text, "\n  ");
    vr_text_colour(text, style, VR_BOLD);
    vr_text_puts(text, title);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_append(text, rest, gap);
    vr_text_flow(text, style, (unsigned)(2 + vr_text_width(title, strlen(title)) + gap), 4, rest + gap);
    vr_text_puts(text, "\n");
}

void vr_text_fold(struct vr_text *text, const struct vram_style *style, size_t from) {
    struct vr_text old = {0};
    if (text->failed || from >= text->length) return;
    vr_text_append(&old, text->bytes + from, text->length - from);
    text->length = from;
    for (const char *line = vr_text_string(&old), *next; *line != '\0'; line = next) {
        const size_t length = strcspn(line, "\n"), indent = strspn(line, " ");
        struct vr_text words = {0};
        next = line + length + (line[length] == '\n');
        if (vr_text_width(line, length) <= vr_style_columns(style)) {
            vr_text_append(text, line, (size_t)(next - line));
            continue;
        }
        vr_text_append(&words, line + indent, length - indent);
        vr_text_repeat(text, " ", indent);
        vr_text_flow(text, style, (unsigned)indent, (unsigned)indent + 2, vr_text_string(&words));
        vr_text_puts(text, "\n");
        text->failed = text->failed || words.failed;
        vr_text_release(&words);
    }
    text->failed = text->failed || old.failed;
    vr_text_release(&old);
}

void vr_text_item(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *mark, unsigned columns,
                  const char *string) {
    const size_t mark_width = vr_text_width(mark, strlen(mark)), start = INDENT + columns;
    vr_text_repeat(text, " ", INDENT);
    vr_text_colour(text, style, colour);
    vr_text_puts(text, mark);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_repeat(text, " ", mark_width < columns ? columns - mark_width : 0);
    vr_text_puts(text, " ");
    vr_text_flow(text, style, (unsigned)start + 1, (unsigned)start + 1, string);
    vr_text_puts(text, "\n");
}

void vr_text_bullet(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *prefix, const char *string) {
    struct vr_text whole = {0};
    vr_text_printf(&whole, "%s%s", prefix, string);
    vr_text_item(text, style, colour, style->unicode ? "•" : "-", 1, vr_text_string(&whole));
    text->failed = text->failed || whole.failed;
    vr_text_release(&whole);
}

void vr_table_foreign(struct vr_text *text, struct vr_table *table, const char *string) {
    struct vr_text clean = {0};
    vr_text_printable(&clean, string, strlen(string));
    vr_table_cell_bytes(table, vr_text_string(&clean), clean.length);
    text->failed = text->failed || clean.failed;
    vr_text_release(&clean);
}

// Returns the offset of a C++ function's arguments, or `length` without arguments. Skips parentheses in templates, "(anonymous namespace)"
// and "operator()".
static size_t arguments_at(const char *name, size_t length) {
    static const char nameless[] = "(anonymous namespace)", call[] = "operator()";
    size_t depth = 0;
    for (size_t i = 0; i < length; i++) {
        if (name[i] == '<') depth++;
        if (name[i] == '>' && depth != 0 && name[i - 1] != '-') depth--;
        if (name[i] != '(' || depth != 0) continue;
        if (length - i >= sizeof nameless - 1 && memcmp(name + i, nameless, sizeof nameless - 1) == 0) {
            i += sizeof nameless - 2;
        } else if (i >= 8 && length - i >= 2 && memcmp(name + i - 8, call, sizeof call - 1) == 0) {
            i++;
        } else {
            return i;
        }
    }
    return length;
}

void vr_text_function(struct vr_text *text, const char *name, size_t length) {
    const size_t end = memchr(name, ':', length) == NULL ? length : arguments_at(name, length);
    vr_text_printable(text, name, end == 0 ? length : end);
}

bool vr_text_unnamed(struct vr_text *text, const char *file, size_t file_length, const char *name, size_t length) {
    if (file_length == 0 || length < 3 || memcmp(name, "0x", 2) != 0) return false;
    size_t at = file_length;
    while (at > 0 && file[at - 1] != '/') at--;
    vr_text_printable(text, file + at, file_length - at);
    vr_text_puts(text, "+");
    vr_text_printable(text, name, length);
    return true;
}

void vr_text_site(struct vr_text *text, const char *name, size_t length) {
    // The first ":0:" ends the file name: source lines begin at 1, and the text before it contains no other line number.
    size_t at = 0, skipped = 0;
    if (length > 6 && memcmp(name, "stack ", 6) == 0) {
        skipped = 6 + strspn(name + 6, "0123456789");
        skipped = length - skipped > 2 && memcmp(name + skipped, ": ", 2) == 0 ? skipped + 2 : 0;
    }
    for (at = skipped; at < length && name[at] != ':'; at++) continue;
    const bool python = at >= 3 && memcmp(name + at - 3, ".py", 3) == 0;
    if (python || length - at <= 3 || memcmp(name + at, ":0:", 3) != 0) {
        vr_text_printable(text, name, length);
        return;
    }
    vr_text_append(text, name, skipped);
    if (vr_text_unnamed(text, name + skipped, at - skipped, name + at + 3, length - at - 3)) return;
    vr_text_function(text, name + at + 3, length - at - 3);
}

void vr_table_site(struct vr_text *text, struct vr_table *table, const char *name) {
    struct vr_text clean = {0};
    vr_text_site(&clean, name, strlen(name));
    vr_table_cell_bytes(table, vr_text_string(&clean), clean.length);
    text->failed = text->failed || clean.failed;
    vr_text_release(&clean);
}

#define SCALE_COLUMNS 11u // "1023.9 GiB " before the axis

const char *vr_part_mark(const struct vr_part *part, const struct vram_style *style) {
    return style->unicode ? part->mark : part->ascii_mark;
}

void vr_text_level(struct vr_text *text, const struct vram_style *style, uint64_t part, uint64_t whole) {
    static const char *const marks[] = {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char ascii[] = "_.-~=+*#";
    const size_t mark = (size_t)((double)part / (double)whole * 7.0 + 0.5);
    if (style->unicode)
        vr_text_puts(text, marks[mark]);
    else
        vr_text_append(text, &ascii[mark], 1);
}

void vr_chart_bar(struct vr_text *text, const struct vram_style *style, const struct vr_part *parts, size_t count, unsigned columns) {
    double whole = 0, before = 0;
    unsigned used = 0, left = 0; // left: parts that still need a column
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

// One column of the chart: the largest values of its share of the points.
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

// Returns the value's height in eighths of rows.
static unsigned height_in_eighths(uint64_t bytes, uint64_t top, unsigned rows) {
    const unsigned filled = (unsigned)((double)bytes / (double)top * rows * 8 + 0.5);
    return filled == 0 && bytes != 0 ? 1 : filled;
}

enum ink { INK_NONE, INK_ALLOCATED, INK_RESERVED };

// Chooses the character of one cell and returns its ink. Row 0 is the lowest.
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
    int length = snprintf(right, sizeof right, "%s", vr_counted(device->events, "event").text);
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
        // Label the top and the middle row with the scale.
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
