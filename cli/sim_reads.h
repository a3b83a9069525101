// sim_reads.h: where a program read device memory that does not hold what a GPU would have written.
#ifndef CLI_SIM_READS_H
#define CLI_SIM_READS_H

#include "sim_counts.h"

// Makes the program to come and its children count. False after a line on standard error.
bool sim_reads_begin(struct sim_counts *counts);
// Says on standard error where they read.
void sim_reads_report(const struct sim_counts *counts);

#endif
