// fit_joining.h: finds a rank that ended before it joined the other ranks of its job, which wait for it.
//
// A rank joins by calling init_process_group() of PyTorch. In the run's folder, PID.rank names the main process of each rank and PID.joins
// those that have called it (adapters/fit/vram_fit_join.py). Ranks that have not called it yet may only be slow, and programs whose ranks
// never call it have no job to wait for.
#ifndef CLI_FIT_JOINING_H
#define CLI_FIT_JOINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fit_run;

// How a rank ended.
enum fit_leaving {
    FIT_LEFT,   // not known
    FIT_EXITED, // as a Python program exits
    FIT_KILLED, // by a signal or os._exit()
};

// A rank that ended before it joined.
struct fit_absent {
    bool any;
    uint64_t rank, ranks; // of the job
    int64_t process;
    enum fit_leaving leaving;
};

// Reads the rank in PID.rank. Returns false if the file is another one, or the job has one rank.
bool fit_joining_rank(const struct fit_run *run, const char *name, uint64_t *rank);

// Stores in run->more_devices how many ranks the largest job has that a process has joined, if these are more than the devices. Processes
// that were only spawned count if the program failed.
void fit_devices_find(struct fit_run *run, uint64_t devices);
// Writes the option that shows each rank a device, and why, and returns `text`; NULL: the ranks have as many.
const char *fit_devices_text(const struct fit_run *run, char *text, size_t capacity);

// A line of torchrun about the rank that failed first.
struct fit_launchers_word {
    bool any, has_rank;
    uint64_t rank;     // of has_rank
    int64_t exit_code; // -9: by signal 9
};

// Reads a line of a launcher's report. The first one counts.
void fit_launchers_word_read(const struct fit_run *run, const char *line, struct fit_launchers_word *word);
// Appends ": rank 1 was killed (signal 9)" to a sentence.
void fit_launchers_word_append(const struct fit_launchers_word *word, char *text, size_t capacity);

// Looks for such a rank in the folder of a run and stores the lowest in *absent. Returns whether there is one. `is_over`: all processes
// have ended, so those that have joined need not run.
bool fit_joining_find(const struct fit_run *run, bool is_over, struct fit_absent *absent);
// Sends the signal `number` to all ranks and to processes that have joined a job, except `program`. They need not have used a device.
void fit_joining_end(const struct fit_run *run, int64_t program, int number);
// Writes a sentence: "Rank 1 failed before it joined the job's 8 ranks, which wait for it, at FILE:LINE:FUNCTION: ValueError: ...".
void fit_absent_text(const struct fit_run *run, char *text, size_t capacity);

#endif
