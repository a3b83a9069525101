#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

size_t vr_utf8_decode(const char *bytes, size_t length, uint32_t *code) {
    // By the number of leading ones: the payload bits of the first byte, and the smallest code point that may take this length.
    static const struct {
        unsigned char mask, lead, value;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0x7F, 0}, {0xE0, 0xC0, 0x1F, 0x80}, {0xF0, 0xE0, 0x0F, 0x800}, {0xF8, 0xF0, 0x07, 0x10000}};
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t form = 0; form < VR_COUNT_OF(forms); form++) {
        if ((p[0] & forms[form].mask) != forms[form].lead) continue;
        if (length < form + 1) break;
        uint32_t value = p[0] & forms[form].value;
        bool good = true;
        for (size_t i = 1; i <= form; i++) {
            good = good && (p[i] & 0xC0) == 0x80;
            value = value << 6 | (p[i] & 0x3F);
        }
        if (!good || value < forms[form].least || value > 0x10FFFF) break;
        *code = value;
        return form + 1;
    }
    *code = VR_UTF8_MALFORMED;
    return 1;
}

struct vr_sink vr_sink_begin(char *text, size_t capacity) {
    if (capacity != 0) text[0] = '\0';
    return (struct vr_sink){text, capacity, 0};
}

void vr_sink_printf(struct vr_sink *sink, const char *format, ...) {
    const size_t room = sink->length < sink->capacity ? sink->capacity - sink->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(room == 0 ? NULL : sink->text + sink->length, room, format, arguments);
    va_end(arguments);
    if (written > 0) sink->length += (size_t)written;
}

void vr_text_release(struct vr_text *text) {
    free(text->bytes);
    *text = (struct vr_text){0};
}

enum vram_status vr_text_status(const struct vr_text *text) { return text->failed ? VRAM_NO_HOST_MEMORY : VRAM_OK; }

const char *vr_text_string(const struct vr_text *text) { return text->bytes == NULL ? "" : text->bytes; }

// Makes room for `more` bytes and a NUL.
static bool reserve_text(struct vr_text *text, size_t more) {
    if (text->failed) return false;
    if (more >= SIZE_MAX - text->length || vr_grow((void **)&text->bytes, &text->capacity, text->length + more + 1, 1) != VRAM_OK) {
        text->failed = true;
        return false;
    }
    return true;
}

enum vram_status vr_text_copy(const struct vr_text *text, char **copy) {
    VR_TRY(vr_text_status(text));
    char *made = malloc(text->length + 1);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(made, vr_text_string(text), text->length + 1);
    *copy = made;
    return VRAM_OK;
}

void vr_text_append(struct vr_text *text, const char *bytes, size_t length) {
    if (!reserve_text(text, length)) return;
    if (length != 0) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void vr_text_puts(struct vr_text *text, const char *string) { vr_text_append(text, string, strlen(string)); }

void vr_text_repeat(struct vr_text *text, const char *string, size_t times) {
    const size_t length = strlen(string);
    while (times-- > 0) vr_text_append(text, string, length);
}

static void append_format(struct vr_text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0) text->failed = true;
    if (length >= 0 && reserve_text(text, (size_t)length)) {
        (void)vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void vr_text_printf(struct vr_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append_format(text, format, arguments);
    va_end(arguments);
}

// Returns whether the character is invisible but changes how others appear: direction marks (Unicode's Bidi_Control), line and paragraph
// separators, and the byte order mark.
static bool is_hidden(uint32_t code) {
    return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xFEFF;
}

void vr_text_printable(struct vr_text *text, const char *bytes, size_t length) {
    for (size_t i = 0; i < length;) {
        uint32_t code;
        const size_t step = vr_utf8_decode(bytes + i, length - i, &code);
        if (code == VR_UTF8_MALFORMED || (code >= 0xD800 && code <= 0xDFFF)) {
            vr_text_puts(text, "\xEF\xBF\xBD");
        } else if (code < 0x20 || (code >= 0x7F && code < 0xA0)) {
            vr_text_puts(text, "?");
        } else if (is_hidden(code)) {
            vr_text_printf(text, "\xE2\x9F\xA8U+%04X\xE2\x9F\xA9", (unsigned)code);
        } else {
            vr_text_append(text, bytes + i, step);
        }
        i += step;
    }
}

size_t vr_text_width(const char *bytes, size_t length) {
    size_t width = 0;
    for (size_t i = 0; i < length; i++) width += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return width;
}

static struct vr_formatted bytes_with(uint64_t bytes, int decimals) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct vr_formatted result;
    // Move to the next unit if one decimal would round up to 1024.0.
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= (unit == 0 ? 1024.0 : 1023.95) && unit + 1 < VR_COUNT_OF(units)) {
        value /= 1024.0;
        unit++;
    }
    (void)snprintf(result.text, sizeof result.text, "%.*f %s", unit == 0 ? 0 : decimals, value, units[unit]);
    return result;
}

