// fit_ready.h: whether a program that `vram fit` runs serves requests by now: it listens, and says so over HTTP.
#ifndef CLI_FIT_READY_H
#define CLI_FIT_READY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_READY_PORTS 16

struct fit_ready {
    uint16_t ports[FIT_READY_PORTS]; // where it may come to listen; those where somebody listened before are left out
    size_t port_count;
    unsigned ticks;
    bool is_server; // one of them answers
};

// Which ports the program's options name; without any, those that servers take by themselves.
void fit_ready_begin(struct fit_ready *ready, char **program);
// A line of its output may name another.
void fit_ready_line(struct fit_ready *ready, const char *line);
// Called about ten times a second: whether it answers "GET /health" with anything but "not yet" (503).
bool fit_ready_is(struct fit_ready *ready);

#endif
