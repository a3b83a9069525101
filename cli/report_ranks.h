// report_ranks.h: several recordings in one table, under their reports or in place of them: which of them stands out.
#ifndef CLI_REPORT_RANKS_H
#define CLI_REPORT_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/report.h"

// All-zero is empty. One thread.
struct report_ranks {
    struct report_rank *rows; // one per device of each recording
    size_t count, capacity, recordings;
    bool failed;     // without memory for a row the table is left out
    bool only_table; // the reports were not printed: the table says who ran out of memory, and why
};

// Notes what the report of the recording `name` says; copies.
void report_ranks_add(struct report_ranks *ranks, const char *name, const struct vram_report *report);
// Prints the table where there are two recordings or more. Then all is as before the first.
void report_ranks_end(struct report_ranks *ranks);

#endif
