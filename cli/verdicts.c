// open_memstream()
#define _POSIX_C_SOURCE 200809L
#include "verdicts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "ui.h"

struct verdict {
    char *name, *text;
    bool passed;
};

// Returns the text as ui_put() prints it, because neither file may contain control characters or invalid UTF-8. Returns NULL if memory runs
// out.
static char *plain_text(const char *text) {
    char *made = NULL;
    size_t length;
    FILE *file = open_memstream(&made, &length);
    if (file == NULL) return NULL;
    ui_put(file, text);
    if (fclose(file) == 0) return made;
    free(made);
    return NULL;
}

static char *plain_sentence(const char *format, va_list arguments) {
    char text[1024]; // longer ones are cut
    (void)vsnprintf(text, sizeof text, format, arguments);
    return plain_text(text);
}

static bool grow_verdicts(struct verdicts *verdicts) {
    if (verdicts->count < verdicts->capacity) return true;
    const size_t capacity = verdicts->capacity == 0 ? 16 : 2 * verdicts->capacity;
    struct verdict *rows = realloc(verdicts->rows, capacity * sizeof *rows);
    if (rows == NULL) return false;
    verdicts->rows = rows;
    verdicts->capacity = capacity;
    return true;
}

void verdicts_add(struct verdicts *verdicts, const char *name, bool passed, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    struct verdict made = {.name = plain_text(name), .text = plain_sentence(format, arguments), .passed = passed};
    va_end(arguments);
    if (!passed) ui_say("vram: %s: %s", name, made.text == NULL ? "above the limit" : made.text);
    if (made.name == NULL || made.text == NULL || !grow_verdicts(verdicts)) {
        verdicts->failed = true;
        free(made.name);
        free(made.text);
        return;
    }
    verdicts->rows[verdicts->count++] = made;
}

static size_t count_failures(const struct verdicts *verdicts) {
    size_t failures = 0;
    for (size_t i = 0; i < verdicts->count; i++) failures += !verdicts->rows[i].passed;
    return failures;
}

// --- output files -------------------------------------------------------------------------------------------------------------

// The replacement of each ASCII character; NULL: itself.
struct escapes {
    const char *of[128];
};
static const struct escapes in_xml = {.of = {['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"}};
// In a cell of a Markdown table: numeric references, so that a name is never read as markup.
static const struct escapes in_cell = {.of = {['&'] = "&amp;",
                                              ['<'] = "&lt;",
                                              ['>'] = "&gt;",
                                              ['|'] = "&#124;",
                                              ['`'] = "&#96;",
                                              ['*'] = "&#42;",
                                              ['_'] = "&#95;",
                                              ['['] = "&#91;",
                                              ['@'] = "&#64;",
                                              ['\\'] = "&#92;"}};
// In the message of a workflow command.
static const struct escapes in_command = {.of = {['%'] = "%25"}};

static void put_escaped(FILE *file, const struct escapes *escapes, const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at < 128 && escapes->of[*at] != NULL)
            fputs(escapes->of[*at], file);
        else
            fputc(*at, file);
    }
}

static void write_junit(FILE *file, const struct verdicts *verdicts) {
    fprintf(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\">\n",
            verdicts->suite, verdicts->count, count_failures(verdicts));
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict *row = &verdicts->rows[i];
        fprintf(file, "<testcase classname=\"%s\" name=\"", verdicts->suite);
        put_escaped(file, &in_xml, row->name);
        fputs(row->passed ? "\"><system-out>" : "\"><failure message=\"", file);
        put_escaped(file, &in_xml, row->text);
        fputs(row->passed ? "</system-out></testcase>\n" : "\"/></testcase>\n", file);
    }
    fputs("</testsuite>\n</testsuites>\n", file);
}

static void write_summary(FILE *file, const struct verdicts *verdicts) {
    fprintf(file, "### %s\n\n| | recording | |\n|---|---|---|\n", verdicts->suite);
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict *row = &verdicts->rows[i];
        fputs(row->passed ? "| passed | " : "| **failed** | ", file);
        put_escaped(file, &in_cell, row->name);
        fputs(" | ", file);
        put_escaped(file, &in_cell, row->text);
        fputs(" |\n", file);
    }
    fputc('\n', file);
}

static void write_annotations(const struct verdicts *verdicts) {
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict *row = &verdicts->rows[i];
        if (row->passed) continue;
        fprintf(stderr, "::error title=%s::", verdicts->suite);
        put_escaped(stderr, &in_command, row->name);
        fputs(": ", stderr);
        put_escaped(stderr, &in_command, row->text);
        fputc('\n', stderr);
    }
}

static int save_junit(const struct verdicts *verdicts) {
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (file != NULL) write_junit(file, verdicts);
    const bool made = file != NULL && fclose(file) == 0;
    struct output *output = made ? output_open(verdicts->junit) : NULL;
    if (!made) ui_say("vram: %s: %s", verdicts->junit, vram_status_text(VRAM_NO_HOST_MEMORY));
    const bool whole = output != NULL && output_write(output, text, length);
    free(text);
    return output == NULL ? exit_code_of(VRAM_IO) : output_close(output, whole);
}

// Appends to the summary of a GitHub job. Outside GitHub there is no such file.
static int append_summary(const struct verdicts *verdicts) {
    const char *path = getenv("GITHUB_STEP_SUMMARY");
    if (path == NULL || path[0] == '\0') return CLI_OK;
    FILE *file = output_append(path);
    if (file != NULL) write_summary(file, verdicts);
    const bool failed = file != NULL && ferror(file);
    if (file != NULL && fclose(file) == 0 && !failed) return CLI_OK;
    ui_say("vram: %s: cannot write the summary", path);
    return exit_code_of(VRAM_IO);
}

static void release_verdicts(struct verdicts *verdicts) {
    for (size_t i = 0; i < verdicts->count; i++) {
        free(verdicts->rows[i].name);
        free(verdicts->rows[i].text);
    }
    free(verdicts->rows);
    verdicts->rows = NULL;
    verdicts->count = verdicts->capacity = 0;
}

int verdicts_end(struct verdicts *verdicts, int code) {
    int worst = code;
    if (verdicts->failed) {
        ui_say("vram: %s", vram_status_text(VRAM_NO_HOST_MEMORY));
        worst = exit_code_of(VRAM_NO_HOST_MEMORY);
    }
    if (worst == CLI_OK && count_failures(verdicts) != 0) worst = CLI_FINDING;
    if (verdicts->junit != NULL) {
        const int written = save_junit(verdicts);
        if (written > worst) worst = written;
    }
    if (verdicts->github) {
        write_annotations(verdicts);
        const int written = append_summary(verdicts);
        if (written > worst) worst = written;
    }
    release_verdicts(verdicts);
    return worst;
}
