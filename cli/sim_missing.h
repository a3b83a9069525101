// sim_missing.h: what a program wanted of the simulated driver and the stand-ins and did not get.
#ifndef CLI_SIM_MISSING_H
#define CLI_SIM_MISSING_H

#include "sim_counts.h"

// Makes the program to come and its children count. False after a line on standard error.
bool sim_missing_begin(struct sim_counts *counts);
// Says on standard error what they wanted.
void sim_missing_report(const struct sim_counts *counts);

#endif
