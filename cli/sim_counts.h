// sim_counts.h: files of counts in shared memory, which stand-ins fill while a program runs and `vram sim` reads when it is over.
#ifndef CLI_SIM_COUNTS_H
#define CLI_SIM_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// All zero is none.
struct sim_counts {
    void *file; // mapped; begins with its magic number. For looks while the program runs: reports read a copy
    int descriptor;
    size_t size_bytes;
    char path[4096];
};

// Makes one, all zero behind its magic number, and names it in an environment variable for the program to come. False after a line on
// standard error, which names the option that asks for it.
bool sim_counts_make(struct sim_counts *counts, const char *option, const char *variable, size_t size_bytes, uint64_t magic);
// What it holds now, for the caller to free(); the rest is zero where the program made it shorter. NULL where there is no memory.
void *sim_counts_read(const struct sim_counts *counts);
void sim_counts_end(struct sim_counts *counts);

#endif
