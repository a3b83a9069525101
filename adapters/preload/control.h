// control.h: a page of memory through which `vram attach` tells a recorded program to pause and to go on. The page is a memory file of
// the process; who may open another process's descriptors may open it, and nobody else. No thread waits, and nothing is parsed.
#ifndef PL_CONTROL_H
#define PL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define PL_CONTROL_NAME  "vram-control"
#define PL_CONTROL_MAGIC 0x314c54434d415256u // "VRAMCTL1"

// The page, from its start. cli/recorded_processes.c knows the same.
struct pl_control_page {
    uint64_t magic;
    uint32_t paused; // not 0: new allocations are not written down; written by `vram attach`
    uint32_t unused;
    uint64_t left_out; // events that were not, so far; written by the program
};

// Makes the page; nothing where that fails: the program then cannot be paused. With the session's lock, as all below.
void pl_control_open(void);
bool pl_control_paused(void);
// One more event was left out.
void pl_control_count(void);
// In the child of a fork: the page is the parent's.
void pl_control_forget(void);

#endif
