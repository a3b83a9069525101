// recorded.h: processes of this machine that are being recorded. Each has its recording file mapped, and the system tells which.
#ifndef CLI_RECORDED_H
#define CLI_RECORDED_H

#include <stdbool.h>
#include <stddef.h>

struct recorded {
    int pid;
    char program[64]; // as the system calls it
    char path[4096];  // of the recording
};

// The recording of one process. False when it has none, or may not be looked at.
bool recorded_find(int pid, struct recorded *recorded);
// All processes that the caller may look at; at most `capacity`, by pid.
size_t recorded_list(struct recorded *list, size_t capacity);

#endif
