// program.h: a program that a command starts and waits for.
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>

#define PROGRAM_NOT_FOUND  127 // as shells say it
#define PROGRAM_NO_EXECUTE 126

// Runs the program to its end. Its exit code, 128 + n for signal n. *started: it was there to run. `command` names who says what went
// wrong. Signals that ask a process to end are passed on, now and later: nothing but a summary is left to do here.
int program_run(const char *command, char **arguments, bool *started);

#endif
