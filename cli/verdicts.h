// verdicts.h: reports which recordings exceed a limit, for continuous integration: a line for each, JUnit's XML, GitHub's summary.
#ifndef CLI_VERDICTS_H
#define CLI_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>

#include "args.h"
#include "vram/status.h"

// Verdicts of one command. The command sets `suite` ("vram report"), its options set `junit` and `github`; the rest is zero. Use from one
// thread.
struct verdicts {
    const char *suite;
    const char *junit; // a path; NULL: none
    bool github;
    struct verdict *rows;
    size_t count, capacity;
    bool failed; // memory for a row ran out
};

#define VERDICT_OPTIONS(verdicts)                                                                                                          \
    {.name = "junit",                                                                                                                      \
     .kind = ARGS_STRING,                                                                                                                  \
     .value = "FILE",                                                                                                                      \
     .help = "with --fail-over: write the verdicts as JUnit XML, which CI services show as tests",                                         \
     .target = &(verdicts)->junit},                                                                                                        \
    {                                                                                                                                      \
        .name = "github", .kind = ARGS_FLAG,                                                                                               \
        .help =                                                                                                                            \
            "with --fail-over: print an error annotation for each failure, and write a table to the job's summary (GITHUB_STEP_SUMMARY)",  \
        .target = &(verdicts)->github                                                                                                      \
    }

// Adds a verdict: the recording's name (copied), whether it passed, and a message with the figures. Prints the message on standard error
// if it failed.
void verdicts_add(struct verdicts *verdicts, const char *name, bool passed, const char *format, ...) VRAM_PRINTF(4, 5);
// Writes the files and frees the rows. `code` is the command's exit code so far; a failed verdict turns CLI_OK into CLI_FINDING. If a file
// cannot be written, reports it and returns the code of output_close().
int verdicts_end(struct verdicts *verdicts, int code);

#endif
