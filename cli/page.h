// page.h: the viewer's page inside the command.
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <stddef.h>

// The page's HTML, static; NULL with length 0 where the command was built without it.
const char *page_text(size_t *length);

#endif
