// sim_counts.h: what stand-ins count in shared memory while a program runs: functions it did not get, and reads of memory never written.
#ifndef CLI_SIM_COUNTS_H
#define CLI_SIM_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../simulator/standins/common/reads.h"

// Files of counts in shared memory, which stand-ins fill while a program runs and `vram sim` reads when it is over.

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
void sim_counts_end(struct sim_counts *counts);

// What a program wanted of the simulated driver and the stand-ins and did not get.

// A function that was wanted and is not simulated, or a size that was used and is not known.
struct sim_wanted {
    uint64_t count;
    uint64_t bytes; // of a size: what it may come to at most; 0: not known
    char function[96], library[32], module[240];
};

// Makes the program to come and its children count. False after a line on standard error.
bool sim_missing_begin(struct sim_counts *counts);
// Says on standard error what they wanted.
void sim_missing_report(const struct sim_counts *counts);

// The functions, or the sizes (by their names in simulator/standins/common/size_names.def, as functions), most first. Returns how many;
// *wanted is to be freed, and NULL where there is no memory.
size_t sim_missing_list(const struct sim_counts *counts, bool sizes, struct sim_wanted **wanted);

// Where a program read device memory that does not hold what a GPU would have written.

// Reads at one place of the program.
struct sim_read_place {
    uint64_t calls, unwritten_bytes, passed_bytes, not_kept_bytes;
    char operation[sizeof((struct vr_reads_row *)0)->operation]; // of PyTorch; "": none is known
    char text[sizeof((struct vr_reads_row *)0)->place];          // its innermost frames, a line each
};

// Makes the program to come and its children count. False after a line on standard error.
bool sim_reads_begin(struct sim_counts *counts);
// Says on standard error where they read.
void sim_reads_report(const struct sim_counts *counts);

// The places, most reads first. Returns how many; *places is to be freed, and NULL where there is no memory.
size_t sim_reads_list(const struct sim_counts *counts, struct sim_read_place **places);

#endif
