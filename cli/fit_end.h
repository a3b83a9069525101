// fit_end.h: ending a program that has shown enough: first its processes write their recordings, then they end.
#ifndef CLI_FIT_END_H
#define CLI_FIT_END_H

#include "fit_run.h"

// Whether a process of the program has begun to use a device.
bool fit_end_began(const struct fit_run *run);
// Whether each that did has written its recording, or is gone.
bool fit_end_written(const struct fit_run *run);
// Ends those but `program`: with `number`, a signal.
void fit_end_processes(const struct fit_run *run, int64_t program, int number);
// Says which files the program looked for in vain.
void fit_end_wanted(const struct fit_run *run);

#endif
