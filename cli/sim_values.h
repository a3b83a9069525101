// sim_values.h: rules for what a program reads where only a kernel would have written (standins/common/read_values.h).
#ifndef CLI_SIM_VALUES_H
#define CLI_SIM_VALUES_H

#include "args.h"

struct sim_values {
    struct args_list rules; // of --value; these come first
    const char *file;       // of --values; may be NULL
    const char *nonzero;    // of --nonzero: the value of a last rule, for aten::nonzero; may be NULL
};

// The rows of the two options in a command's table.
#define SIM_VALUES_OPTIONS(values)                                                                                                         \
    {.name = "value",                                                                                                                      \
     .kind = ARGS_STRINGS,                                                                                                                 \
     .value = "PLACE=VALUE,...",                                                                                                           \
     .help = "what reads of a kernel's results give at FILE:LINE, FILE, FUNCTION(), aten::NAME or *, one read after the other",            \
     .target = &(values)->rules},                                                                                                          \
        {.name = "values", .kind = ARGS_STRING, .value = "FILE", .help = "such rules, a line each", .target = &(values)->file}, {          \
        .name = "nonzero", .kind = ARGS_STRING, .value = "N|P%", .help = "how many nonzero() and masks find, or which part of them",       \
        .target = &(values)->nonzero                                                                                                       \
    }

// Into the environment of the program to come, where there are rules. Returns CLI_OK, or the exit code after a line on standard error.
int sim_values_put(const char *command, const struct sim_values *values);

#endif