struct vr_formatted vr_bytes(uint64_t bytes) {
    return bytes_with(bytes, 1);
}

struct vr_formatted vr_bytes_unlike(uint64_t bytes, uint64_t other) {
    enum { MOST_DECIMALS = 4 };
    struct vr_formatted result = vr_bytes(bytes);
    for (int decimals = 1; decimals <= MOST_DECIMALS && bytes != other; decimals++) {
        const struct vr_formatted other_text = bytes_with(other, decimals);
        result = bytes_with(bytes, decimals);
        if (strcmp(result.text, other_text.text) != 0) return result;
    }
    if (bytes != other) (void)snprintf(result.text, sizeof result.text, "%llu B", (unsigned long long)bytes);
    return result;
}

struct vr_formatted vr_count(uint64_t count) {
    struct vr_formatted result;
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        if (i != 0 && (length - i) % 3 == 0) result.text[used++] = ',';
        result.text[used++] = digits[i];
    }
    result.text[used] = '\0';
    return result;
}

struct vr_formatted vr_counted(uint64_t count, const char *noun) {
    struct vr_formatted result = vr_count(count);
    const size_t length = strlen(result.text);
    (void)snprintf(result.text + length, sizeof result.text - length, " %s%s", noun, count == 1 ? "" : "s");
    return result;
}

struct vr_formatted vr_duration_ns(uint64_t duration_ns) {
    struct vr_formatted result;
    const double ns = (double)duration_ns;
    const uint64_t seconds = duration_ns / 1000000000u;
    if (duration_ns < 1000) {
        (void)snprintf(result.text, sizeof result.text, "%llu ns", (unsigned long long)duration_ns);
    } else if (duration_ns < 1000000u) {
        (void)snprintf(result.text, sizeof result.text, "%.1f us", ns / 1e3);
    } else if (duration_ns < 1000000000u) {
        (void)snprintf(result.text, sizeof result.text, "%.1f ms", ns / 1e6);
    } else if (seconds < 60) {
        (void)snprintf(result.text, sizeof result.text, "%.2f s", ns / 1e9);
    } else if (seconds < 3600) {
        (void)snprintf(result.text, sizeof result.text, "%um %02us", (unsigned)(seconds / 60), (unsigned)(seconds % 60));
    } else {
        (void)snprintf(result.text, sizeof result.text, "%lluh %02um", (unsigned long long)(seconds / 3600), (unsigned)(seconds / 60 % 60));
    }
    return result;
}

struct vr_formatted vr_percent(uint64_t part, uint64_t whole) {
    struct vr_formatted result;
    const double percent = whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole;
    if (whole == 0) {
        (void)snprintf(result.text, sizeof result.text, "-");
    } else if (part != 0 && percent < 0.1) {
        (void)snprintf(result.text, sizeof result.text, "<0.1 %%");
    } else {
        (void)snprintf(result.text, sizeof result.text, "%.1f %%", percent);
    }
    return result;
}

unsigned vr_style_columns(const struct vram_style *style) { return style->columns == 0 ? 100 : style->columns < 60 ? 60 : style->columns; }

void vr_text_colour(struct vr_text *text, const struct vram_style *style, enum vr_colour colour) {
    static const char *const escapes[VR_COLOUR_COUNT] = {"\033[0m",  "\033[1m",  "\033[2m",  "\033[31m", "\033[32m",
                                                         "\033[33m", "\033[34m", "\033[35m", "\033[36m"};
    if (style->colour) vr_text_puts(text, escapes[colour]);
}

