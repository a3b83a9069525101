// program.h: starts a program and waits for it.
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_NOT_FOUND  127 // like shells
#define PROGRAM_NO_EXECUTE 126

// Runs the program to its end. Returns its exit code, or 128 + n for signal n. *started says whether it could be started. `command` is
// named in error messages. Forwards signals that request termination, also after the program's end, when only a summary remains to be
// printed.
int program_run(const char *command, char **arguments, bool *started);

// Returns the signal that asked this process to end since the program started (SIGINT for Ctrl-C); 0 if there was none.
int program_signal(void);

// Callbacks for a running program.
struct program_watch {
    // Runs in the child before exec. Sets environment variables for the program only. Returns false, after a line on standard error, to
    // stop the start.
    bool (*prepare)(void *user);
    // Gets standard output and standard error as they arrive. After the program's end the pipe's end is not awaited, because a surviving
    // child may keep it open.
    void (*output)(void *user, const char *bytes, size_t length);
    // Called about ten times a second with the program's id. Return false to end the program with SIGTERM, and 20 seconds later with
    // SIGKILL.
    bool (*tick)(void *user, int64_t process);
    void *user;
};

// Runs the program as program_run() does, with its output going to `watch`.
int program_run_watched(const char *command, char **arguments, const struct program_watch *watch, bool *started);

// Appends bytes of a program's output to the `used` bytes in `kept`, of which only the last `most` stay.
void program_keep_last(char *kept, size_t *used, size_t most, const char *bytes, size_t length);

#endif
