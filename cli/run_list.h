// run_list.h: what a run left behind: the recordings that its processes made, and what they could not see.
#ifndef CLI_RUN_LIST_H
#define CLI_RUN_LIST_H

#include <stdbool.h>
#include <stdio.h>

// Reads the list that the preloaded library wrote, and says on standard error what the run came to: one line per recording, one per
// thing that was missed, and after an out of memory the report (`wants_report`). `program` names the run.
void run_list_summary(FILE *list, const char *program, bool wants_report);

#endif
