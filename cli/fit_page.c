// Wraps the printed answer of `vram fit`. Every part prints whole lines into memory, so the width is known in this file only.
#include "fit_page.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui.h"
#include "vram/report.h"

#define PIPE_COLUMNS 80 // pages show answers of this width

unsigned fit_page_columns(void) { return isatty(STDOUT_FILENO) ? ui_style().columns : PIPE_COLUMNS; }

FILE *fit_page_open(struct fit_page *page) {
    *page = (struct fit_page){.file = NULL};
    page->file = open_memstream(&page->text, &page->length);
    return page->file == NULL ? stdout : page->file;
}

static bool begins_character(char byte) { return ((unsigned char)byte & 0xC0) != 0x80; }

// Returns the length of the piece that fits into `width` columns and ends at a space after the column `least`. If there is none, the piece
// ends at the next space, or with the line.
static size_t fitting_piece(const char *line, size_t length, size_t least, size_t width) {
    size_t piece = 0, column = 0;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == ' ' && column > least) piece = i;
        if (begins_character(line[i])) column++;
        if (column > width && piece != 0) return piece;
    }
    return column > width && piece != 0 ? piece : length;
}

static void print_line(const char *line, size_t length, size_t width) {
    const size_t own = strspn(line, " "), indent = own == 0 || own > FIT_TEXT_COLUMN ? own : FIT_TEXT_COLUMN;
    for (size_t column = 0; length > 0; column = indent) {
        const size_t piece = fitting_piece(line, length, column == 0 ? indent : 0, width - column);
        (void)fwrite(line, 1, piece, stdout);
        line += piece;
        length -= piece;
        for (; length > 0 && *line == ' '; line++) length--;
        if (length > 0) printf("\n%*s", (int)indent, "");
    }
    printf("\n");
}

void fit_page_close(struct fit_page *page) {
    const size_t width = fit_page_columns();
    if (page->file == NULL) return;
    (void)fclose(page->file);
    for (const char *line = page->text; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        print_line(line, length, width);
        line += length + (line[length] == '\n');
    }
    free(page->text);
}
