// recorded_processes.h: finds processes of this machine that are being recorded, and pauses them through a shared page.
#ifndef CLI_RECORDED_PROCESSES_H
#define CLI_RECORDED_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A process that is being recorded. It is found by its mapping of the recording file.

struct recorded {
    int pid;
    char program[64]; // its name in /proc
    char path[4096];  // of the recording
};

// Finds the recording of a process. Returns false if there is none, or if access is denied.
bool recorded_find(int pid, struct recorded *recorded);
// Lists recorded processes that the caller may inspect, at most `capacity`, by pid. Returns their number.
size_t recorded_list(struct recorded *list, size_t capacity);

// The page that pauses the recording of a program under `vram run` (adapters/preload/control.h).

struct control_state {
    bool paused;
    uint64_t left_out; // allocations that were not recorded
};

// Reads the page of a process. If `set` is not NULL, first pauses (true) or resumes (false) the recording. Returns false, with a message
// in *why, if the process has no such page or access is denied.
bool control_of(int pid, const bool *set, struct control_state *state, const char **why);

#endif
