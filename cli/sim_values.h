// sim_values.h: rules for what a program reads where only a kernel would have written (simulator/standins/common/read_values.h).
#ifndef CLI_SIM_VALUES_H
#define CLI_SIM_VALUES_H

#include "args.h"

struct sim_values {
    struct args_list rules; // of --value; these come first
    const char *file;       // of --values; may be NULL
    const char *nonzero;    // of --nonzero: the value of a last rule, for aten::nonzero; may be NULL
    uint64_t compute_bytes; // of --compute: operands and results of PyTorch's operations up to this are computed
};

#define SIM_VALUES_COMPUTED ((uint64_t)64 << 10) // where --compute is not given

// The rows of the two options in a command's table.
#define SIM_VALUES_OPTIONS(values)                                                                                                         \
    {.name = "value",                                                                                                                      \
     .kind = ARGS_STRINGS,                                                                                                                 \
     .value = "PLACE=VALUE,...",                                                                                                           \
     .help = "what reads of a kernel's results give at FILE:LINE, FILE, FUNCTION(), aten::NAME or *, one read after the other",            \
     .target = &(values)->rules},                                                                                                          \
        {.name = "values",                                                                                                                 \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "FILE|none",                                                                                                             \
         .help = "such rules, a line each; none: also compute nothing",                                                                    \
         .target = &(values)->file},                                                                                                       \
        {.name = "compute",                                                                                                                \
         .kind = ARGS_SIZE,                                                                                                                \
         .value = "SIZE",                                                                                                                  \
         .help = "compute what PyTorch's operations do with tensors up to this size (default 64KiB; 0: nothing)",                          \
         .target = &(values)->compute_bytes},                                                                                              \
    {                                                                                                                                      \
        .name = "nonzero", .kind = ARGS_STRING, .value = "N|P%", .help = "how many nonzero() and masks find, or which part of them",       \
        .target = &(values)->nonzero                                                                                                       \
    }

// Into the environment of the program to come, where there are rules. Returns CLI_OK, or the exit code after a line on standard error.
int sim_values_put(const char *command, const struct sim_values *values);
// Has PyTorch's small operations computed in a program of Python's to come. False: the environment could not be set.
bool sim_values_compute(const struct sim_values *values);

#endif
