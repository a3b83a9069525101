// view_page.h: writes the viewer's page, which is built into the command, with recordings inserted.
#ifndef CLI_VIEW_PAGE_H
#define CLI_VIEW_PAGE_H

#include <stddef.h>

#include "vram/recording.h"
#include "vram/status.h"

// Writes the recordings into their place in the page. Called once. Returns an exit code (args.h).
typedef int view_page_filler(vram_write write, void *user, void *context);

// Writes the page's HTML, calling `fill` at the place of recordings. With `served`, the page may query its server, and no other. Returns an
// exit code: CLI_DEVICE, after a line on standard error, if the command was built without the page; CLI_BAD_INPUT if `write` fails, which
// the writer reports.
int view_page_write(bool served, view_page_filler *fill, void *context, vram_write write, void *user);

// Writes a recording as an element of the page: in vram's own format, gzip, base64. Escapes `name`. Returns an exit code, as
// view_page_write() does.
int view_page_recording(const struct vram_recording *recording, const char *name, vram_write write, void *user);

// Writes which frames are not call sites, as --skip does. Call before any recording is written. Returns an exit code, as view_page_write()
// does.
int view_page_skip(const char *expression, vram_write write, void *user);

// Returns the page's HTML, static; NULL with length 0 if the command was built without it.
const char *page_text(size_t *length);

// Writes a fact for the page, whose scripts find it by its name.
int view_page_meta(const char *name, const char *content, vram_write write, void *user);

#endif
