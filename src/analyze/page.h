// page.h: what the pages of a report for people are made of, besides bars and tables.
#ifndef VR_ANALYZE_PAGE_H
#define VR_ANALYZE_PAGE_H

#include "base/text.h"

// An empty line, then a title in bold and what follows it in plain.
void vr_page_heading(struct vr_text *text, const struct vram_style *style, const char *title, const char *rest);
// A coloured mark in a field of `columns` columns, and a text beside it that is wrapped at the style's width.
void vr_page_item(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *mark, unsigned columns,
                  const char *string);
// An item of a list: prefix and string as one text.
void vr_page_bullet(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *prefix, const char *string);
// Appends a foreign string as a table cell. A failure becomes that of `text`.
void vr_page_foreign(struct vr_text *text, struct vr_table *table, const char *string);
// Appends the name of a call site as it is read: of machine code without a line ("??:0:", "a.cpp:0:") the function alone, without its
// arguments, which would push it out of sight. Other names as they are.
void vr_page_site(struct vr_text *text, const char *name, size_t length);
// The same for the name of a C++ function.
void vr_page_function(struct vr_text *text, const char *name, size_t length);
// The same as vr_page_foreign() for a call site.
void vr_page_site_cell(struct vr_text *text, struct vr_table *table, const char *name);
// Saturates.
VR_INLINE uint64_t vr_us_to_ns(uint64_t us) { return us < UINT64_MAX / 1000 ? us * 1000 : UINT64_MAX; }

#endif
