// recorded_processes.h: processes of this machine that are being recorded, and the page through which each is asked to pause.
#ifndef CLI_RECORDED_PROCESSES_H
#define CLI_RECORDED_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Processes of this machine that are being recorded. Each has its recording file mapped, and the system tells which.

struct recorded {
    int pid;
    char program[64]; // as the system calls it
    char path[4096];  // of the recording
};

// The recording of one process. False when it has none, or may not be looked at.
bool recorded_find(int pid, struct recorded *recorded);
// All processes that the caller may look at; at most `capacity`, by pid.
size_t recorded_list(struct recorded *list, size_t capacity);

// The page through which a program under `vram run` is told to pause its recording (adapters/preload/control.h).

struct control_state {
    bool paused;
    uint64_t left_out; // allocations that were not written down
};

// Reads the page of a process and, where `set` is not NULL, pauses (true) or goes on (false) before. False with a sentence in *why when the
// process has no such page or may not be looked at.
bool control_of(int pid, const bool *set, struct control_state *state, const char **why);

#endif
