// control.h: a page of memory through which `vram attach` pauses and resumes a recording. The page is a memory file of the process, which
// only users who may open the process's descriptors can open. Neither side waits for the other, and nothing is parsed.
#ifndef PL_CONTROL_H
#define PL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define PL_CONTROL_NAME  "vram-control"
#define PL_CONTROL_MAGIC 0x314c54434d415256u // "VRAMCTL1"

// The layout of the page. cli/recorded_processes.c has the same.
struct pl_control_page {
    uint64_t magic;
    uint32_t paused; // not 0: new allocations are not recorded; written by `vram attach`
    uint32_t unused;
    uint64_t left_out; // events not recorded so far; written by the program
};

// Creates the page. On failure the program cannot be paused. Call this and the functions below with the session's lock held.
void pl_control_open(void);
bool pl_control_paused(void);
// Counts an event that is not recorded.
void pl_control_count(void);
// Call in the child of a fork, where the page is the parent's.
void pl_control_forget(void);

#endif
