// ui.h: what every command does with standard output and standard error.
#ifndef CLI_UI_H
#define CLI_UI_H

#include <stdint.h>
#include <stdio.h>

#include "args.h"
#include "vram/status.h"

// How standard output can be written to: its width, and colour and block characters where it is a terminal. NO_COLOR, TERM, COLUMNS
// and the locale are respected; VRAM_STYLE=plain|unicode|colour overrides what was found (for tests and screenshots).
struct vram_style ui_style(void);
// A vram_write to standard output; user is not looked at.
bool ui_write(void *user, const char *bytes, size_t length);
// Text that may come from strangers (a file's name, a word of a recording) for people. Control characters and what is no UTF-8 stand as
// \xNN: one line stays one, and a terminal is not steered.
void ui_put(FILE *file, const char *text);
// The words of a text, as by ui_put(), in lines of at most `width` columns. The first line is at `column` already, where the others begin.
// What begins with a newline and spaces is a line of its own, indented so; it goes on two columns further in. Other newlines are spaces.
void ui_wrap(FILE *file, const char *text, unsigned column, unsigned width);
// One line on standard error, formatted as by printf() and then put out by ui_put(): "vram: FILE: what is wrong".
void ui_say(const char *format, ...) VRAM_PRINTF(1, 2);
// Where ui_say() and what goes by it write from now on; NULL: standard error. Returns where they did.
FILE *ui_says_to(FILE *file);
// The same for a mistake on the command line of `vram COMMAND`: behind it stands where to look. Returns CLI_USAGE.
int ui_usage(const char *command, const char *format, ...) VRAM_PRINTF(2, 3);
// "vram: --NAME: 'VALUE' is none of A, B, C". choices ends with NULL.
void ui_none_of(const char *name, const char *value, const char *const *choices);
// The exit code for a status of the library.
int exit_code_of(enum vram_status status);
// One line on standard error: `vram: FILE: message` (where in the file is part of the message). file may be NULL. Returns the exit
// code of error->status.
int ui_error(const char *file, const struct vram_error *error);
// The exit code of a command whose result went to standard output: CLI_FINDING for one that was found, else CLI_OK; a failure is told by
// ui_error(), but what went wrong with standard output is said once, at the end, and what has no error was said already (error NULL).
int ui_result(enum vram_status status, bool found, const char *file, const struct vram_error *error);
// Flushes standard output. False, with a line on standard error (once), when something could not be written.
bool ui_finish(void);

#define UI_SIZE_CAPACITY 16
// A size as the library's reports write it: "512 B", "1.5 KiB", "23.9 GiB". Returns text.
const char *ui_size(uint64_t bytes, char text[UI_SIZE_CAPACITY]);

#endif
