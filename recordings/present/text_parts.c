#include "present/text_parts.h"

#include "present/report_output.h"

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

void vr_text_heading(struct vr_text *text, const struct vram_style *style, const char *title, const char *rest) {
    vr_text_puts(text, "\n  ");
    vr_text_colour(text, style, VR_BOLD);
    vr_text_puts(text, title);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_printf(text, "%s\n", rest);
}

void vr_text_item(struct vr_text *text, const struct vram_style *style, enum vr_colour colour, const char *mark, unsigned columns,
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

// Where the arguments of a C++ function begin; `length` where it has none. Parentheses of templates, of "(anonymous namespace)" and of
// "operator()" are not they.
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
    // The first ":0:" ends the file: lines of source begin at 1, and what stands before it holds no other line.
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
