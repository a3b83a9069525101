// ui.h: what every command does with standard output and standard error.
#ifndef CLI_UI_H
#define CLI_UI_H

#include "args.h"
#include "vram/output.h"

// How standard output can be written to: its width, and colour and block characters where it is a terminal. NO_COLOR, TERM, COLUMNS
// and the locale are respected; VRAM_STYLE=plain|unicode|colour overrides what was found (for tests and screenshots).
struct vram_style ui_style(void);
// A vram_write to standard output; user is not looked at.
bool ui_write(void *user, const char *bytes, size_t length);
// Text that may come from strangers (a file's name, a word of a recording) on standard error, control characters as \xNN: one line stays
// one, and a terminal is not steered.
void ui_complain(const char *text);
// One line on standard error: `vram: FILE: message` (where in the file is part of the message). file may be NULL. Returns the exit
// code of error->status.
int ui_error(const char *file, const struct vram_error *error);
// Flushes standard output. False, with a line on standard error, when something could not be written.
bool ui_finish(void);

#endif
