#include "analyze/page.h"

#define INDENT 4u

void vr_page_heading(struct vr_text *text, const struct vram_style *style, const char *title, const char *rest) {
    vr_text_puts(text, "\n  ");
    vr_text_colour(text, style, VR_BOLD);
    vr_text_puts(text, title);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_printf(text, "%s\n", rest);
}

void vr_page_item(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *mark, unsigned columns,
                  const char *string) {
    const size_t mark_width = vr_text_width(mark, strlen(mark)), start = INDENT + columns;
    vr_text_repeat(text, " ", INDENT);
    vr_text_colour(text, style, colour);
    vr_text_puts(text, mark);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_repeat(text, " ", mark_width < columns ? columns - mark_width : 0);
    size_t column = start;
    for (const char *word = string; *word != '\0';) {
        const size_t length = strcspn(word, " ");
        const size_t width = vr_text_width(word, length);
        if (column + 1 + width > style->columns && column > start) {
            vr_text_puts(text, "\n");
            vr_text_repeat(text, " ", start);
            column = start;
        }
        vr_text_puts(text, " ");
        vr_text_append(text, word, length);
        column += 1 + width;
        word += length + strspn(word + length, " ");
    }
    vr_text_puts(text, "\n");
}

void vr_page_bullet(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *prefix, const char *string) {
    struct vr_text whole = {0};
    vr_text_printf(&whole, "%s%s", prefix, string);
    vr_page_item(text, style, colour, style->unicode ? "•" : "-", 1, vr_text_string(&whole));
    text->failed = text->failed || whole.failed;
    vr_text_release(&whole);
}

void vr_page_foreign(struct vr_text *text, struct vr_table *table, const char *string) {
    struct vr_text clean = {0};
    vr_text_printable(&clean, string, strlen(string));
    vr_table_cell_bytes(table, vr_text_string(&clean), clean.length);
    text->failed = text->failed || clean.failed;
    vr_text_release(&clean);
}