void vr_text_bar(struct vr_text *text, const struct vram_style *style, uint64_t part, uint64_t whole, unsigned columns) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const unsigned steps = style->unicode ? 8 : 1;
    double share = whole == 0 ? 0.0 : (double)part / (double)whole;
    if (share > 1.0) share = 1.0;
    unsigned filled = (unsigned)(share * columns * steps + 0.5);
    if (filled == 0 && part != 0 && columns != 0) filled = 1;
    const unsigned full = filled / steps;
    const unsigned rest = filled % steps;
    vr_text_repeat(text, style->unicode ? "█" : "#", full);
    if (rest != 0) vr_text_puts(text, eighths[rest]);
    vr_text_repeat(text, " ", columns - full - (rest != 0));
}

void vr_table_init(struct vr_table *table, const struct vr_table_column *columns, size_t column_count) {
    *table = (struct vr_table){.columns = columns, .column_count = column_count};
}

void vr_table_release(struct vr_table *table) {
    vr_text_release(&table->cells);
    free(table->offsets);
    *table = (struct vr_table){0};
}

static bool begin_cell(struct vr_table *table) {
    if (vr_grow((void **)&table->offsets, &table->cell_capacity, table->cell_count + 1, sizeof *table->offsets) != VRAM_OK) {
        table->cells.failed = true;
        return false;
    }
    table->offsets[table->cell_count++] = table->cells.length;
    return true;
}

void vr_table_cell(struct vr_table *table, const char *format, ...) {
    if (!begin_cell(table)) return;
    va_list arguments;
    va_start(arguments, format);
    append_format(&table->cells, format, arguments);
    va_end(arguments);
    vr_text_append(&table->cells, "", 1);
}

void vr_table_cell_bytes(struct vr_table *table, const char *bytes, size_t length) {
    if (!begin_cell(table)) return;
    vr_text_append(&table->cells, bytes, length);
    vr_text_append(&table->cells, "", 1);
}

static const char *cell_text(const struct vr_table *table, size_t row, size_t column) {
    return table->cells.bytes + table->offsets[row * table->column_count + column];
}

#define MAX_COLUMNS 16
#define COLUMN_GAP  2u

// Computes the widths of all columns; the flexible one shrinks until the line fits.
static void measure_columns(const struct vr_table *table, size_t rows, size_t line, size_t *widths) {
    size_t total = 0;
    for (size_t c = 0; c < table->column_count; c++) {
        const char *title = table->columns[c].title == NULL ? "" : table->columns[c].title;
        widths[c] = vr_text_width(title, strlen(title));
        for (size_t r = 0; r < rows; r++) {
            const char *cell = cell_text(table, r, c);
            const size_t width = vr_text_width(cell, strlen(cell));
            if (width > widths[c]) widths[c] = width;
        }
        total += widths[c] + (c == 0 ? 0 : COLUMN_GAP);
    }
    for (size_t c = 0; c < table->column_count; c++) {
        if (!table->columns[c].flexible || total <= line) continue;
        const size_t excess = total - line;
        widths[c] = widths[c] > excess + 12 ? widths[c] - excess : widths[c] < 12 ? widths[c] : 12;
        total = line;
    }
}

// Prints the cell in exactly `width` columns; pads it only if another cell follows on the line.
static void print_cell(struct vr_text *text, const struct vram_style *style, const char *cell, size_t width,
                       const struct vr_table_column *column, enum vr_colour colour, bool last) {
    const char *mark = style->unicode ? "…" : "...";
    const size_t mark_width = style->unicode ? 1 : 3;
    size_t length = strlen(cell);
    size_t shown = vr_text_width(cell, length);
    bool cut = false;
    if (shown > width && width > mark_width) {
        cut = true;
        while (shown > width - mark_width) {
            do cell++, length--;
            while (length != 0 && ((unsigned char)*cell & 0xC0) == 0x80);
            shown--;
        }
    }
    const size_t used = shown + (cut ? mark_width : 0);
    const size_t padding = width > used ? width - used : 0;
    if (column->align == VR_RIGHT) vr_text_repeat(text, " ", padding);
    const bool coloured = colour != VR_PLAIN && length != 0;
    if (coloured) vr_text_colour(text, style, colour);
    if (cut) vr_text_puts(text, mark);
    vr_text_append(text, cell, length);
    if (coloured) vr_text_colour(text, style, VR_PLAIN);
    if (column->align == VR_LEFT && !last) vr_text_repeat(text, " ", padding);
}

