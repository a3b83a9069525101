// sim_environment.h: sets the environment of a program under `vram sim`: libraries, the session, rules for values.
#ifndef CLI_SIM_ENVIRONMENT_H
#define CLI_SIM_ENVIRONMENT_H

#include <stdbool.h>

#include "args.h"

// Puts the simulated driver and the stand-ins in front of the program's libraries: sets LD_LIBRARY_PATH, and LD_AUDIT and VRAM_SIM_FRONT
// for the LD_AUDIT library (simulator/standins/front). `hip` adds AMD's runtime. Returns CLI_OK, or an exit code after a line on
// standard error.
int sim_front_put(bool hip);
// Prints a line on standard error if the program cannot run on the simulator, because it is static or its dynamic linker ignores these
// variables.
void sim_front_check(const char *program);

// The file through which the processes of one `vram sim` find each other (simulator/standins/common/session.h).

// Creates the file, names it in the environment, and removes the files of ended sessions. Without it, NVML lists no processes.
void sim_session_put(void);

// Rules for values that only a kernel would have written (simulator/standins/common/read_values.h).

struct sim_values {
    struct args_list rules; // from --value; these come first
    const char *file;       // from --values; may be NULL
    const char *nonzero;    // from --nonzero: the value of a last rule, for aten::nonzero; may be NULL
    uint64_t compute_bytes; // from --compute: PyTorch's operations with operands and results up to this size are computed
};

#define SIM_VALUES_COMPUTED ((uint64_t)64 << 10) // without --compute

// The rows of the two options in a command's table.
#define SIM_VALUES_OPTIONS(values)                                                                                                         \
    {.name = "value",                                                                                                                      \
     .kind = ARGS_STRINGS,                                                                                                                 \
     .value = "PLACE=VALUE,...",                                                                                                           \
     .help = "values, one per read, for reads of kernel results at FILE:LINE, FILE, FUNCTION(), aten::NAME or *",                          \
     .target = &(values)->rules},                                                                                                          \
        {.name = "values",                                                                                                                 \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "FILE|none",                                                                                                             \
         .help = "file of rules PLACE=VALUES, one per line; none: compute nothing at all",                                                 \
         .target = &(values)->file},                                                                                                       \
        {.name = "compute",                                                                                                                \
         .kind = ARGS_SIZE,                                                                                                                \
         .value = "SIZE",                                                                                                                  \
         .help = "compute PyTorch's operations on tensors up to this size (default 64KiB; 0: none)",                                       \
         .target = &(values)->compute_bytes},                                                                                              \
    {                                                                                                                                      \
        .name = "nonzero", .kind = ARGS_STRING, .value = "N|P%", .help = "number or percentage of elements that nonzero() and masks find", \
        .target = &(values)->nonzero                                                                                                       \
    }

// Puts the rules, if there are any, into the program's environment. Returns CLI_OK, or an exit code after a line on standard error.
int sim_values_put(const char *command, const struct sim_values *values);
// Makes a Python program compute PyTorch's small operations. Returns false if the environment could not be set.
bool sim_values_compute(const struct sim_values *values);

#endif
