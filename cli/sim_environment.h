// sim_environment.h: what `vram sim` puts into the environment of a program: libraries in front, the session, rules for values.
#ifndef CLI_SIM_ENVIRONMENT_H
#define CLI_SIM_ENVIRONMENT_H

#include <stdbool.h>

#include "args.h"

// The simulated driver and the stand-ins in front of the libraries that a program brings.

// Sets the environment of the program to come: LD_LIBRARY_PATH, and for the dynamic linker's auditor LD_AUDIT and VRAM_SIM_FRONT
// (simulator/standins/front). hip: AMD's runtime, too. Returns CLI_OK, or the exit code after a line on standard error.
int sim_front_put(bool hip);
// A line on standard error where the program does not run on the simulator at all, because it has no dynamic linker or one that must not
// listen.
void sim_front_check(const char *program);

// The file by which the processes of one `vram sim` know of each other (simulator/standins/common/session.h).

// Makes it and names it in the environment; what other sessions that are over left behind goes. Without it, NVML tells of no process.
void sim_session_put(void);

// Rules for what a program reads where only a kernel would have written (simulator/standins/common/read_values.h).

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
