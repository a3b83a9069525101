// browser.h: shows a page to the user.
#ifndef CLI_BROWSER_H
#define CLI_BROWSER_H

#include <stdbool.h>

// Asks the desktop to open a file or an address, without waiting. False where there is nothing to ask, or nobody to see it.
bool browser_open(const char *target);

#endif
