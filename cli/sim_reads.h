// sim_reads.h: where a program read device memory that does not hold what a GPU would have written.
#ifndef CLI_SIM_READS_H
#define CLI_SIM_READS_H

#include "../simulator/standins/common/reads.h"
#include "sim_counts.h"

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
