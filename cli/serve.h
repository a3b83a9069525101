// serve.h: serves the page, and answers to its questions, to a browser on this machine.
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "vram/explorer.h"

// Options of the server on the loopback interface.
//
// Every path begins with a random token. The Host header must name this machine, so that a foreign page cannot reach the server under its
// own name. Only GET is answered. One thread: an explorer answers one question at a time.

struct serve_options {
    uint16_t port;     // 0: any free port
    bool open;         // show the page in a browser
    const char *kinds; // of ranks, for the page (view_kinds.h); NULL: none
};

// Prints a line with the address on standard output, then serves until SIGINT or SIGTERM. Borrows the explorer. Returns an exit code
// (args.h).
int serve(struct vram_explorer *explorer, const struct serve_options *options);

// Asks the desktop to open a file or an address, without waiting. Returns false if there is no desktop.
bool browser_open(const char *target);

#endif
