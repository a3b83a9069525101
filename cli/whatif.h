// whatif.h: options that say in which world a recording is replayed, the same for every command that does.
#ifndef CLI_WHATIF_H
#define CLI_WHATIF_H

#include "args.h"
#include "vram/replay.h"
#include "vram/sim.h"

// Targets of the options; all-zero are the defaults.
struct whatif_settings {
    uint64_t memory_bytes;   // of each device
    unsigned start, profile; // indices in the tables below
};

extern const char *const whatif_starts[], *const whatif_profiles[];
enum vram_whatif_start whatif_start(const struct whatif_settings *settings);
enum vram_sim_profile whatif_profile(const struct whatif_settings *settings);

// Rows of a command's table of options. about: what --memory is for in this command.
#define WHATIF_OPTIONS(settings, about)                                                                                                    \
    {.name = "memory",                                                                                                                     \
     .letter = 'm',                                                                                                                        \
     .kind = ARGS_SIZE,                                                                                                                    \
     .value = "SIZE",                                                                                                                      \
     .help = "memory of each device, e.g. 24GiB" about,                                                                                    \
     .target = &(settings)->memory_bytes},                                                                                                 \
        {.name = "start",                                                                                                                  \
         .kind = ARGS_CHOICE,                                                                                                              \
         .value = "cold|recorded",                                                                                                         \
         .help = "allocate first what lived before the history (default), or begin with the recorded segments",                            \
         .target = &(settings)->start,                                                                                                     \
         .choices = whatif_starts},                                                                                                        \
    {                                                                                                                                      \
        .name = "costs", .kind = ARGS_CHOICE, .value = "cheap|dear",                                                                       \
        .help = "what mapping memory costs on the virtual clock (default cheap)", .target = &(settings)->profile,                          \
        .choices = whatif_profiles, .also = "profile"                                                                                      \
    }

#endif
