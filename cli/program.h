// program.h: a program that a command starts and waits for.
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_NOT_FOUND  127 // as shells say it
#define PROGRAM_NO_EXECUTE 126

// Runs the program to its end. Its exit code, 128 + n for signal n. *started: it was there to run. `command` names who says what went
// wrong. Signals that ask a process to end are passed on, now and later: nothing but a summary is left to do here.
int program_run(const char *command, char **arguments, bool *started);

// The signal that asked this process to end since the program was started (SIGINT by the terminal's Ctrl-C); 0: none did.
int program_signal(void);

// Who watches a program while it runs.
struct program_watch {
    // In the child, before the program takes its place: sets what only the program is to have in its environment. False after a line on
    // standard error: it does not start.
    bool (*prepare)(void *user);
    // What it writes to standard output and standard error, as it comes. Ended output is not waited for: a child that lives on keeps it
    // open.
    void (*output)(void *user, const char *bytes, size_t length);
    // About ten times a second, with the program's id. False: the program is asked to end (SIGTERM), and made to 20 seconds later.
    bool (*tick)(void *user, int64_t process);
    void *user;
};

// The same with its output going to `watch`.
int program_run_watched(const char *command, char **arguments, const struct program_watch *watch, bool *started);

#endif
