// text.h: text in a growing buffer or in the caller's buffer, tables, and decoding of UTF-8.
#ifndef VR_BASE_TEXT_H
#define VR_BASE_TEXT_H

#include "base/base.h"
#include "vram/status.h"

// Text in a growing buffer, and how sizes, counts, times and tables look everywhere in this project.
//
// A buffer remembers that it could not grow: writers append without checking and ask vr_text_status() once at the end. Buffers and
// tables belong to one thread at a time. Text that comes from a recording goes through vr_text_printable(), so that a name in a
// stranger's file cannot move the cursor or recolour a terminal.

// All-zero is an empty buffer. bytes is NUL-terminated once anything was appended; length does not count the NUL.
struct vr_text {
    char *bytes;
    size_t length;
    size_t capacity;
    bool failed; // host memory ran out: bytes stops at what fitted
};

// Frees the bytes and makes the buffer empty again.
void vr_text_release(struct vr_text *text);
// NO_HOST_MEMORY if any append failed, else OK.
enum vram_status vr_text_status(const struct vr_text *text);
// Never NULL: "" for an empty buffer.
const char *vr_text_string(const struct vr_text *text);

// The text as a string of its own, given to the caller: free(). NO_HOST_MEMORY, also where an append failed.
enum vram_status vr_text_copy(const struct vr_text *text, char **copy);

void vr_text_append(struct vr_text *text, const char *bytes, size_t length);
void vr_text_puts(struct vr_text *text, const char *string);
void vr_text_repeat(struct vr_text *text, const char *string, size_t times);
void vr_text_printf(struct vr_text *text, const char *format, ...) VRAM_PRINTF(2, 3);
// Appends foreign bytes as text that a terminal can show: control characters become '?', malformed UTF-8 and surrogates U+FFFD.
void vr_text_printable(struct vr_text *text, const char *bytes, size_t length);

// Columns that `length` bytes of UTF-8 take (one per code point).
size_t vr_text_width(const char *bytes, size_t length);

// --- one value ---------------------------------------------------------------------------------------------------------
#define VR_FORMAT_CAPACITY 32

// A value as text in the struct itself, so that several fit into one printf: vr_bytes(n).text.
struct vr_formatted {
    char text[VR_FORMAT_CAPACITY];
};
// Binary units, one decimal from KiB up: "512 B", "1.5 KiB", "23.9 GiB".
struct vr_formatted vr_bytes(uint64_t bytes);
// The same with as many decimals as tell it from `other`, which it is compared with; in bytes where four do not.
struct vr_formatted vr_bytes_beside(uint64_t bytes, uint64_t other);
// Thousands apart: "1,234,567".
struct vr_formatted vr_count(uint64_t count);
// "850 ns", "71.8 ms", "2.04 s", "3m 12s", "2h 05m".
struct vr_formatted vr_duration_ns(uint64_t duration_ns);
// part of whole: "12.3 %", "<0.1 %"; "-" when whole is 0.
struct vr_formatted vr_percent(uint64_t part, uint64_t whole);

// --- decoration --------------------------------------------------------------------------------------------------------
enum vr_colour { VR_PLAIN, VR_BOLD, VR_DIM, VR_RED, VR_GREEN, VR_YELLOW, VR_BLUE, VR_MAGENTA, VR_CYAN, VR_COLOUR_COUNT };
// The width of a line in columns: 100 where the style has none, and at least 60.
unsigned vr_style_columns(const struct vram_style *style);
// Appends the escape that starts a colour, VR_PLAIN ends it. Nothing when the style has no colour.
void vr_text_colour(struct vr_text *text, const struct vram_style *style, enum vr_colour colour);
// A bar of `columns` columns of which part/whole is filled, to an eighth of a column in unicode. The rest is spaces.
void vr_text_bar(struct vr_text *text, const struct vram_style *style, uint64_t part, uint64_t whole, unsigned columns);

// --- tables --------------------------------------------------------------------------------------------------------------
enum vr_align { VR_LEFT, VR_RIGHT };

struct vr_table_column {
    const char *title; // NULL or "": no title
    enum vr_align align;
    enum vr_colour colour; // of the cells
    bool flexible;         // cut from the left ("...tail") when the table is wider than the style; at most one column
};

// Cells are appended row by row; printing measures them. All-zero, then vr_table_init().
struct vr_table {
    const struct vr_table_column *columns; // borrowed
    size_t column_count;
    struct vr_text cells; // texts one after the other, each with its NUL
    size_t *offsets;      // where each cell starts
    size_t cell_count;
    size_t cell_capacity;
};
// columns is borrowed until the release.
void vr_table_init(struct vr_table *table, const struct vr_table_column *columns, size_t column_count);
void vr_table_release(struct vr_table *table);
// Appends the next cell.
void vr_table_cell(struct vr_table *table, const char *format, ...) VRAM_PRINTF(2, 3);
// The same for bytes taken as they are (they should have gone through vr_text_printable()).
void vr_table_cell_bytes(struct vr_table *table, const char *bytes, size_t length);
// Prints titles (if any column has one) and complete rows, each line indented by `indent` spaces and without trailing spaces.
// A failed table prints nothing and fails `text`.
void vr_table_print(const struct vr_table *table, struct vr_text *text, const struct vram_style *style, unsigned indent);

#define VR_UTF8_MALFORMED UINT32_MAX

// Decodes the code point at bytes (length must not be 0) and returns how many bytes it took, at least 1. Surrogates encoded in three
// bytes are accepted and returned as such (Python's "surrogatepass"); anything else malformed is VR_UTF8_MALFORMED over one byte.
size_t vr_utf8_decode(const char *bytes, size_t length, uint32_t *code);

// Writes into the caller's buffer as snprintf() does: text that does not fit is counted but not stored.
struct vr_sink {
    char *text; // NUL-terminated where capacity is not 0
    size_t capacity;
    size_t length; // that the whole text takes, without the NUL; may be more than fits
};

// text may be NULL when capacity is 0.
struct vr_sink vr_sink_begin(char *text, size_t capacity);
void vr_sink_printf(struct vr_sink *sink, const char *format, ...) VRAM_PRINTF(2, 3);

#endif
