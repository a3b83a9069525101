// shared_options.h: options that several commands share: the device, moment and grouping, and the settings of a replay.
#ifndef CLI_SHARED_OPTIONS_H
#define CLI_SHARED_OPTIONS_H

#include "args.h"
#include "vram/profile.h"
#include "vram/replay.h"
#include "vram/sim.h"

// Options that choose the device, moment and grouping, the same for every command.

// Targets of the options. Defaults, from moment_init(): "peak" and -1.
struct moment_settings {
    const char *device;
    const char *at;
    const char *by;
    const char *regex;
    bool active;
    uint64_t top;
};

// The values of --by: the words of vram_profile_grouping().
#define GROUPING_VALUES "site|stack|function|file|role|module|category|pool|stream|annotation|thread|metadata|context|size|regex"

// Rows of a command's table of options.
#define DEVICE_OPTION(settings)                                                                                                            \
    {                                                                                                                                      \
        .name = "device", .kind = ARGS_STRING, .value = "N",                                                                               \
        .help = "the device (default: the one that ran out of memory, else the highest peak)", .target = &(settings)->device               \
    }
#define MOMENT_OPTIONS(settings)                                                                                                           \
    DEVICE_OPTION(settings),                                                                                                               \
        {.name = "at",                                                                                                                     \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "peak|end|N",                                                                                                            \
         .help = "the moment: peak (default), end, or after the event with this number",                                                   \
         .target = &(settings)->at},                                                                                                       \
    {                                                                                                                                      \
        .name = "active", .kind = ARGS_FLAG, .help = "count memory until it is reusable, not only until it is freed",                      \
        .target = &(settings)->active                                                                                                      \
    }
#define GROUP_OPTIONS(settings)                                                                                                            \
    {.name = "by",                                                                                                                         \
     .kind = ARGS_STRING,                                                                                                                  \
     .value = GROUPING_VALUES,                                                                                                             \
     .help = "group memory by this (default site)",                                                                                        \
     .target = &(settings)->by},                                                                                                           \
        {.name = "regex",                                                                                                                  \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "REGEX",                                                                                                                 \
         .help = "group by what this matches in file:line:function (its first group)",                                                     \
         .target = &(settings)->regex},                                                                                                    \
    {                                                                                                                                      \
        .name = "top", .letter = 'n', .kind = ARGS_COUNT, .value = "N", .help = "rows (default 10)", .target = &(settings)->top,           \
        .least = 1                                                                                                                         \
    }

// Converts the settings to library options, which borrow the texts. Returns false, after a line on standard error, if the moment or
// grouping is invalid.
bool moment_options(const struct moment_settings *settings, struct vram_profile_options *options);

// Options of a replay, the same for every command that replays.

// Targets of the options; a zeroed struct has the defaults.
struct whatif_settings {
    uint64_t memory_bytes;   // of each device
    unsigned start, profile; // indices in the tables below
};

extern const char *const whatif_starts[], *const whatif_profiles[];
enum vram_whatif_start whatif_start(const struct whatif_settings *settings);
enum vram_sim_profile whatif_profile(const struct whatif_settings *settings);

// Rows of a command's table of options. `about` says what --memory means in this command.
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
         .help = "start: allocate what was live before the history (default), or begin with the recorded segments",                        \
         .target = &(settings)->start,                                                                                                     \
         .choices = whatif_starts},                                                                                                        \
    {                                                                                                                                      \
        .name = "costs", .kind = ARGS_CHOICE, .value = "cheap|dear",                                                                       \
        .help = "price of mapping memory on the virtual clock (default cheap)", .target = &(settings)->profile,                            \
        .choices = whatif_profiles, .also = "profile"                                                                                      \
    }

#endif
