// run_check.h: can a program be recorded at all?
#ifndef CLI_RUN_CHECK_H
#define CLI_RUN_CHECK_H

// Why the dynamic linker will not preload anything into `program` (looked up in PATH as execvp() does); NULL when nothing is known against
// it.
const char *run_check(const char *program);

#endif
