#include <errno.h>
#include <locale.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ui.h"

static unsigned terminal_columns(void) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    if (columns != NULL && atoi(columns) > 0) return (unsigned)atoi(columns);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 100;
}

struct vram_style ui_style(void) {
    struct vram_style style = {.columns = 100};
    if (isatty(STDOUT_FILENO)) {
        const char *term = getenv("TERM");
        const char *no_colour = getenv("NO_COLOR");
        style.columns = terminal_columns();
        style.colour = (no_colour == NULL || no_colour[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0;
        if (setlocale(LC_CTYPE, "") != NULL) style.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    }
    const char *wanted = getenv("VRAM_STYLE");
    if (wanted != NULL) {
        style.colour = strcmp(wanted, "colour") == 0;
        style.unicode = style.colour || strcmp(wanted, "unicode") == 0;
    }
    // Wider lines are harder to read, not better.
    if (style.columns > 140) style.columns = 140;
    return style;
}

bool ui_write(void *user, const char *bytes, size_t length) {
    (void)user;
    return fwrite(bytes, 1, length, stdout) == length;
}

void ui_complain(const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c < 0x20 || *c == 0x7F)
            fprintf(stderr, "\\x%02X", *c);
        else
            fputc(*c, stderr);
    }
}

int ui_error(const char *file, const struct vram_error *error) {
    fflush(stdout);
    fprintf(stderr, "vram: ");
    if (file != NULL) {
        ui_complain(file);
        fprintf(stderr, ": ");
    }
    ui_complain(error->message);
    fputc('\n', stderr);
    return vram_status_exit_code(error->status);
}

bool ui_finish(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    fprintf(stderr, "vram: standard output could not be written: %s\n", strerror(errno));
    return false;
}