#define LEAST_NOTE 20u // columns; a narrower field of notes is not worth its lines

// A last column of notes: left-aligned sentences without a title. It is wrapped, the others are not.
static bool has_notes(const struct vr_table *table) {
    const struct vr_table_column *last = &table->columns[table->column_count - 1];
    return table->column_count > 1 && last->align == VR_LEFT && !last->flexible && (last->title == NULL || last->title[0] == '\0');
}

// Prints words in lines of `width` columns. The first line already has `at` columns.
static void print_note(struct vr_text *text, const struct vram_style *style, const char *note, size_t width, size_t at,
                       enum vr_colour colour) {
    vr_text_colour(text, style, colour);
    for (size_t used = 0; *note != '\0';) {
        const size_t length = strcspn(note, " "), word = vr_text_width(note, length);
        if (used != 0 && used + 1 + word > width) {
            vr_text_puts(text, "\n");
            vr_text_repeat(text, " ", at);
            used = 0;
        }
        if (used != 0) vr_text_puts(text, " ");
        vr_text_append(text, note, length);
        used += word + (used != 0);
        note += length + strspn(note + length, " ");
    }
    vr_text_colour(text, style, VR_PLAIN);
}

// Chooses the columns of one block of lines: the first column of the table, and those from `from` on that fit into the line. Returns their
// end.
static size_t end_of_block(const struct vr_table *table, const size_t *widths, size_t from, size_t line) {
    size_t used = widths[0], to = from == 0 ? 1 : from;
    while (to < table->column_count && (to == from || used + COLUMN_GAP + widths[to] <= line)) used += COLUMN_GAP + widths[to++];
    return to;
}

static void print_block(const struct vr_table *table, struct vr_text *text, const struct vram_style *style, unsigned indent,
                        const size_t *widths, size_t from, size_t to) {
    const size_t rows = table->cell_count / table->column_count;
    const bool notes = to == table->column_count && has_notes(table);
    bool titled = false;
    for (size_t c = 0; c < table->column_count; c++)
        titled = titled || (table->columns[c].title != NULL && table->columns[c].title[0] != '\0');
    for (size_t r = titled ? 0 : 1; r <= rows; r++) {
        size_t at = indent;
        vr_text_repeat(text, " ", indent);
        for (size_t c = 0; c < to; c = c == 0 && from != 0 ? from : c + 1) {
            const struct vr_table_column *column = &table->columns[c];
            const char *cell = r != 0 ? cell_text(table, r - 1, c) : column->title == NULL ? "" : column->title;
            if (c != 0) vr_text_repeat(text, " ", COLUMN_GAP);
            at += c != 0 ? COLUMN_GAP : 0;
            if (notes && c + 1 == to && r != 0)
                print_note(text, style, cell, widths[c], at, column->colour);
            else
                print_cell(text, style, cell, widths[c], column, r == 0 ? VR_DIM : column->colour, c + 1 == to);
            at += widths[c];
        }
        while (text->length != 0 && text->bytes[text->length - 1] == ' ') text->bytes[--text->length] = '\0';
        vr_text_puts(text, "\n");
    }
}

void vr_table_print(const struct vr_table *table, struct vr_text *text, const struct vram_style *style, unsigned indent) {
    if (table->cells.failed || table->column_count == 0 || table->column_count > MAX_COLUMNS) {
        text->failed = true;
        return;
    }
    size_t widths[MAX_COLUMNS], others = 0;
    const size_t line = vr_style_columns(style) > indent ? vr_style_columns(style) - indent : 0, last = table->column_count - 1;
    measure_columns(table, table->cell_count / table->column_count, line, widths);
    for (size_t c = 0; c < last; c++) others += widths[c] + COLUMN_GAP;
    if (has_notes(table) && others + widths[last] > line && others + LEAST_NOTE <= line) widths[last] = line - others;
    for (size_t from = 0; from <= last;) {
        const size_t to = end_of_block(table, widths, from, line);
        print_block(table, text, style, indent, widths, from, to);
        from = to;
    }
}
