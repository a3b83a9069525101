// moment.h: options that say which device, moment and grouping of a recording is meant, the same for every command.
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include "args.h"
#include "vram/profile.h"

// Targets of the options, with "peak" and -1 as defaults: see moment_init().
struct moment_settings {
    const char *device;
    const char *at;
    const char *by;
    const char *regex;
    bool active;
    uint64_t top;
};

// What --by takes: the words of vram_profile_grouping().
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
         .help = "the moment: the peak (default), the end, or after the event of this number",                                             \
         .target = &(settings)->at},                                                                                                       \
    {                                                                                                                                      \
        .name = "active", .kind = ARGS_FLAG, .help = "count memory until it can be used again, not until it is freed",                     \
        .target = &(settings)->active                                                                                                      \
    }
#define GROUP_OPTIONS(settings)                                                                                                            \
    {.name = "by",                                                                                                                         \
     .kind = ARGS_STRING,                                                                                                                  \
     .value = GROUPING_VALUES,                                                                                                             \
     .help = "how memory is grouped (default site)",                                                                                       \
     .target = &(settings)->by},                                                                                                           \
        {.name = "regex",                                                                                                                  \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "REGEX",                                                                                                                 \
         .help = "group by what this matches in file:line:function (its first group)",                                                     \
         .target = &(settings)->regex},                                                                                                    \
    {                                                                                                                                      \
        .name = "top", .letter = 'n', .kind = ARGS_COUNT, .value = "N", .help = "rows (default 10)", .target = &(settings)->top            \
    }

// The settings as options of the library; borrows the texts. False, with a line on standard error, for a moment or grouping that is none.
bool moment_options(const struct moment_settings *settings, struct vram_profile_options *options);

#endif
