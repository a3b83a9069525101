// fit_page.h: the printed answer of `vram fit`, whose lines are wrapped to the width of the terminal.
#ifndef CLI_FIT_PAGE_H
#define CLI_FIT_PAGE_H

#include <stdio.h>

#define FIT_TEXT_COLUMN 17 // column where the text after a title begins

struct fit_page {
    FILE *file; // NULL: no host memory
    char *text;
    size_t length;
};

// Returns the width of the answer: that of the terminal, from 60 to 140 columns, or 80 for files and pipes.
unsigned fit_page_columns(void);

// Returns the file to print the answer to. If host memory runs out, it is standard output, and no line is wrapped.
FILE *fit_page_open(struct fit_page *page);

// Prints the answer to standard output. Lines that are too wide are broken at spaces. They continue at the text column or at their own
// indent, whichever is larger; lines without an indent continue at the left edge. Words that are wider than a line are not broken.
void fit_page_close(struct fit_page *page);

#endif
