// control.h: the page through which a program under `vram run` is told to pause its recording (adapters/preload/control.h).
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

struct control_state {
    bool paused;
    uint64_t left_out; // allocations that were not written down
};

// Reads the page of a process and, where `set` is not NULL, pauses (true) or goes on (false) before. False with a sentence in *why when the
// process has no such page or may not be looked at.
bool control_of(int pid, const bool *set, struct control_state *state, const char **why);

#endif
