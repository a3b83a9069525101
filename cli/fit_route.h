// fit_route.h: `vram fit --route`: which experts the routers of a mixture of experts choose (adapters/fit/vram_values_route.py).
#ifndef CLI_FIT_ROUTE_H
#define CLI_FIT_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct fit_run;
struct vr_json;

#define FIT_EXPERTS_MOST 1024

// The choices that a process made by --route: those of the routers with the most experts.
struct fit_routed {
    uint64_t calls, experts, per_token; // per_token: experts that a token chooses
};

// Reads the option's value, `balanced`, `worst` or a file, and sets the program's environment. `computes`: small operations are computed.
// Returns false after a line on standard error.
bool fit_route_settle(const char *route, bool computes);
// Reads "routed CALLS EXPERTS PER_TOKEN". Returns false if the line is about something else.
bool fit_route_fact(struct fit_routed *routed, const char *line);
// Prints how the program was routed, or that it has no router. Does nothing without --route.
void fit_route_print(FILE *page, const struct fit_run *run);
void fit_route_json(struct vr_json *json, const char *name, const struct fit_run *run);
// Returns whether --route was given.
bool fit_route_asked(void);

#endif
