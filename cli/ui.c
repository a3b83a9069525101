#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
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
    // Wider lines are hard to read, and the tables do not fit into narrower ones.
    if (style.columns > 140) style.columns = 140;
    if (style.columns < 60) style.columns = 60;
    return style;
}

bool ui_write(void *user, const char *bytes, size_t length) {
    (void)user;
    return fwrite(bytes, 1, length, stdout) == length;
}

// Returns the length in bytes of the character at `text`; 0 at the end and for invalid UTF-8.
static size_t character(const unsigned char *text) {
    if (text[0] < 0x80) return text[0] != '\0';
    const size_t length = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    // The first two bytes reveal overlong forms, surrogates and code points above U+10FFFF.
    const unsigned second_least = text[0] == 0xE0 ? 0xA0 : text[0] == 0xF0 ? 0x90 : 0x80;
    const unsigned second_most = text[0] == 0xED ? 0x9F : text[0] == 0xF4 ? 0x8F : 0xBF;
    if (text[0] < 0xC2 || text[0] > 0xF4 || text[1] < second_least || text[1] > second_most) return 0;
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
    }
    return length;
}

// Control characters, U+0000 to U+001F and U+007F to U+009F, and characters that change the order or lines of text: U+061C, U+200E, U+200F,
// U+2028 to U+202E, U+2066 to U+2069, U+FEFF.
static bool is_control(const unsigned char *text) {
    if (text[0] < 0x20 || text[0] == 0x7F || (text[0] == 0xC2 && text[1] < 0xA0)) return true;
    if (text[0] == 0xD8) return text[1] == 0x9C;
    if (text[0] == 0xE2 && text[1] == 0x80) return text[2] == 0x8E || text[2] == 0x8F || (text[2] >= 0xA8 && text[2] <= 0xAE);
    if (text[0] == 0xE2 && text[1] == 0x81) return text[2] >= 0xA6 && text[2] <= 0xA9;
    return text[0] == 0xEF && text[1] == 0xBB && text[2] == 0xBF;
}

static void put_visible(FILE *file, const char *text, size_t count) {
    for (const unsigned char *c = (const unsigned char *)text, *end = c + count; c < end;) {
        const size_t length = character(c), bytes = length == 0 ? 1 : length;
        const bool shown = length != 0 && !is_control(c);
        for (size_t i = 0; i < bytes; i++) fprintf(file, shown ? "%c" : "\\x%02X", c[i]);
        c += bytes;
    }
}

void ui_put(FILE *file, const char *text) { put_visible(file, text, strlen(text)); }

void ui_wrap(FILE *file, const char *text, unsigned column, unsigned width) {
    unsigned used = column;
    bool fresh = true; // the line is empty
    for (size_t length; *text != '\0'; text += length) {
        if (text[0] == '\n' && text[1] == ' ') {
            used = (unsigned)strspn(text + 1, " ");
            column = used + 2;
            length = 1 + used;
            fresh = true;
            fprintf(file, "\n%*s", (int)used, "");
            continue;
        }
        length = strspn(text, " \n");
        if (length != 0) continue;
        length = strcspn(text, " \n");
        if (!fresh && used + 1 + length > width) {
            fprintf(file, "\n%*s", (int)column, "");
            used = column;
        } else if (!fresh) {
            fputc(' ', file);
            used++;
        }
        put_visible(file, text, length);
        used += (unsigned)length;
        fresh = false;
    }
}

static FILE *says_to; // NULL: standard error

FILE *ui_says_to(FILE *file) {
    FILE *before = says_to;
    says_to = file;
    return before;
}

static void say_line(const char *format, va_list arguments) {
    va_list again;
    char line[512], *longer = NULL;
    va_copy(again, arguments);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    if (length >= (int)sizeof line) longer = malloc((size_t)length + 1);
    if (longer != NULL) (void)vsnprintf(longer, (size_t)length + 1, format, again);
    va_end(again);
    FILE *file = says_to == NULL ? stderr : says_to;
    fflush(stdout);
    // If memory runs out, the line is cut.
    ui_put(file, longer != NULL ? longer : line);
    fputc('\n', file);
    free(longer);
}

void ui_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say_line(format, arguments);
    va_end(arguments);
}

int ui_usage(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say_line(format, arguments);
    va_end(arguments);
    fprintf(stderr, "Try 'vram %s --help'.\n", command);
    return CLI_USAGE;
}

void ui_none_of(const char *name, const char *value, const char *const *choices) {
    FILE *file = says_to == NULL ? stderr : says_to;
    fflush(stdout);
    fprintf(file, "vram: --%s: '", name);
    ui_put(file, value);
    fprintf(file, "' is not one of");
    for (size_t i = 0; choices[i] != NULL; i++) fprintf(file, "%s %s", i == 0 ? "" : ",", choices[i]);
    fputc('\n', file);
}

int exit_code_of(enum vram_status status) {
    switch (status) {
    case VRAM_OK: return CLI_OK;
    case VRAM_OUT_OF_MEMORY:
    case VRAM_REJECTED:
    case VRAM_ASLEEP:
    case VRAM_LENT:
    case VRAM_MISMATCH: return CLI_FINDING;
    case VRAM_NO_HOST_MEMORY:
    case VRAM_BAD_INPUT:
    case VRAM_IO:
    case VRAM_LIMIT: return CLI_BAD_INPUT;
    case VRAM_NO_DRIVER:
    case VRAM_DRIVER:
    case VRAM_UNSUPPORTED: return CLI_DEVICE;
    case VRAM_INVALID_ARGUMENT:
    case VRAM_INVALID_POINTER:
    case VRAM_BAD_OPTION: break;
    }
    return CLI_USAGE;
}

int ui_error(const char *file, const struct vram_error *error) {
    ui_say("vram: %s%s%s", file == NULL ? "" : file, file == NULL ? "" : ": ", error->message);
    return exit_code_of(error->status);
}

int ui_result(enum vram_status status, bool found, const char *file, const struct vram_error *error) {
    if (status == VRAM_OK) return found ? CLI_FINDING : CLI_OK;
    return status == VRAM_IO || error == NULL ? CLI_BAD_INPUT : ui_error(file, error);
}

const char *ui_count(uint64_t number, char text[UI_COUNT_CAPACITY]) {
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

const char *ui_size(uint64_t bytes, char text[UI_SIZE_CAPACITY]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    // Use the next unit when one decimal would round up to 1024.0.
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= (unit == 0 ? 1024.0 : 1023.95) && unit + 1 < sizeof units / sizeof units[0]; unit++) value /= 1024;
    (void)snprintf(text, UI_SIZE_CAPACITY, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

bool ui_finish(void) {
    static bool reported;
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    if (!reported) ui_say("vram: cannot write to standard output: %s", strerror(errno));
    reported = true;
    return false;
}
