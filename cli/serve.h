// serve.h: the page and the answers to its questions for a browser on this machine.
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "vram/explorer.h"

// The page and the answers to its questions for a browser on this machine.
//
// A small HTTP server on the loopback interface. Every path begins with a random token; the Host header must name this machine, so that a
// foreign page cannot reach it under a name of its own; only GET is answered. One thread: an explorer answers one question at a time.

struct serve_options {
    uint16_t port; // 0: any free one
    bool open;     // show the page in a browser
};

// Serves until SIGINT or SIGTERM, after a line on standard output with the address. The explorer is borrowed. An exit code (args.h).
int serve(struct vram_explorer *explorer, const struct serve_options *options);

// Shows a page to the user.

// Asks the desktop to open a file or an address, without waiting. False where no desktop is reachable.
bool browser_open(const char *target);

#endif
