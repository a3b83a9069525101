// verdicts.h: whether recordings keep to a limit, for continuous integration: a line for each that does not, JUnit's XML, GitHub's summary.
#ifndef CLI_VERDICTS_H
#define CLI_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>

#include "args.h"
#include "vram/status.h"

// `suite` is set by the command ("vram report"), `junit` and `github` by its options; all else zero. One thread.
struct verdicts {
    const char *suite;
    const char *junit; // a path; NULL: none
    bool github;
    struct verdict *rows;
    size_t count, capacity;
    bool failed; // without memory for a row
};

#define VERDICT_OPTIONS(verdicts)                                                                                                          \
    {.name = "junit",                                                                                                                      \
     .kind = ARGS_STRING,                                                                                                                  \
     .value = "FILE",                                                                                                                      \
     .help = "with --fail-over: the verdicts as JUnit's XML, which CI services show as tests",                                             \
     .target = &(verdicts)->junit},                                                                                                        \
    {                                                                                                                                      \
        .name = "github", .kind = ARGS_FLAG,                                                                                               \
        .help = "with --fail-over: an error annotation for each that fails, and a table in the job's summary (GITHUB_STEP_SUMMARY)",       \
        .target = &(verdicts)->github                                                                                                      \
    }

// One verdict: what was judged (copied), whether it keeps to the limit, and a sentence with the figures, which is printed on standard error
// where it does not.
void verdicts_add(struct verdicts *verdicts, const char *name, bool passed, const char *format, ...) VRAM_PRINTF(4, 5);
// Writes what was asked for and frees the rows. `code`: how the command ends otherwise. CLI_FINDING takes the place of CLI_OK where a
// verdict failed; a file that could not be written is said, and the code is then that of output_close().
int verdicts_end(struct verdicts *verdicts, int code);

#endif
