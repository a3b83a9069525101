// text.h: text in a growing buffer or the caller's, tables, and UTF-8 decoding.
#ifndef VR_BASE_TEXT_H
#define VR_BASE_TEXT_H

#include "base/base.h"
#include "vram/status.h"

// Text in a growing buffer, and the project's format of sizes, counts, times and tables.
//
// A buffer remembers a failure to grow, so writers append without checking and call vr_text_status() once at the end. Buffers and tables
// belong to one thread at a time. Text that comes from a recording goes through vr_text_printable(), so that a name in an untrusted file
// cannot move the cursor or recolour a terminal.

// A zeroed struct is an empty buffer. bytes is NUL-terminated after the first append; length excludes the NUL.
struct vr_text {
    char *bytes;
    size_t length;
    size_t capacity;
    bool failed; // host memory ran out: bytes has only what fitted
};

// Frees the bytes and empties the buffer.
void vr_text_release(struct vr_text *text);
// Returns NO_HOST_MEMORY if any append failed, else OK.
enum vram_status vr_text_status(const struct vr_text *text);
// Never returns NULL: "" for an empty buffer.
const char *vr_text_string(const struct vr_text *text);

// Copies the text into a string that the caller owns: free(). NO_HOST_MEMORY if this or an append failed.
enum vram_status vr_text_copy(const struct vr_text *text, char **copy);

void vr_text_append(struct vr_text *text, const char *bytes, size_t length);
void vr_text_puts(struct vr_text *text, const char *string);
void vr_text_repeat(struct vr_text *text, const char *string, size_t times);
void vr_text_printf(struct vr_text *text, const char *format, ...) VRAM_PRINTF(2, 3);
// Appends untrusted bytes as text that a terminal can show: control characters become '?', malformed UTF-8 and surrogates U+FFFD.
void vr_text_printable(struct vr_text *text, const char *bytes, size_t length);

// Returns the columns that `length` bytes of UTF-8 take (one per code point).
size_t vr_text_width(const char *bytes, size_t length);

// --- one value ---------------------------------------------------------------------------------------------------------
#define VR_FORMAT_CAPACITY 48

// A value as text inside the struct, so that several fit into one printf: vr_bytes(n).text.
struct vr_formatted {
    char text[VR_FORMAT_CAPACITY];
};
// Formats in binary units, with one decimal from KiB up: "512 B", "1.5 KiB", "23.9 GiB".
struct vr_formatted vr_bytes(uint64_t bytes);
// Like vr_bytes(), with as many decimals as distinguish it from `other`; in bytes if four do not.
struct vr_formatted vr_bytes_unlike(uint64_t bytes, uint64_t other);
// Formats with thousands separators: "1,234,567".
struct vr_formatted vr_count(uint64_t count);
// "1 block", "1,234 blocks": a noun whose plural ends in s.
struct vr_formatted vr_counted(uint64_t count, const char *noun);
// "850 ns", "71.8 ms", "2.04 s", "3m 12s", "2h 05m".
struct vr_formatted vr_duration_ns(uint64_t duration_ns);
// Formats part of whole: "12.3 %", "<0.1 %"; "-" if whole is 0.
struct vr_formatted vr_percent(uint64_t part, uint64_t whole);

// --- decoration --------------------------------------------------------------------------------------------------------
enum vr_colour { VR_PLAIN, VR_BOLD, VR_DIM, VR_RED, VR_GREEN, VR_YELLOW, VR_BLUE, VR_MAGENTA, VR_CYAN, VR_COLOUR_COUNT };
// Returns the line width in columns: 100 if the style sets none, and at least 60.
unsigned vr_style_columns(const struct vram_style *style);
// Appends the escape that starts a colour; VR_PLAIN ends it. Appends nothing if the style has no colour.
void vr_text_colour(struct vr_text *text, const struct vram_style *style, enum vr_colour colour);
// Appends a bar of `columns` columns, part/whole of it filled, in eighths of a column in unicode, and padded with spaces.
void vr_text_bar(struct vr_text *text, const struct vram_style *style, uint64_t part, uint64_t whole, unsigned columns);

// --- tables --------------------------------------------------------------------------------------------------------------
enum vr_align { VR_LEFT, VR_RIGHT };

struct vr_table_column {
    const char *title; // NULL or "": no title
    enum vr_align align;
    enum vr_colour colour; // of the cells
    bool flexible;         // cut from the left ("...tail") if the table is wider than the style; at most one column
};

// Cells are appended row by row; printing measures them. Zero the struct, then call vr_table_init().
struct vr_table {
    const struct vr_table_column *columns; // borrowed
    size_t column_count;
    struct vr_text cells; // cell texts in sequence, each with its NUL
    size_t *offsets;      // start of each cell
    size_t cell_count;
    size_t cell_capacity;
};
// columns is borrowed until the release.
void vr_table_init(struct vr_table *table, const struct vr_table_column *columns, size_t column_count);
void vr_table_release(struct vr_table *table);
// Appends the next cell.
void vr_table_cell(struct vr_table *table, const char *format, ...) VRAM_PRINTF(2, 3);
// Appends bytes as they are (they should have gone through vr_text_printable()).
void vr_table_cell_bytes(struct vr_table *table, const char *bytes, size_t length);
// Prints titles (if any column has one) and complete rows, each line indented by `indent` spaces and without trailing spaces. A table that
// failed prints nothing and fails `text`.
void vr_table_print(const struct vr_table *table, struct vr_text *text, const struct vram_style *style, unsigned indent);

#define VR_UTF8_MALFORMED UINT32_MAX

// Decodes the code point at bytes (length must not be 0) and returns how many bytes it took, at least 1. Surrogates encoded in three
// bytes are accepted and returned as such (Python's "surrogatepass"); anything else malformed is VR_UTF8_MALFORMED over one byte.
size_t vr_utf8_decode(const char *bytes, size_t length, uint32_t *code);

// Writes into the caller's buffer like snprintf(): text that does not fit is counted but not stored.
struct vr_sink {
    char *text; // NUL-terminated if capacity is not 0
    size_t capacity;
    size_t length; // of the full text, without the NUL; may exceed the capacity
};

// text may be NULL when capacity is 0.
struct vr_sink vr_sink_begin(char *text, size_t capacity);
void vr_sink_printf(struct vr_sink *sink, const char *format, ...) VRAM_PRINTF(2, 3);

#endif
