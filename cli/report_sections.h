// report_sections.h: prints the sections of `vram report` outside the report itself: a profile, and the table of several recordings.
#ifndef CLI_REPORT_SECTIONS_H
#define CLI_REPORT_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "shared_options.h"
#include "vram/report.h"

// A profile that `vram report` shows instead of the report: memory by group, or over time.

struct report_profile {
    struct moment_settings moment;
    struct vram_profile_options options;
    const char *roles; // a file of rules
    char *rules;       // its text, once read
    bool site, stack, timeline, json;
    bool wanted; // a profile was asked for
};

#define REPORT_PROFILE_OPTIONS(profile)                                                                                                    \
    {.name = "site", .kind = ARGS_FLAG, .help = "show only the call sites that hold live memory", .target = &(profile)->site},             \
        {.name = "stack", .kind = ARGS_FLAG, .help = "the same by full call stack, with frames", .target = &(profile)->stack},             \
        {.name = "by",                                                                                                                     \
         .kind = ARGS_STRING,                                                                                                              \
         .value = GROUPING_VALUES,                                                                                                         \
         .help = "show only what holds live memory, grouped by this (default site)",                                                       \
         .target = &(profile)->moment.by},                                                                                                 \
        {.name = "regex",                                                                                                                  \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "REGEX",                                                                                                                 \
         .help = "the same, grouped by what this matches in file:line:function (its first group)",                                         \
         .target = &(profile)->moment.regex},                                                                                              \
        {.name = "roles",                                                                                                                  \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "FILE",                                                                                                                  \
         .help = "your own rules for --by role (implied): a role and a regular expression per line",                                       \
         .target = &(profile)->roles},                                                                                                     \
        {.name = "timeline", .kind = ARGS_FLAG, .help = "show only memory over time, as a chart", .target = &(profile)->timeline},         \
        MOMENT_OPTIONS(&(profile)->moment)

// Checks the options. Returns false, after a line on standard error, if they are invalid.
bool report_profile_settle(struct report_profile *profile);
// Prints the profile of every operand, and releases the settings. Returns an exit code.
int report_profiles(struct report_profile *profile, char **operands, int count);

// Several recordings in one table, below their reports or instead of them. A zeroed struct is empty. Use from one thread.
struct report_ranks {
    struct report_rank *rows; // one per device and recording
    size_t count, capacity, recordings;
    bool failed;     // memory ran out: print no table
    bool only_table; // without the reports, the table says which ranks ran out of memory, and why
};

// Adds the report of the recording `name`. Copies what it needs.
void report_ranks_add(struct report_ranks *ranks, const char *name, const struct vram_report *report);
// Prints the table if there are at least two recordings, and empties it.
void report_ranks_end(struct report_ranks *ranks);

#endif
