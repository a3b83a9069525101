// report_sections.h: sections of `vram report` in addition to the report itself: one profile, and the table of several recordings.
#ifndef CLI_REPORT_SECTIONS_H
#define CLI_REPORT_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "shared_options.h"
#include "vram/report.h"

// The part of `vram report` that shows one thing: who holds memory, or how it went.

struct report_profile {
    struct moment_settings moment;
    struct vram_profile_options options;
    const char *roles; // a file of rules,
    char *rules;       // and its text, once it is read
    bool site, stack, timeline, json;
    bool wanted; // one of them was asked for
};

#define REPORT_PROFILE_OPTIONS(profile)                                                                                                    \
    {.name = "site", .kind = ARGS_FLAG, .help = "only who holds memory: the call sites of what is live", .target = &(profile)->site},      \
        {.name = "stack", .kind = ARGS_FLAG, .help = "the same by whole call stacks, with their frames", .target = &(profile)->stack},     \
        {.name = "by",                                                                                                                     \
         .kind = ARGS_STRING,                                                                                                              \
         .value = GROUPING_VALUES,                                                                                                         \
         .help = "only who holds memory, grouped so (default site)",                                                                       \
         .target = &(profile)->moment.by},                                                                                                 \
        {.name = "regex",                                                                                                                  \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "REGEX",                                                                                                                 \
         .help = "the same by what this matches in file:line:function (its first group)",                                                  \
         .target = &(profile)->moment.regex},                                                                                              \
        {.name = "roles",                                                                                                                  \
         .kind = ARGS_STRING,                                                                                                              \
         .value = "FILE",                                                                                                                  \
         .help = "rules of your own for --by role (which it implies): a role and a regular expression per line",                           \
         .target = &(profile)->roles},                                                                                                     \
        {.name = "timeline", .kind = ARGS_FLAG, .help = "only how memory went, as a chart", .target = &(profile)->timeline},               \
        MOMENT_OPTIONS(&(profile)->moment)

// Settles what was asked for. False, with a line on standard error, for what is none.
bool report_profile_settle(struct report_profile *profile);
// Shows it of every operand, and releases what was settled. The exit code.
int report_profiles(struct report_profile *profile, char **operands, int count);

// Several recordings in one table, under their reports or in place of them: which of them stands out.

// All-zero is empty. One thread.
struct report_ranks {
    struct report_rank *rows; // one per device of each recording
    size_t count, capacity, recordings;
    bool failed;     // without memory for a row the table is left out
    bool only_table; // the reports were not printed: the table says who ran out of memory, and why
};

// Notes what the report of the recording `name` says; copies.
void report_ranks_add(struct report_ranks *ranks, const char *name, const struct vram_report *report);
// Prints the table where there are two recordings or more. Then all is as before the first.
void report_ranks_end(struct report_ranks *ranks);

#endif
