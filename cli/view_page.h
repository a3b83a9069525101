// view_page.h: the viewer's page inside the command, and the same with something put into it.
#ifndef CLI_VIEW_PAGE_H
#define CLI_VIEW_PAGE_H

#include <stddef.h>

#include "vram/recording.h"
#include "vram/status.h"

// The viewer's page with something put into it.

// Called once, where recordings stand in the page: writes what shall be there. An exit code (args.h).
typedef int view_page_filler(vram_write write, void *user, void *context);

// Writes the page's HTML, with what `fill` writes in the place of recordings. With `served`, the page may ask the server it came from, and
// nobody else. An exit code; CLI_DEVICE, with a line on standard error, where the command was built without the page. A failure of
// `write` is CLI_BAD_INPUT and is the writer's to tell.
int view_page_write(bool served, view_page_filler *fill, void *context, vram_write write, void *user);

// Writes a recording as an element of the page: vram's own format, gzip, base64. `name` is made harmless. An exit code, as above.
int view_page_recording(const struct vram_recording *recording, const char *name, vram_write write, void *user);

// Writes which frames name no call site, as --skip has it; before any recording. An exit code, as above.
int view_page_skip(const char *expression, vram_write write, void *user);

// The viewer's page inside the command.

// The page's HTML, static; NULL with length 0 where the command was built without it.
const char *page_text(size_t *length);

#endif
