// ui.h: writes to standard output and standard error, for every command.
#ifndef CLI_UI_H
#define CLI_UI_H

#include <stdint.h>
#include <stdio.h>

#include "args.h"
#include "vram/status.h"

// Returns how to write to standard output: its width, and colour and block characters if it is a terminal. Respects NO_COLOR, TERM, COLUMNS
// and the locale. VRAM_STYLE=plain|unicode|colour overrides the result (for tests and screenshots).
struct vram_style ui_style(void);
// A vram_write() to standard output; ignores user.
bool ui_write(void *user, const char *bytes, size_t length);
// Prints foreign text (a file's name, a word of a recording). Writes control characters and invalid UTF-8 as \xNN, so that one line stays
// one and cannot control the terminal.
void ui_put(FILE *file, const char *text);
// Prints the words of a text, as ui_put() does, in lines of at most `width` columns. The first line starts at `column`, to which the others
// are indented. A newline followed by spaces begins a line with that indent, which continues two columns further in. Other newlines count
// as spaces.
void ui_wrap(FILE *file, const char *text, unsigned column, unsigned width);
// Prints one line on standard error, formatted like printf() and printed by ui_put(): "vram: FILE: what is wrong".
void ui_say(const char *format, ...) VRAM_PRINTF(1, 2);
// Redirects ui_say() and what uses it; NULL means standard error. Returns the previous target.
FILE *ui_says_to(FILE *file);
// Reports a mistake on the command line of `vram COMMAND`, as ui_say() does, and points to its help. Returns CLI_USAGE.
int ui_usage(const char *command, const char *format, ...) VRAM_PRINTF(2, 3);
// "vram: --NAME: 'VALUE' is not one of A, B, C". choices ends with NULL.
void ui_none_of(const char *name, const char *value, const char *const *choices);
// Returns the exit code for a status of the library.
int exit_code_of(enum vram_status status);
// Prints one line on standard error: `vram: FILE: message` (the message includes the place in the file). file may be NULL. Returns the exit
// code of error->status.
int ui_error(const char *file, const struct vram_error *error);
// Returns the exit code of a command that printed its result on standard output: CLI_FINDING if `found`, else CLI_OK. Reports a failure by
// ui_error(), except failures of standard output, which ui_finish() reports, and those already reported (error NULL).
int ui_result(enum vram_status status, bool found, const char *file, const struct vram_error *error);
// Flushes standard output. Returns false, after a line on standard error (once), if something could not be written.
bool ui_finish(void);

#define UI_SIZE_CAPACITY 16
// Writes a size as the library's reports do: "512 B", "1.5 KiB", "23.9 GiB". Returns text.
const char *ui_size(uint64_t bytes, char text[UI_SIZE_CAPACITY]);
#define UI_COUNT_CAPACITY 32
// Writes a number as "1,234,567". Returns text.
const char *ui_count(uint64_t number, char text[UI_COUNT_CAPACITY]);

#endif
