// text_parts.h: what texts for people are made of besides bars and tables: titles, items, names, pictures of characters, and how they are
// handed over.
#ifndef VR_PRESENT_TEXT_PARTS_H
#define VR_PRESENT_TEXT_PARTS_H

#include "base/text.h"
#include "vram/report.h"

// ---- What texts for people are made of besides bars and tables: titles, items, names, and how they are handed over.

// Hands the text to `write`. NO_HOST_MEMORY where it is incomplete, IO where write() returned false.
enum vram_status vr_text_hand_over(const struct vr_text *text, vram_write write, void *user);
// The same, and releases it.
enum vram_status vr_text_finish(struct vr_text *text, vram_write write, void *user);

// The recording's name as a line of its own; nothing for NULL.
void vr_text_title(struct vr_text *text, const struct vram_style *style, const char *file);
// An empty line, then a title in bold and what follows it in plain.
void vr_text_heading(struct vr_text *text, const struct vram_style *style, const char *title, const char *rest);
// A coloured mark in a field of `columns` columns, and a text beside it that is wrapped at the style's width.
void vr_text_item(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *mark, unsigned columns,
                  const char *string);
// An item of a list: prefix and string as one text.
void vr_text_bullet(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *prefix, const char *string);
// Appends a foreign string as a table cell. A failure becomes that of `text`.
void vr_table_foreign(struct vr_text *text, struct vr_table *table, const char *string);
// Appends the name of a call site as it is read: of machine code without a line ("??:0:", "a.cpp:0:") the function alone, without its
// arguments, which would push it out of sight. Other names as they are.
void vr_text_site(struct vr_text *text, const char *name, size_t length);
// Appends LIBRARY+0x38b00 for machine code without a name. False for all else, and nothing is appended.
bool vr_text_unnamed(struct vr_text *text, const char *file, size_t file_length, const char *name, size_t length);
// The same for the name of a C++ function.
void vr_text_function(struct vr_text *text, const char *name, size_t length);
// The same as vr_table_foreign() for a call site.
void vr_table_site(struct vr_text *text, struct vr_table *table, const char *name);
// Saturates.
VR_INLINE uint64_t vr_us_to_ns(uint64_t us) { return us < UINT64_MAX / 1000 ? us * 1000 : UINT64_MAX; }

// ---- Pictures of memory made of characters.

// One part of a bar of several parts.
struct vr_part {
    uint64_t bytes;
    const char *mark;       // one column, in unicode
    const char *ascii_mark; // the same without
    enum vr_colour colour;
};

// The mark of a part in this style.
const char *vr_part_mark(const struct vr_part *part, const struct vram_style *style);
// A bar of exactly `columns` columns, shared by the parts; every part that is not 0 gets a column while there are any.
void vr_chart_bar(struct vr_text *text, const struct vram_style *style, const struct vr_part *parts, size_t count, unsigned columns);
// Whether what is reserved is shown: what a whole program asks the driver for is what it holds, and a log of allocations does not tell.
bool vr_shows_reserved(const struct vram_report *report, const struct vram_report_device *device);
// Allocated over reserved memory, where that is shown, along the events, with a scale, `rows` high; out-of-memory events are marked below.
void vr_chart_timeline(struct vr_text *text, const struct vram_style *style, const struct vram_report_device *device, unsigned rows,
                       unsigned indent);

// ---- Where a report for people goes, and when its replays are asked for.

struct vr_report_output {
    struct vr_text *text;                    // what is not yet written
    const struct vram_report_source *source; // may be NULL
    bool replayed;                           // the source's replay() was called
    bool refused;                            // `write` returned false
    vram_write write;
    void *user;
};

// The source with its cures and savings. The first call writes what there is and runs the replays.
const struct vram_report_source *vr_report_replayed(struct vr_report_output *output);

#endif
