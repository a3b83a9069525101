// fit_launcher.h: reads how many ranks a launcher's command line starts, and changes it: torchrun, accelerate, DeepSpeed, mpirun, srun.
#ifndef CLI_FIT_LAUNCHER_H
#define CLI_FIT_LAUNCHER_H

#include <stddef.h>
#include <stdint.h>

struct fit_launcher {
    uint64_t ranks;                   // on all machines; 1 without a launcher
    uint64_t of_machine;              // on one machine
    char **processes_at;              // the word with the number of processes, or the word before it; NULL without a launcher
    char **machines_at;               // the same for the number of machines; NULL: absent
    uint64_t machines;                // 1 without the option
    uint64_t machines_most;           // of a range, whose least number is `machines`; 0: no range
    char names[2][52];                // of these options
    char texts[2][24], joined[2][80]; // their new text
};

// Finds the launcher's options among the program's words.
void fit_launcher_find(struct fit_launcher *launcher, char **program);
// Changes the words so that the launcher starts this many processes, on one machine. They point into *launcher then.
void fit_launcher_set(struct fit_launcher *launcher, size_t processes);

// Replaces a range of machines, such as torchrun's --nnodes 1:4, by its least number.
void fit_launcher_settle(struct fit_launcher *launcher);
// Writes which number was taken of a range of machines, and returns `text`; NULL: no range.
const char *fit_launcher_range_text(const struct fit_launcher *launcher, char *text, size_t capacity);

// Returns how many ranks the launcher starts on all machines; without a launcher, fit_count_devices().
uint64_t fit_count_ranks(char **program);
// Returns how many devices per machine the program's options ask for. The product of several kinds of parallelism.
uint64_t fit_count_devices(char **program);

#endif
