// text_parts.h: parts of texts: titles, items, names, charts of characters, and output.
#ifndef VR_PRESENT_TEXT_PARTS_H
#define VR_PRESENT_TEXT_PARTS_H

#include "base/text.h"
#include "vram/report.h"

// ---- titles, items, names, and output ----

// Passes the text to `write`. NO_HOST_MEMORY if the text is incomplete, IO if write() returned false.
enum vram_status vr_text_hand_over(const struct vr_text *text, vram_write write, void *user);
// Like vr_text_hand_over(), then releases the text.
enum vram_status vr_text_finish(struct vr_text *text, vram_write write, void *user);

// Prints the recording's name on its own line, or nothing if file is NULL.
void vr_text_title(struct vr_text *text, const struct vram_style *style, const char *file);
// Prints an empty line, then the title in bold, followed by `rest` in plain.
void vr_text_heading(struct vr_text *text, const struct vram_style *style, const char *title, const char *rest);
// Prints a coloured mark in a field of `columns` columns, followed by the string, wrapped at the style's width.
void vr_text_item(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *mark, unsigned columns,
                  const char *string);
// Prints the words of `string` in lines of the style's width. The first line already has `at` columns; further lines are indented by
// `indent`. Ends the last line.
void vr_text_flow(struct vr_text *text, const struct vram_style *style, unsigned at, unsigned indent, const char *string);
// Folds the lines of the text from byte `from` on that are wider than the style, at spaces; what is folded is indented by two columns more.
void vr_text_fold(struct vr_text *text, const struct vram_style *style, size_t from);
// Prints an item of a list, with prefix and string as one text.
void vr_text_bullet(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *prefix, const char *string);
// Appends an untrusted string as a table cell. Sets text->failed if memory runs out.
void vr_table_foreign(struct vr_text *text, struct vr_table *table, const char *string);
// Appends the name of a call site. For machine code without a line ("??:0:", "a.cpp:0:") appends only the function, without its arguments,
// which would push it out of view. Appends other names unchanged.
void vr_text_site(struct vr_text *text, const char *name, size_t length);
// Appends LIBRARY+0x38b00 for machine code without a name. Otherwise returns false and appends nothing.
bool vr_text_unnamed(struct vr_text *text, const char *file, size_t file_length, const char *name, size_t length);
// Appends the name of a C++ function without its arguments.
void vr_text_function(struct vr_text *text, const char *name, size_t length);
// Like vr_table_foreign(), for a call site.
void vr_table_site(struct vr_text *text, struct vr_table *table, const char *name);
// Converts microseconds to nanoseconds, saturating.
VR_INLINE uint64_t vr_us_to_ns(uint64_t us) { return us < UINT64_MAX / 1000 ? us * 1000 : UINT64_MAX; }

// ---- charts made of characters ----

// One part of a bar.
struct vr_part {
    uint64_t bytes;
    const char *mark;       // Unicode, one column wide
    const char *ascii_mark; // in ASCII
    enum vr_colour colour;
};

// Returns the part's mark in this style.
const char *vr_part_mark(const struct vr_part *part, const struct vram_style *style);
// Prints a bar of exactly `columns` columns divided among the parts. Every nonzero part gets at least one column while columns remain.
void vr_chart_bar(struct vr_text *text, const struct vram_style *style, const struct vr_part *parts, size_t count, unsigned columns);
// Prints one column of a small chart: how high `part` is in `whole`, which is not 0.
void vr_text_level(struct vr_text *text, const struct vram_style *style, uint64_t part, uint64_t whole);
// Returns whether reserved memory is shown. It is not for a whole program, where it is just what the program requests from the driver, nor
// for a log of allocations, which lacks it.
bool vr_shows_reserved(const struct vram_report *report, const struct vram_report_device *device);
// Prints a chart, `rows` high, of allocated memory over the events, with a scale, and reserved memory behind it if that is shown. Marks
// out-of-memory events below.
void vr_chart_timeline(struct vr_text *text, const struct vram_style *style, const struct vram_report_device *device, unsigned rows,
                       unsigned indent);

// ---- the output of a text report ----

struct vr_report_output {
    struct vr_text *text;                    // not yet written
    const struct vram_report_source *source; // may be NULL
    bool replayed;                           // the source's replay() was called
    bool refused;                            // `write` returned false
    vram_write write;
    void *user;
};

// Returns the source with its cures and savings. The first call writes the text so far and runs the replays.
const struct vram_report_source *vr_report_replayed(struct vr_report_output *output);

#endif
