// text_parts.h: what texts for people are made of besides bars and tables: titles, items, names, and how they are handed over.
#ifndef VR_PRESENT_TEXT_PARTS_H
#define VR_PRESENT_TEXT_PARTS_H

#include "base/text.h"

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

#endif
